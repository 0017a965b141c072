package eventbus_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/eventbus"
)

// world is a bus and a queue. The bus refuses the run of a key once for each code, "" is taken.
type world struct {
	refuses map[string][]string
	down    bool // the bus
	silent  bool // the bus, which does not answer
	full    bool // the queue

	sizes []int // of the requests
	taken []types.PutEventsRequestEntry
	kept  []string // bodies of messages
}

func (w *world) PutEvents(
	ctx context.Context, in *eventbridge.PutEventsInput, _ ...func(*eventbridge.Options),
) (*eventbridge.PutEventsOutput, error) {
	w.sizes = append(w.sizes, len(in.Entries))
	if w.silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if w.down {
		return nil, errors.New("no answer")
	}
	out := &eventbridge.PutEventsOutput{}
	for _, entry := range in.Entries {
		result := types.PutEventsResultEntry{EventId: aws.String("id")}
		id := idOf(entry)
		if codes := w.refuses[id]; len(codes) > 0 {
			w.refuses[id] = codes[1:]
			result = types.PutEventsResultEntry{ErrorCode: aws.String(codes[0]), ErrorMessage: aws.String("scripted")}
			out.FailedEntryCount++
		} else {
			w.taken = append(w.taken, entry)
		}
		out.Entries = append(out.Entries, result)
	}
	return out, nil
}

func (w *world) SendMessageBatch(
	_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options),
) (*sqs.SendMessageBatchOutput, error) {
	out := &sqs.SendMessageBatchOutput{}
	for _, entry := range in.Entries {
		if w.full {
			out.Failed = append(out.Failed, sqstypes.BatchResultErrorEntry{Id: entry.Id})
			continue
		}
		w.kept = append(w.kept, *entry.MessageBody)
	}
	return out, nil
}

func idOf(entry types.PutEventsRequestEntry) string {
	var detail struct{ RunID string }
	_ = json.Unmarshal([]byte(*entry.Detail), &detail)
	return detail.RunID
}

func (w *world) ids() []string {
	ids := []string{}
	for _, entry := range w.taken {
		ids = append(ids, idOf(entry))
	}
	return ids
}

// handle gives a sender a batch and returns what it reports as failed.
func (w *world) handle(t *testing.T, batch any) []string {
	t.Helper()
	return w.handleIn(t.Context(), t, batch)
}

func (w *world) handleIn(ctx context.Context, t *testing.T, batch any) []string {
	t.Helper()
	sender, err := eventbus.New(w, w, eventbus.Options{
		Bus: "ends", Environment: "prod", Retries: "https://queue", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(batch)
	if err != nil {
		t.Fatal(err)
	}
	response, err := sender.Handle(ctx, text)
	if err != nil {
		t.Fatal(err)
	}
	failed := []string{}
	for _, f := range response.BatchItemFailures {
		failed = append(failed, f.ItemIdentifier)
	}
	return failed
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

var finished = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// record is the stream's record of a run's end, written after it by the given time. Pairs change its attributes, "" leaves one out.
func record(number int, after time.Duration, pairs ...string) events.DynamoDBEventRecord {
	ms := fmt.Sprint(finished.UnixMilli())
	fields := map[string]string{
		"pk": `{"S":"prod:run:r` + fmt.Sprint(number) + `"}`, "sk": `{"S":"run"}`, "sq": `{"N":"4"}`, "st": `{"S":"succeeded"}`,
		"tk": `{"S":"mail"}`, "qu": `{"S":"default"}`, "ca": `{"N":"` + ms + `"}`, "ua": `{"N":"` + ms + `"}`, "fi": `{"N":"` + ms + `"}`,
		"na": `{"N":"1"}`, "so": `{"S":"trigger"}`, "pl": `{"B":"InNlY3JldCI="}`, "pz": `{"N":"1"}`, "ou": `{"B":"InNlY3JldCI="}`, "oz": `{"N":"1"}`,
		"fp": `{"S":"prod:succeeded:1"}`, "fa": `{"S":"` + ms + `:r"}`,
	}
	for i := 0; i < len(pairs); i += 2 {
		fields[pairs[i]] = pairs[i+1]
	}
	var image map[string]events.DynamoDBAttributeValue
	var text []string
	for name, value := range fields {
		if value != "" {
			text = append(text, `"`+name+`":`+value)
		}
	}
	if err := json.Unmarshal([]byte("{"+strings.Join(text, ",")+"}"), &image); err != nil {
		panic(err)
	}
	return events.DynamoDBEventRecord{
		EventName: "MODIFY", EventSource: "aws:dynamodb",
		EventSourceArn: "arn:aws:dynamodb:eu-west-1:123456789012:table/runs/stream/2026-11-01T00:00:00.000",
		Change: events.DynamoDBStreamRecord{
			ApproximateCreationDateTime: events.SecondsEpochTime{Time: finished.Add(after)},
			NewImage:                    image, SequenceNumber: fmt.Sprint(number),
		},
	}
}

func stream(records ...events.DynamoDBEventRecord) events.DynamoDBEvent {
	return events.DynamoDBEvent{Records: records}
}

// ends are records of runs r0 to r(n-1), written now.
func ends(n int) (list []events.DynamoDBEventRecord) {
	for i := range n {
		r := record(i, 0)
		at := fmt.Sprint(time.Now().UnixMilli())
		r.Change.NewImage["fi"] = events.NewNumberAttribute(at)
		r.Change.ApproximateCreationDateTime.Time = time.Now()
		list = append(list, r)
	}
	return list
}

func TestEvent_HasTheShapeOfWebhooksWithoutPayloadAndOutput(t *testing.T) {
	t.Parallel()
	w := &world{}
	equal(t, "failed", w.handle(t, stream(
		record(1, time.Second),
		record(2, time.Second, "st", `{"S":"failed"}`, "fc", `{"S":"smtp_down"}`, "fm", `{"S":"no route"}`),
		record(3, time.Second, "st", `{"S":"cancelled"}`),
		record(4, time.Second, "st", `{"S":"retrying"}`, "fi", ""),
	)), []string{})
	var kinds []string
	for _, entry := range w.taken {
		kinds = append(kinds, *entry.DetailType)
		equal(t, "frame", []any{*entry.Source, *entry.EventBusName, entry.Resources, *entry.Time}, []any{
			"runlane", "ends", []string{"arn:aws:dynamodb:eu-west-1:123456789012:table/runs"}, finished,
		})
	}
	equal(t, "kinds", kinds, []string{"Run Succeeded", "Run Failed", "Run Cancelled", "Run Retrying"})
	var detail, failure map[string]any
	if err := errors.Join(
		json.Unmarshal([]byte(*w.taken[0].Detail), &detail), json.Unmarshal([]byte(*w.taken[1].Detail), &failure),
	); err != nil {
		t.Fatal(err)
	}
	equal(t, "detail", detail, map[string]any{
		"v": 1.0, "kind": "run", "runId": "r1", "environment": "prod", "taskId": "mail", "queue": "default", "status": "succeeded",
		"eventSequence": 4.0, "counters": map[string]any{"attempts": 1.0, "failures": 0.0, "retries": 0.0, "releases": 0.0},
		"createdAt": "2026-11-28T12:00:00Z", "updatedAt": "2026-11-28T12:00:00Z", "finishedAt": "2026-11-28T12:00:00Z",
		"source": map[string]any{"type": "trigger"},
	})
	equal(t, "failure", failure["failure"], any(map[string]any{"code": "smtp_down", "message": "no route"}))
}

func TestEvent_OnlyOfWhatJustChanged(t *testing.T) {
	t.Parallel()
	inserted := record(1, 0)
	inserted.EventName = "INSERT"
	called := []string{"so", `{"S":"call"}`, "sr", `{"S":"caller"}`, "ss", `{"S":"name"}`}
	w := &world{}
	failed := w.handle(t, stream(
		inserted, // by an import
		record(2, 0, "pk", `{"S":"test:run:r2"}`),
		record(3, 0, "sk", `{"S":"output"}`),
		record(4, 0, "st", `{"S":"running"}`),
		record(5, 51*time.Minute, "ou", "", "oz", ""), // pruning began
		record(6, 0, append([]string{"dp", `{"S":"prod:e:1"}`, "da", `{"S":"1:default"}`}, called...)...),
		record(6, 0, called...), // its caller was told
		record(7, 49*time.Minute),
	))
	equal(t, "failed", failed, []string{})
	equal(t, "sent", w.ids(), []string{"r6", "r7"})
	equal(t, "requests", w.sizes, []int{2})
}

// EventBridge answers 200 and says of each entry whether it took it.
func TestHandle_RefusedForAWhile_WaitsInTheStreamWithWhatIsBehindIt(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"ThrottlingException", "InternalFailure"} {
		w := &world{refuses: map[string][]string{"r12": {code}, "r15": {code}}}
		batch := ends(25)
		equal(t, "failed", w.handle(t, stream(batch...)), []string{"12"})
		equal(t, "requests", w.sizes, []int{10, 10})
		equal(t, "failed again", w.handle(t, stream(batch[12:]...)), []string{})
		got := slices.Compact(slices.Sorted(slices.Values(w.ids())))
		equal(t, "sent", len(got), 25)
		equal(t, "kept", w.kept, []string(nil))
	}
}

// A request that refuses an event and takes a later one of the same run would turn their order around.
func TestHandle_TwoEventsOfARun_KeepTheirOrder(t *testing.T) {
	t.Parallel()
	w := &world{refuses: map[string][]string{"r1": {"ThrottlingException"}}}
	batch := ends(3)
	batch[1].Change.NewImage["st"] = events.NewStringAttribute("retrying")
	batch[2].Change.NewImage["pk"] = batch[1].Change.NewImage["pk"]
	equal(t, "failed", w.handle(t, stream(batch...)), []string{"1"})
	equal(t, "sent", w.ids(), []string{"r0"})
	equal(t, "failed again", w.handle(t, stream(batch[1:]...)), []string{})
	equal(t, "sent", w.ids(), []string{"r0", "r1", "r1"})
	equal(t, "last", *w.taken[2].DetailType, "Run Succeeded")
}

func TestHandle_RefusedForGood_IsSetAsideAndSentAgain(t *testing.T) {
	t.Parallel()
	// The one that waits is repeated with what is behind it; what was refused for good before it must not be lost with that.
	w := &world{refuses: map[string][]string{"r1": {"NotAuthorizedForSourceException", "MalformedDetail"}, "r3": {"ThrottlingException"}, "r4": {"InvalidArgument"}}}
	equal(t, "failed", w.handle(t, stream(ends(6)...)), []string{"3"})
	equal(t, "sent", w.ids(), []string{"r0", "r2", "r5"})
	if len(w.kept) != 1 || strings.Contains(w.kept[0], "InNlY3JldCI=") {
		t.Fatalf("kept are %q, with payload or without", w.kept)
	}
	message := events.SQSEvent{Records: []events.SQSMessage{
		{EventSource: "aws:sqs", MessageId: "m1", Body: w.kept[0]}, {EventSource: "aws:sqs", MessageId: "m2", Body: "nonsense"},
		{EventSource: "aws:sqs", MessageId: "m3", Body: `{"requestContext":{},"DDBStreamBatchInfo":{"batchSize":1}}`}, // a note of Lambda
	}}
	equal(t, "still refused", w.handle(t, message), []string{"m2", "m3", "m1"})
	equal(t, "sent", w.handle(t, message), []string{"m2", "m3"})
	equal(t, "run", idOf(w.taken[len(w.taken)-1]), "r1")
}

func TestHandle_BusDown_WaitsForPatienceThenGoesOn(t *testing.T) {
	t.Parallel()
	w := &world{down: true}
	young := ends(15)
	equal(t, "young", w.handle(t, stream(young...)), []string{"0"})
	equal(t, "requests", w.sizes, []int{10})
	old := ends(15)
	for i := range old {
		old[i].Change.ApproximateCreationDateTime.Time = time.Now().Add(-eventbus.Patience)
		old[i].Change.NewImage["fi"] = events.NewNumberAttribute(fmt.Sprint(time.Now().Add(-eventbus.Patience).UnixMilli()))
	}
	w.full = true
	equal(t, "old, and the queue is full", w.handle(t, stream(old...)), []string{"0"})
	w.full = false
	equal(t, "old", w.handle(t, stream(old...)), []string{})
	equal(t, "kept", len(w.kept), 15)
}

// An invocation ends by itself, with all that it could set aside. One that Lambda ends would be repeated until the stream
// forgets its records.
func TestHandle_BusDoesNotAnswer_IsAsABusThatIsDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{silent: true}
		batch := ends(100)
		for i := range batch {
			batch[i].Change.ApproximateCreationDateTime.Time = time.Now().Add(-eventbus.Patience)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		equal(t, "failed", w.handleIn(ctx, t, stream(batch...)), []string{"40"})
		equal(t, "kept", len(w.kept), 40)
		equal(t, "end", ctx.Err(), error(nil))
	})
}

// A record that this program cannot read holds nothing up, and is kept for a program that can.
func TestHandle_PoisonRecord_IsSetAside(t *testing.T) {
	t.Parallel()
	w := &world{}
	poison := record(1, 0, "v", `{"N":"99"}`, "sq", `{"SS":["a"]}`)
	equal(t, "failed", w.handle(t, stream(record(0, 0), poison, record(2, 0))), []string{})
	equal(t, "sent", w.ids(), []string{"r0", "r2"})
	if len(w.kept) != 1 || !strings.Contains(w.kept[0], `"prod:run:r1"`) {
		t.Errorf("kept: %q", w.kept)
	}
}

func TestNew_NamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	for says, o := range map[string]eventbus.Options{
		eventbus.BusVariable: {Retries: "q"}, eventbus.RetriesVariable: {Bus: "b"}, "RUNLANE_ENV": {Bus: "b", Retries: "q", Environment: "a:b"},
	} {
		_, err := eventbus.New(nil, nil, o)
		var e *runlane.Error
		if !errors.As(err, &e) || e.Code != runlane.ErrConfigurationInvalid || !strings.Contains(e.Message+e.Hint, says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

func TestHandle_NoBatch_IsValidationFailed(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s, err := eventbus.New(nil, nil, eventbus.Options{Bus: "b", Retries: "q", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`{}`, `[]`, `{"Records":[]}`} {
		if _, err := s.Handle(t.Context(), []byte(text)); !errors.Is(err, runlane.ErrValidationFailed) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
