package eventbus

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	dynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/shown"
	"github.com/runlane/runlane-go/internal/streamimage"
)

// detailTypes are the statuses that can be sent. The mapping's filter selects among them.
var detailTypes = map[runlane.Status]string{
	runlane.StatusSucceeded: "Run Succeeded",
	runlane.StatusFailed:    "Run Failed",
	runlane.StatusCancelled: "Run Cancelled",
	runlane.StatusRetrying:  "Run Retrying",
}

// late is how much later than its end a finished run is written for another reason: pruning removes its output first.
// runlane.MinKeep, an hour, is the least time before that.
const late = 50 * time.Minute

// event is what becomes of a stream record.
type event struct {
	id     string // the record's name in the response
	key    string // of the run's item
	record *events.DynamoDBEventRecord
	put    types.PutEventsRequestEntry
	fault  error // the record cannot be read
}

// eventOf returns nil for a record that shows no news of a run of this environment.
func (s *Sender) eventOf(id string, record *events.DynamoDBEventRecord) *event {
	if record.EventName != string(events.DynamoDBOperationTypeModify) {
		return nil // an import or a copy inserts ended runs
	}
	image := streamimage.Item(record.Change.NewImage)
	key, _ := image["pk"].(*dynamodb.AttributeValueMemberS)
	if key == nil || !strings.HasPrefix(key.Value, s.environment.Name()+":run:") {
		return nil
	}
	e := &event{id: id, key: key.Value, record: record}
	run, err := dynamostore.ParseStreamRun(image)
	if err != nil {
		e.fault = err
		return e
	}
	if run == nil || detailTypes[run.Status] == "" {
		return nil
	}
	written := record.Change.ApproximateCreationDateTime
	if run.Status.Terminal() && written.Sub(run.FinishedAt) > late {
		return nil
	}
	detail, err := shown.Object("run", shown.Run(run))
	if err != nil {
		e.fault = err
		return e
	}
	table, _, _ := strings.Cut(record.EventSourceArn, "/stream/")
	e.put = types.PutEventsRequestEntry{
		Detail:       aws.String(string(detail)),
		DetailType:   aws.String(detailTypes[run.Status]),
		EventBusName: aws.String(s.name),
		Resources:    []string{table},
		Source:       aws.String(Source),
		Time:         aws.Time(run.UpdatedAt),
	}
	return e
}

// body is the message that keeps an event that was refused: its record, without payload and output. A newer program
// may be able to read what this one cannot.
func (e *event) body() (string, error) {
	dynamostore.DropStreamBytes(e.record.Change.NewImage)
	text, err := json.Marshal(e.record)
	return string(text), err
}
