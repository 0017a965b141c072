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
	"github.com/runlane/runlane-go/internal/outbound"
)

// Webhook is a URL that is notified when runs end. Requests are signed by the Standard Webhooks scheme
// (https://www.standardwebhooks.com).
type Webhook struct {
	// Name identifies the webhook: pending deliveries go to the current URL of their name. "" means "default". The
	// rules of ids apply.
	Name string
	// URL receives the requests. It must be https and lead to public addresses, unless Private is set.
	URL string
	// Secrets are the keys of the signature in the scheme's form: "whsec_" and the base64 of 24 to 64 bytes. One, or
	// during a change two, which then both sign each request.
	Secrets []string
	// Tasks of the runs to notify. nil means all. Runs that deliver webhooks are never included.
	Tasks []runlane.TaskID
	// Statuses of the runs to notify. nil means all three terminal ones.
	Statuses []runlane.Status
	// Payload adds the payload and output of the run to the body.
	Payload bool
	// Private allows this machine and private networks, and http for them.
	Private bool
	// Timeout of the receiver's answer. 0 means 15 s; at most MaxTimeout.
	Timeout time.Duration
}

// Codes of deliveries that failed.
const (
	// ErrWebhookNotDelivered: the receiver did not accept the request. The delivery is retried.
	ErrWebhookNotDelivered runlane.ErrorCode = "webhook_not_delivered"
	// ErrWebhookGone: the receiver answered 410, so the delivery is not retried.
	ErrWebhookGone runlane.ErrorCode = "webhook_gone"
)

// WebhookAttempts limits the attempts of a delivery. They take about two days: after 5 s, 10 s, 20 s … 6 h.
const WebhookAttempts = 20

const (
	// webhookTask delivers the end of one run. webhookFeedTask follows the feed and creates runs of webhookTask.
	webhookTask     runlane.TaskID = "runlane.webhook"
	webhookFeedTask runlane.TaskID = "runlane.webhook-feed"
	// Each has its own queue, so that receivers that do not answer cannot delay reading the feed.
	webhookQueue     runlane.QueueName = "runlane.webhooks"
	webhookFeedQueue runlane.QueueName = "runlane.webhook-feed"

	webhookTimeout     = 15 * time.Second
	webhookConcurrency = 32
	webhookGrace       = 5 * time.Second
	// webhookLook is the interval at which each webhook is checked for a run that follows the feed.
	webhookLook = 5 * time.Second
)

// Webhooks delivers the ends of runs by runs. For each webhook one run follows the environment's feed, keeps its
// cursor, and creates a run of the task "runlane.webhook" for each end, with an idempotency key. So every end is
// delivered even if processes die at any moment, and once even if several processes have the same webhooks; a receiver
// may get a request again if its answer was lost. It is safe for concurrent use.
//
// Ends since the first call of Begin are delivered, roughly in order. The storage must keep the order of commits, like
// those in memory and in a file.
type Webhooks struct {
	// Logger warns when the run that follows the feed cannot be ensured. nil means slog.Default(). Set it before Run.
	Logger *slog.Logger

	hooks   map[string]*hook
	rt      atomic.Pointer[core.Runtime] // nil before Begin
	feed    *runlane.Task[feedPayload]
	send    *runlane.Task[delivery]
	running context.Context // cancelled when Run's attempts must stop
	stop    context.CancelFunc
}

type hook struct {
	Webhook

	to     *url.URL
	keys   [][]byte
	client *http.Client
}

// NewWebhooks checks options. Errors are runlane.ErrConfigurationInvalid, name each problem and contain no secret. It
// starts nothing: pass Handlers to core.Open, then call Run.
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
		Timeout:        MaxTimeout + webhookGrace, // a safety net behind the client's own timeout
	})
	return w, nil
}

func quoted(name string) string { return `"` + clip(name) + `"` }

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
		fault("name it with printable text without ':'", "has a name that is not an id")
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
	made.client = outbound.NewClient(made.reach())
	return made, nil
}

// wants reports whether the webhook delivers the end of such a run.
func (h *hook) wants(task runlane.TaskID, status runlane.Status) bool {
	return task != webhookTask && task != webhookFeedTask && slices.Contains(h.Statuses, status) &&
		(h.Tasks == nil || slices.Contains(h.Tasks, task))
}

// Handlers returns the handlers for core.Options.Handlers of the runtime that is passed to Run.
func (w *Webhooks) Handlers() []runlane.Handler {
	handlers := []runlane.Handler{w.feed.Handle(w.readFeed), w.send.Handle(w.deliver)}
	for i := range handlers {
		handlers[i].Accepts = w.accepts
	}
	return handlers
}

// accepts leaves runs of other webhooks to servers that have them. It takes unreadable payloads, which then fail.
func (w *Webhooks) accepts(payload []byte) bool {
	d, err := w.send.Decode(payload) // both payloads have the field webhook
	return err != nil || w.rt.Load() != nil && w.hooks[d.Webhook] != nil
}

// Begin ensures that all ends from now on are kept until they are delivered, even if this process dies. Run calls it,
// too; call it before accepting requests to be sure. A storage without a feed is runlane.ErrCapabilityUnsupported.
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
				Hint:    "on AWS, set EventBus of the template (docs/events.md); else use a lane in a file or in memory",
				Cause:   err,
			}
		}
		return err
	}
	w.rt.Store(rt)
	from := feedMark{Cursor: now, At: time.Now()}
	for name := range w.hooks {
		if err := w.ensureFeed(ctx, rt, name, from); err != nil {
			return err
		}
	}
	return nil
}

// Run calls Begin and delivers until ctx ends; then it gives requests a few seconds to finish. It executes both tasks
// and ticks, as Runtime.Work does. Call it once.
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
	w.ensureFeeds(ctx, rt)
	working.Wait()
	return errors.Join(faults...)
}

// ensureFeeds ensures periodically that each webhook has a run that follows the feed.
func (w *Webhooks) ensureFeeds(ctx context.Context, rt *core.Runtime) {
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
			logger.WarnContext(ctx, "runlane: could not check that webhooks follow the feed; retrying", "error", err.Error())
		}
	}
}
