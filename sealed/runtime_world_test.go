package sealed_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/klauspost/compress/zstd"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/sealed"
)

// mark stands in every payload and output, and nowhere else.
const mark = "MaRk-of-what-is-confidential"

// secret is a payload.
type secret struct {
	Text string `json:"text"`
	N    int    `json:"n,omitempty"`
}

var (
	echo = runlane.NewTask("echo", &runlane.TaskOptions[secret]{Retry: runlane.Retry{MaxAttempts: 2}})
	fail = runlane.NewTask[secret]("fail", nil)
	fork = runlane.NewTask[secret]("fork", nil)
)

// world is one storage, over which runtimes with different codecs are opened.
type world struct {
	*testing.T
	storage lane.Storage
	stored  func() []byte // everything that is kept, also what is compressed
	logs    *logs
	millis  *atomic.Int64
	seen    *atomic.Int64 // attempts of echo
}

// logs are lines of all runtimes.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// onEach runs a test over each storage.
func onEach(t *testing.T, test func(w *world)) {
	t.Helper()
	t.Run("memlane", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		storage := memlane.NewStorage(&memlane.StorageOptions{Now: w.now})
		w.storage, w.stored = storage, func() []byte { return read(t, storage) }
		test(w)
	})
	t.Run("dynamodb", func(t *testing.T) {
		t.Parallel()
		client := awstest.DynamoDB(t)
		table := awstest.Table(t, client)
		w := newWorld(t)
		w.storage, w.stored = dynamostore.New(client, table, &dynamostore.Options{Now: w.now, RequestTimeout: awstest.RequestTimeout}), func() []byte { return scan(t, client, table) }
		test(w)
	})
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, logs: &logs{}, millis: &atomic.Int64{}, seen: &atomic.Int64{}}
	w.millis.Store(time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC).UnixMilli())
	return w
}

func (w *world) now() time.Time { return time.UnixMilli(w.millis.Load()).UTC() }

// kept never closes: several runtimes use one storage.
type kept struct{ lane.Storage }

func (k kept) Close(context.Context) error { return nil }
func (k kept) Unwrap() lane.Storage        { return k.Storage }

// open starts a process with a codec, nil for none.
func (w *world) open(codec runlane.Codec, schedules ...runlane.Schedule) *core.Runtime {
	w.Helper()
	l, err := lane.New(kept{w.storage}, scenarios.NewScriptedTransport(), nil)
	w.must(err)
	rt, err := core.Open(w.Context(), l, &core.Options{
		Codec: codec, Handlers: w.handlers(), Logger: slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		World: &core.World{Now: w.now}, Schedules: schedules,
	})
	w.must(err)
	w.Cleanup(func() { _ = rt.Close(context.Background()) })
	return rt
}

func (w *world) handlers() []runlane.Handler {
	return []runlane.Handler{
		echo.Handle(func(_ context.Context, a *runlane.Attempt, s secret) error {
			w.seen.Add(1)
			return a.SetOutput(s)
		}),
		fail.Handle(func(context.Context, *runlane.Attempt, secret) error {
			return &runlane.Error{Code: "no", Message: "not today"}
		}),
		fork.Handle(func(ctx context.Context, a *runlane.Attempt, s secret) error {
			_, err := a.Trigger(ctx, echo.With(s), nil)
			return err
		}),
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) trigger(rt *core.Runtime, call runlane.Call, o *runlane.TriggerOptions) *runlane.Run {
	w.Helper()
	result, err := rt.Trigger(w.Context(), call, o)
	w.must(err)
	return result.Run
}

// work executes what is due.
func (w *world) work(rt *core.Runtime) {
	w.Helper()
	w.must(rt.Work(w.Context(), &core.WorkOptions{Drain: true, NoTick: true}))
}

func (w *world) get(rt *core.Runtime, id runlane.RunID) *runlane.Run {
	w.Helper()
	run, err := rt.Runs().Get(w.Context(), id)
	w.must(err)
	return run
}

// wantEchoed holds that a run succeeded with its payload as its output.
func (w *world) wantEchoed(rt *core.Runtime, id runlane.RunID, want secret, payloadKey, outputKey string) {
	w.Helper()
	run := w.get(rt, id)
	var output secret
	_, err := run.DecodeOutput(&output)
	payload, _ := echo.Decode(run.Payload)
	if err != nil || run.Status != runlane.StatusSucceeded || payload != want || output != want {
		w.Errorf("run is %s, payload %s, output %s, %v", run.Status, run.Payload, run.Output, err)
	}
	if run.Sealed == nil || *run.Sealed != (runlane.Sealed{PayloadKey: payloadKey, OutputKey: outputKey}) {
		w.Errorf("it is sealed as %+v, want %q and %q", run.Sealed, payloadKey, outputKey)
	}
}

// wantCode holds the code of an error, and that it tells nothing.
func (w *world) wantCode(err error, code runlane.ErrorCode) {
	w.Helper()
	if runlane.CodeOf(err) != code {
		w.Errorf("error is %v, want %s", err, code)
	}
	if err != nil && bytes.Contains([]byte(err.Error()), []byte(mark)) {
		w.Errorf("an error tells the payload: %v", err)
	}
}

func (w *world) codec(options *sealed.Options, ids ...string) *sealed.Codec {
	w.Helper()
	var keys []sealed.Key
	for _, id := range ids {
		key, err := sealed.KeyOf(id, bytes.Repeat([]byte(id), sealed.KeyBytes)[:sealed.KeyBytes])
		w.must(err)
		keys = append(keys, key)
	}
	codec, err := sealed.New(keys, options)
	w.must(err)
	return codec
}

// read is everything that reads of a storage in memory return.
func read(t *testing.T, storage lane.Storage) []byte {
	t.Helper()
	var all bytes.Buffer
	add := func(v any, bodies ...[]byte) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
		for _, b := range bodies {
			all.Write(b)
		}
	}
	page, err := storage.ListRuns(t.Context(), &lane.RunQuery{PageQuery: lane.PageQuery{Environment: "default", Limit: runlane.MaxPageLimit}})
	if err != nil {
		t.Fatal(err)
	}
	for _, summary := range page.Items {
		run, err := storage.GetRun(t.Context(), lane.RunKey{Environment: "default", RunID: summary.ID})
		if err != nil {
			t.Fatal(err)
		}
		bare := *run
		bare.Payload, bare.Output = nil, nil
		add(bare, run.Payload, run.Output)
		events, err := storage.ListRunEvents(t.Context(), &lane.EventQuery{PageQuery: lane.PageQuery{Environment: "default"}, RunID: run.ID})
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range events.Items {
			switch body := record.Body.(type) {
			case *runlane.RunCreated:
				add(record, body.Payload)
			case *runlane.RunSucceeded:
				add(record, body.Output)
			default:
				add(record)
			}
		}
	}
	schedules, err := storage.ListSchedules(t.Context(), &lane.PageQuery{Environment: "default"})
	if err != nil {
		t.Fatal(err)
	}
	add(schedules)
	return all.Bytes()
}

// scan is every attribute of every item of a table, with what decompresses decompressed as well.
func scan(t *testing.T, client *dynamodb.Client, table string) []byte {
	t.Helper()
	opener, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer opener.Close()
	var all bytes.Buffer
	var add func(v types.AttributeValue)
	add = func(v types.AttributeValue) {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			all.WriteString(v.Value)
		case *types.AttributeValueMemberB:
			all.Write(v.Value)
			if opened, err := opener.DecodeAll(v.Value, nil); err == nil {
				all.Write(opened)
			}
		case *types.AttributeValueMemberL:
			for _, one := range v.Value {
				add(one)
			}
		case *types.AttributeValueMemberM:
			for name, one := range v.Value {
				all.WriteString(name)
				add(one)
			}
		default: // numbers and flags
		}
		all.WriteByte('\n')
	}
	pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			add(&types.AttributeValueMemberM{Value: item})
		}
	}
	return all.Bytes()
}
