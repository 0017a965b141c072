package functions

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/streamimage"
)

// FuzzStreamRecord gives anything as the record of a stream, as Lambda passes it on.
func FuzzStreamRecord(f *testing.F) {
	f.Add([]byte(`{"pk":{"S":"test:run:run_1"},"sk":{"S":"log:0000000002"},"relay":{"S":"1"},"dl":{"L":[{"M":{"st":{"S":"pending"}}}]}}`))
	f.Add([]byte(`{"pk":{"S":"test:run:run_1"},"sk":{"N":"2"},"relay":{"S":"1"},"dl":{"SS":["a"]},"ev":{"BS":["AA=="]}}`))
	f.Add([]byte(`{"pk":{"S":"test:run:run_1"},"relay":{"S":"1"},"dl":{"L":[{"NULL":true},{"BOOL":true},{"NS":["1"]}]}}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var image map[string]events.DynamoDBAttributeValue
		if json.Unmarshal(text, &image) != nil {
			return
		}
		item := streamimage.Item(image)
		if len(item) != len(image) {
			t.Fatalf("%s has become %v", text, item)
		}
		if _, err := dynamostore.ParseStreamImage(item); err != nil && runlane.CodeOf(err) != runlane.ErrInvariantViolation {
			t.Fatal(err)
		}
	})
}
