package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// Webhook is a URL that is told how runs end, by requests that the Standard Webhooks scheme signs
// (https://www.standardwebhooks.com).
type Webhook struct {
	// Name is the identity of the webhook: what was not delivered yet goes to the URL that its name has now. "" means
	// "default". It is an id, by whose rules it is written.
	Name string
	// URL gets the requests. It is https, and leads to public addresses, unless Private is set.
	URL string
	// Secrets are the keys of the signature, as the scheme writes them: "whsec_" and the base64 of 24 to 64 bytes. One,
	// or two while it is changed: each request is then signed with both.
	Secrets []string
	// Tasks whose runs are told. nil means all. Runs that deliver webhooks are never told.
	Tasks []runlane.TaskID
	// Statuses are the ends that are told. nil means all three.
	Statuses []runlane.Status
	// Payload puts payload and output of the run into the body.
	Payload bool
	// Private lets the URL lead to this machine and to private networks, there by http, too.
	Private bool
	// Timeout is how long the receiver may take to answer. 0 means 15 s; at most MaxTimeout.
	Timeout time.Duration
}

// Codes of deliveries that failed.
const (
	// ErrWebhookNotDelivered: the receiver did not take the request. It is tried again.
	ErrWebhookNotDelivered runlane.ErrorCode = "webhook_not_delivered"
	// ErrWebhookGone: the receiver answered 410, and wants no such request again.
	ErrWebhookGone runlane.ErrorCode = "webhook_gone"
)

// WebhookAttempts is how often a delivery is tried, for about two days: after 5 s, 10 s, 20 s … 6 h.
const WebhookAttempts = 20

const (
	// webhookTask delivers one end of a run; webhookFeedTask follows the feed, and makes runs of webhookTask.
	webhookTask     runlane.TaskID = "runlane.webhook"
	webhookFeedTask runlane.TaskID = "runlane.webhook-feed"
	// Both have a queue, so that receivers that do not answer keep no feed from being read.
	webhookQueue     runlane.QueueName = "runlane.webhooks"
	webhookFeedQueue runlane.QueueName = "runlane.webhook-feed"

	webhookTimeout     = 15 * time.Second
	webhookConcurrency = 32
	webhookGrace       = 5 * time.Second
	// webhookLook is how often it is looked whether the feed of each webhook is followed.
	webhookLook = 5 * time.Second
)

// Webhooks delivers the ends of runs, by runs: a run for each webhook follows the feed of the environment, whose cursor
// it remembers, and makes a run of the task "runlane.webhook" for each end, with an idempotency key. So an end is told
// though every process dies at any moment, and several processes with the same webhooks tell it once, except that a
// receiver may get a request again whose answer was lost. Make it with [NewWebhooks]. It is safe for concurrent use.
//
// Ends from the first call of Begin on are told, in about the order in which they come. The storage has to keep the
// order of commits, which those of memory and of a file do.
type Webhooks struct {
	// Logger gets a line when it cannot be ensured that the feed is followed. nil means slog.Default(). Set it before
	// Run.
	Logger *slog.Logger

	hooks   map[string]*hook
	rt      atomic.Pointer[core.Runtime] // nil before Begin
	feed    *runlane.Task[feedPayload]
	send    *runlane.Task[delivery]
	running context.Context // of Run, which has ended it once its attempts have to stop
	stop    context.CancelFunc
}

// hook is a webhook whose options were checked.
type hook struct {
	Webhook

	to     *url.URL
	keys   [][]byte
	client *http.Client
}

// NewWebhooks checks options. What is wrong with them is runlane.ErrConfigurationInvalid, each problem named; no secret
// is repeated. It starts nothing: give Handlers to core.Open, then call Run.
func NewWebhooks(hooks ...Webhook) (*Webhooks, error) {
	return newWebhooks(runlane.Exponential{Base: 5 * time.Second, Max: 6 * time.Hour}, hooks)
}

func newWebhooks(backoff runlane.Backoff, hooks []Webhook) (*Webhooks, error) {
	w := &Webhooks{hooks: map[string]*hook{}}
	w.running, w.stop = context.WithCancel(context.Background())
	var faults []error
	for i := range hooks {
		made, err := hooks[i].checked()
		if err != nil {
			faults = append(faults, err)
			continue
		}
		if w.hooks[made.Name] != nil {
			faults = append(faults, invalid("two webhooks have the name "+quoted(made.Name), "give each another Name"))
		}
		w.hooks[made.Name] = made
	}
	if len(hooks) == 0 {
		faults = append(faults, invalid("there are no webhooks", "give one, or make no Webhooks"))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	w.feed = runlane.NewTask(webhookFeedTask, &runlane.TaskOptions[feedPayload]{
		Queue:        runlane.Queue{Name: webhookFeedQueue},
		Retry:        runlane.Retry{MaxAttempts: 100, Backoff: runlane.Fixed(webhookLook)},
		SingletonKey: func(p feedPayload) string { return p.Webhook },
	})
	w.send = runlane.NewTask(webhookTask, &runlane.TaskOptions[delivery]{
		IdempotencyKey: func(d delivery) string { return d.key() },
		Queue:          runlane.Queue{Name: webhookQueue},
		Retry:          runlane.Retry{MaxAttempts: WebhookAttempts, Backoff: backoff},
		Timeout:        MaxTimeout + webhookGrace, // a net under the client's own timeout
	})
	return w, nil
}

func quoted(name string) string { return `"` + clip(name) + `"` }

// checked is the webhook with its defaults.
func (h Webhook) checked() (*hook, error) {
	if h.Name == "" {
		h.Name = "default"
	}
	if h.Timeout == 0 {
		h.Timeout = webhookTimeout
	}
	if h.Statuses == nil {
		h.Statuses = runlane.TerminalStatuses()
	}
	made := &hook{Webhook: h}
	var faults []error
	fault := func(hint, format string, args ...any) {
		faults = append(faults, invalid("webhook "+quoted(h.Name)+" "+fmt.Sprintf(format, args...), hint))
	}
	if err := runlane.ScheduleID(h.Name).Validate(); err != nil {
		fault("name it with printable text without ':'", "has a name that is no id")
	}
	if h.Timeout < 0 || h.Timeout > MaxTimeout {
		fault(fmt.Sprintf("use 0 for %s, or at most %s", webhookTimeout, MaxTimeout), "has the timeout %s", h.Timeout)
	}
	for _, status := range h.Statuses {
		if !status.Terminal() {
			fault("use succeeded, failed and cancelled", "is for status %s, which ends no run", quoted(string(status)))
		}
	}
	for _, id := range h.Tasks {
		if err := id.Validate(); err != nil {
			fault("name tasks as their definitions do", "is for a task %s, which none can be", quoted(string(id)))
		}
	}
	var err error
	if made.to, err = h.parsedURL(); err != nil {
		fault("use https://host/path, or with Private http:// to a private address", "%s", err)
	}
	if made.keys, err = parsedSecrets(h.Secrets); err != nil {
		fault("use one secret, or two in a change: \"whsec_\" and the base64 of 24 to 64 random bytes", "%s", err)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	made.client = made.newClient()
	return made, nil
}

// wants reports whether the end of such a run is told.
func (h *hook) wants(task runlane.TaskID, status runlane.Status) bool {
	return task != webhookTask && task != webhookFeedTask && slices.Contains(h.Statuses, status) &&
		(h.Tasks == nil || slices.Contains(h.Tasks, task))
}

// Handlers are for core.Options.Handlers of the runtime that Run is called with.
func (w *Webhooks) Handlers() []runlane.Handler {
	handlers := []runlane.Handler{w.feed.Handle(w.readFeed), w.send.Handle(w.deliver)}
	for i := range handlers {
		handlers[i].Accepts = w.accepts
	}
	return handlers
}

// accepts leaves runs of other webhooks to the servers that have these. Payloads that are none fail.
func (w *Webhooks) accepts(payload []byte) bool {
	d, err := w.send.Decode(payload) // both payloads name the webhook alike
	return err != nil || w.rt.Load() != nil && w.hooks[d.Webhook] != nil
}

// Begin ensures that ends are kept from now on until they are told, also when this process dies. Run does that, too: it
// is for programs that answer requests only once it is so. A storage without a feed is
// runlane.ErrCapabilityUnsupported.
func (w *Webhooks) Begin(ctx context.Context, rt *core.Runtime) error {
	if rt == nil {
		return invalid("webhooks need a runtime", "pass what core.Open returns")
	}
	now, err := rt.Runs().FeedStart(ctx)
	if err != nil {
		if runlane.CodeOf(err) == runlane.ErrCapabilityUnsupported {
			return &runlane.Error{
				Code:    runlane.ErrCapabilityUnsupported,
				Message: "webhooks need the order of commits, which the lane does not keep",
				Hint:    "use a lane in a file or in memory, or trigger a task of yours at the end of your handlers",
				Cause:   err,
			}
		}
		return err
	}
	w.rt.Store(rt)
	from := feedMark{Cursor: now, At: time.Now()}
	for name := range w.hooks {
		if err := w.follow(ctx, rt, name, from); err != nil {
			return err
		}
	}
	return nil
}

// Run begins, and delivers until ctx ends: it executes the two tasks, and ticks, as Runtime.Work does. Then it lets
// requests finish for some seconds. Call it once. Its error is one of Begin, or of Runtime.Work.
func (w *Webhooks) Run(ctx context.Context, rt *core.Runtime) error {
	if err := w.Begin(ctx, rt); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, w.stop)()
	defer func() {
		for _, h := range w.hooks {
			h.client.CloseIdleConnections()
		}
	}()
	var working sync.WaitGroup
	faults := make([]error, 2)
	for i, options := range []core.WorkOptions{
		{Queues: []runlane.QueueName{webhookFeedQueue}, Concurrency: len(w.hooks) + 1, Grace: webhookGrace},
		{Queues: []runlane.QueueName{webhookQueue}, Concurrency: webhookConcurrency, Grace: webhookGrace, NoTick: true},
	} {
		working.Go(func() { // ends with ctx
			defer cancel()
			faults[i] = rt.Work(ctx, &options)
		})
	}
	w.look(ctx, rt)
	working.Wait()
	return errors.Join(faults...)
}

// look ensures again and again that the feed of each webhook is followed.
func (w *Webhooks) look(ctx context.Context, rt *core.Runtime) {
	ticker := time.NewTicker(webhookLook)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := w.Begin(ctx, rt); err != nil && ctx.Err() == nil {
			logger := w.Logger
			if logger == nil {
				logger = slog.Default()
			}
			logger.WarnContext(ctx, "it could not be looked whether webhooks are delivered", "error", err.Error())
		}
	}
}
