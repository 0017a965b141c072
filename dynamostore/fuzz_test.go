package dynamostore

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
)

// FuzzOpenCursor gives anything as a cursor: it is refused as input, or it is one of this request.
func FuzzOpenCursor(f *testing.F) {
	f.Add(string(rows.SealCursor("list", listPosition{1, ddb.Position{Partition: "p", Sort: "s", PK: "k"}})), "list")
	f.Add(string(rows.SealCursor("other", eventPosition{7})), "list")
	f.Add("bnVsbA", "list")
	f.Add("eyJjIjoiIiwicCI6bnVsbH0", "")
	f.Fuzz(func(t *testing.T, text, scope string) {
		var at listPosition
		err := rows.OpenCursor(runlane.Cursor(text), scope, &at)
		if err != nil && runlane.CodeOf(err) != runlane.ErrValidationFailed {
			t.Fatal(err)
		}
		if err == nil && text != "" {
			if err := rows.OpenCursor(runlane.Cursor(text), scope+"x", &at); err == nil {
				t.Fatalf("%q is a cursor of two requests", text)
			}
		}
	})
}

// FuzzParseStreamImage gives anything as an item of the table's stream, and as a run item that is read.
func FuzzParseStreamImage(f *testing.F) {
	f.Add("test:run:run_1", "log:0000000002", "1", "pending", []byte("[]"), "1")
	f.Add("test:run:run_1", "log:x", "1", "pending", []byte(nil), "99999999999999999999")
	f.Add("test:config", "shards", "", "", []byte("\x00"), "-1")
	f.Add(":run:", "log:0", "1", "claimed", []byte(nil), "1e3")
	f.Fuzz(func(t *testing.T, pk, sk, relay, status string, events []byte, number string) {
		attempts := types.AttributeValue(&types.AttributeValueMemberN{Value: number})
		delivery := &types.AttributeValueMemberM{Value: item.Item{"st": item.Text(status), "at": attempts, "tc": &types.AttributeValueMemberNULL{Value: true}}}
		image := item.Item{
			item.PK: item.Text(pk), item.SK: item.Text(sk), RelayAttribute: item.Text(relay), "ev": &types.AttributeValueMemberB{Value: events},
			"dl": &types.AttributeValueMemberL{Value: []types.AttributeValue{delivery}}, "sq": attempts, "st": item.Text(status),
		}
		record, err := ParseStreamImage(image)
		if err != nil && runlane.CodeOf(err) != runlane.ErrInvariantViolation {
			t.Fatal(err)
		}
		for _, id := range record.OutboxIDs {
			if run, _, _, ok := rows.ParseOutboxID(id); relay != RelayValue || ok && run != record.RunID {
				t.Fatalf("%v has row %q", image, id)
			}
		}
		for _, wrong := range []string{"st", "dl", "ev", "sq"} { // a value of another type where each attribute stands
			image[wrong] = &types.AttributeValueMemberSS{Value: []string{status}}
		}
		if _, err := ParseStreamImage(image); err != nil && runlane.CodeOf(err) != runlane.ErrInvariantViolation {
			t.Fatal(err)
		}
		if _, err := rows.UnmarshalRun(image); runlane.CodeOf(err) != runlane.ErrInvariantViolation {
			t.Fatalf("read with %v", err)
		}
	})
}
