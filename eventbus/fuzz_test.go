package eventbus_test

import (
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/runlane/runlane-go/eventbus"
)

// FuzzBatch gives anything as a batch of records or of messages: each is sent, set aside or reported, and nothing panics.
func FuzzBatch(f *testing.F) {
	for _, batch := range []any{
		stream(record(1, 0)), stream(record(1, 0, "sq", `{"SS":["a"]}`), record(2, 0, "pk", `{"N":"1"}`)), stream(record(3, 0, "st", "", "v", `{"N":"99"}`)),
		events.SQSEvent{Records: []events.SQSMessage{{EventSource: "aws:sqs", MessageId: "m", Body: `{"eventName":"MODIFY","dynamodb":{}}`}}},
	} {
		text, err := json.Marshal(batch)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		w := &world{}
		sender, err := eventbus.New(w, w, eventbus.Options{
			Bus: "ends", Environment: "prod", Retries: "https://queue", Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		var in events.DynamoDBEvent
		_ = json.Unmarshal(text, &in)
		response, err := sender.Handle(t.Context(), text)
		if done := len(w.taken) + len(w.kept) + len(response.BatchItemFailures); err == nil && done > len(in.Records) {
			t.Errorf("%d records have become %d", len(in.Records), done)
		}
	})
}
