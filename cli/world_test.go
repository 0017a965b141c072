package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a storage that several calls of the command line share, as processes share a table.
type world struct {
	storage *memlane.Storage
	shared  lane.Transport // that several calls send and receive by; nil: each has its own
	millis  atomic.Int64
	columns int // of the terminal, 0 for none
	down    bool
	plain   bool            // the program has no tasks
	keyless bool            // the program has no keys for answer tokens
	orders  bool            // the program is another one, with tasks that compute keys
	queues  []runlane.Queue // that the program is told of
	refuse  bool            // the transport accepts nothing, for ever
	env     map[string]string
	stdin   string
	wrap    func(lane.Storage) lane.Storage // nil: as it is
	codec   runlane.Codec
	bodies  *lane.Bodies // nil: none
	faults  int          // wrong options

	endpoint  string // in place of AWS; "" is the world's own storage
	interrupt string // what on stderr interrupts the next command
	during    func(ctx context.Context, id runlane.RunID) error

	mu  sync.Mutex
	ids map[string]int
}

func newWorld() *world {
	w := &world{env: map[string]string{"USER": "ada"}, ids: map[string]int{}}
	w.millis.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMilli())
	w.storage = memlane.NewStorage(&memlane.StorageOptions{Now: w.now})
	return w
}

func (w *world) now() time.Time { return time.UnixMilli(w.millis.Load()).UTC() }

func (w *world) newID(prefix string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids[prefix]++
	return fmt.Sprintf("%s01CLITEST%04d", prefix, w.ids[prefix])
}

type letter struct {
	To string `json:"to"`
}

var (
	welcome = runlane.NewTask("emails.welcome", &runlane.TaskOptions[letter]{Queue: runlane.Queue{Name: "emails"}})
	bulk    = runlane.NewTask("emails.bulk", &runlane.TaskOptions[letter]{Queue: runlane.Queue{Name: "slow", Concurrency: 1}})
	flaky   = runlane.NewTask("emails.flaky", &runlane.TaskOptions[json.RawMessage]{
		Retry: runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(time.Minute), NoJitter: true}, ErrorMessages: true,
		KeepLogs: true,
	})
	patient = runlane.NewTask[struct{}]("emails.patient", nil)
	watched = runlane.NewTask("emails.watched", &runlane.TaskOptions[struct{}]{ErrorMessages: true})
	nightly = runlane.NewTask[struct{}]("reports.nightly", nil)

	approved = runlane.NewSignal[map[string]string]("approved")
)

// askedToken is the one that ask makes for single-run-0001 at the beginning of a world.
const askedToken = "rlt1.eyJlIjoiZGVmYXVsdCIsInIiOiJzaW5nbGUtcnVuLTAwMDEiLCJjIjoxNzcyMzY2NDAwMDAwLCJuIjoiYXBwcm92ZWQiLCJ" +
	"4IjoxNzcyOTcxMjAwMDAwfQ.czUHm43TwYv32dFdQNhaEj6oi0GyiyxMfZlf_wVRnIU"

// callMany calls a welcome for each address between commas.
func callMany(ctx context.Context, a *runlane.Attempt, l letter) error {
	if !strings.Contains(l.To, ",") {
		return nil
	}
	var letters []letter
	for to := range strings.SplitSeq(l.To, ",") {
		letters = append(letters, letter{To: to})
	}
	_, err := runlane.CallAll(ctx, a, &runlane.Func[letter, map[string]string]{Task: welcome}, letters, nil)
	return err
}

// ask mails a link with a token and waits for the answer.
func ask(ctx context.Context, a *runlane.Attempt) error {
	_, err := runlane.Step(ctx, a, "mail", func(ctx context.Context) (string, error) { return approved.Token(ctx, a, nil) })
	if err != nil {
		return err
	}
	by, err := approved.Wait(ctx, a, &runlane.WaitOptions{Prompt: "Publish it?"})
	if err != nil {
		return err
	}
	return a.SetOutput(by)
}

func (w *world) options() *core.Options {
	options := &core.Options{Logger: slog.New(slog.DiscardHandler), World: &core.World{Now: w.now, Rand: func() uint64 { return 1 << 63 }, NewID: w.newID}}
	options.Queues, options.Codec = w.queues, w.codec
	if !w.plain && !w.keyless {
		options.TokenKeys = [][]byte{[]byte(strings.Repeat("k", 32))}
	}
	if w.faults > 0 {
		options.MaxAbandoned = -2
	}
	if w.faults > 1 {
		options.Queues = append(slices.Clone(w.queues), runlane.Queue{Name: "mail", Concurrency: -1})
	}
	if w.plain {
		return options
	}
	if w.orders {
		options.Handlers = orderHandlers()
		return options
	}
	options.Handlers = []runlane.Handler{
		welcome.Handle(func(_ context.Context, a *runlane.Attempt, l letter) error {
			if l.To == "unknown" {
				return runlane.Permanent(errors.New("no such mailbox"))
			}
			a.SetReceipt(runlane.Receipt{
				Target: runlane.ReceiptHTTP, StartedAt: w.now(), EndedAt: w.now(), Request: "POST https://mail.example", Status: 202,
				Headers: map[string]string{"Content-Type": "text/plain"}, Body: "queued\nby \x1b[31mmx1", BodyBytes: 18,
			})
			return a.SetOutput(map[string]string{"sent": l.To})
		}),
		bulk.Handle(callMany),
		flaky.Handle(func(ctx context.Context, a *runlane.Attempt, _ json.RawMessage) error {
			if _, err := runlane.Step(ctx, a, "find mailbox", func(context.Context) (string, error) { return "INBOX", nil }); err != nil {
				return err
			}
			a.Logger().Info("mailbox found", "name", "INBOX", "quota", slog.GroupValue(slog.Int("used", 100)))
			a.SetReceipt(runlane.Receipt{
				Target: runlane.ReceiptCommand, StartedAt: w.now(), EndedAt: w.now(), Command: "sendmail", ExitCode: new(a.Number), Stderr: "full\n",
			})
			if err := a.Snapshot(ctx, fmt.Sprint("try/", a.Number), map[string]int{"attempt": a.Number}); err != nil {
				return err
			}
			return errors.New("mailbox is full")
		}),
		patient.Handle(func(context.Context, *runlane.Attempt, struct{}) error {
			return runlane.Release(time.Hour, "mailbox is locked")
		}),
		watched.Handle(func(ctx context.Context, a *runlane.Attempt, _ struct{}) error {
			if w.during == nil {
				return ask(ctx, a)
			}
			return w.during(ctx, a.Run.ID)
		}),
		nightly.Handle(func(context.Context, *runlane.Attempt, struct{}) error { return nil }),
	}
	options.Schedules = []runlane.Schedule{{
		ID: "nightly", When: runlane.Cron("30 2 * * *").In("Europe/Berlin"), Call: nightly.With(struct{}{}),
	}}
	return options
}

func (w *world) open(ctx context.Context) (*core.Runtime, error) {
	if w.down {
		return nil, &runlane.Error{
			Code: runlane.ErrStorageUnavailable, Message: "the table does not answer", Hint: "check the network", Retryable: true,
			Cause: errors.New("connection refused"),
		}
	}
	if w.endpoint != "" {
		return w.openOnAWS(ctx)
	}
	transport := lane.Transport(memlane.NewTransport(nil))
	if w.shared != nil {
		transport = w.shared
	}
	if w.refuse {
		transport = refusing{transport}
	}
	storage := lane.Storage(w.storage)
	if w.wrap != nil {
		storage = w.wrap(storage)
	}
	l, err := lane.New(storage, transport, &lane.Options{Bodies: w.bodies, Name: "memory"})
	if err != nil {
		return nil, err
	}
	return core.Open(ctx, l, w.options())
}

// refusing is a transport that can never accept a wakeup.
type refusing struct{ lane.Transport }

func (refusing) Capabilities() lane.TransportCapabilities { return lane.TransportCapabilities{} }

func (refusing) PublishWakeups(_ context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	outcomes := make([]lane.PublishOutcome, len(c.Attempts))
	for i := range outcomes {
		outcomes[i] = lane.PublishOutcome{
			Type: lane.PublishFailed, Failure: runlane.NewFailure(runlane.ErrTransportPublishFailed, "too large", nil), Permanent: true,
		}
	}
	return outcomes, nil
}

// result is what one call wrote, and its exit code.
type result struct {
	stdout, stderr string
	code           int
}

func (w *world) run(ctx context.Context, args ...string) result {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var stdout bytes.Buffer
	stderr := lookout{text: w.interrupt, seen: cancel}
	options := &cli.Options{
		Name: "runlane", Args: args, Now: w.now, Stdin: strings.NewReader(w.stdin), Stdout: &stdout, Stderr: &stderr,
		Getenv: func(name string) string { return w.env[name] },
		Setenv: func(name, value string) error { w.env[name] = value; return nil },
	}
	options.OnTerminal(w.columns)
	code := cli.Run(ctx, w.open, options)
	return result{stdout.String(), stderr.String(), code}
}
