package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
	"github.com/runlane/runlane-go/internal/taskbook"
)

// triggerBody is one run to create. Its fields have the names of "trigger --batch".
type triggerBody struct {
	Task           named[runlane.TaskID]    `json:"task" required:"true" doc:"the task"`
	Payload        json.RawMessage          `json:"payload" doc:"any JSON, kept byte by byte; null unless given"`
	Queue          named[runlane.QueueName] `json:"queue" doc:"a queue in place of the task's"`
	RunID          named[runlane.RunID]     `json:"runId" doc:"your own id; a second trigger returns the run"`
	IdempotencyKey *string                  `json:"idempotencyKey" doc:"a second trigger returns the first run"`
	IdempotencyTTL retention                `json:"idempotencyTtl" doc:"how long it is kept: 30d, or while-active"`
	SingletonKey   *string                  `json:"singletonKey" doc:"one run at a time is active; empty is none"`
	ConcurrencyKey *string                  `json:"concurrencyKey" doc:"partitions a bounded queue; empty is none"`
	Priority       int                      `json:"priority" doc:"-8 to 8 among those that wait; the highest goes first"`
	Debounce       span                     `json:"debounce" doc:"the last trigger of this time makes the run, like 10s"`
	DebounceKey    string                   `json:"debounceKey" doc:"one for all triggers of the task unless given"`
	DebounceMax    span                     `json:"debounceMax" doc:"from the first trigger on, at the latest"`
	Throttle       span                     `json:"throttle" doc:"the first trigger of this time makes the run, like 1h"`
	ThrottleKey    string                   `json:"throttleKey" doc:"one for all triggers of the task unless given"`
	Delay          span                     `json:"delay" doc:"before the run starts, like 90s or 2d; this or runAt"`
	RunAt          time.Time                `json:"runAt" doc:"the run does not start before"`
	Meta           map[string]string        `json:"meta" doc:"kept with the run"`
	TraceCarrier   map[string]string        `json:"traceCarrier" doc:"for example a W3C traceparent; the request's unless given"`
	ReturnActive   bool                     `json:"returnActive" doc:"a held singleton key returns its holder"`
	StrictPayload  bool                     `json:"strictPayload" doc:"refuse another payload (scope payloads)"`
	Deferred       bool                     `json:"deferred" doc:"leave the wakeup to the relay or the tick"`
	Foreign        bool                     `json:"foreign" doc:"take the name of the task without looking it up"`
}

type retention time.Duration

// UnmarshalJSON reads a duration or "while-active".
func (r *retention) UnmarshalJSON(text []byte) error {
	if string(text) == strconv.Quote(shown.WhileActive) {
		*r = retention(runlane.WhileActive)
		return nil
	}
	if err := (*span)(r).UnmarshalJSON(text); err != nil {
		return err
	}
	if *r <= 0 {
		return badInput("the time to keep the key is not more than 0", "give a time, while-active, or leave it out")
	}
	return nil
}

// options converts the body for core. TaskKeys marks the keys that are given, even empty ones.
func (b *triggerBody) options(by Access) (*runlane.TriggerOptions, runlane.TaskKeys) {
	o := &runlane.TriggerOptions{
		Actor: by.Actor,
		Debounce: runlane.Debounce{
			Key: b.DebounceKey, Window: time.Duration(b.Debounce), Max: time.Duration(b.DebounceMax),
		},
		Throttle:       runlane.Throttle{Key: b.ThrottleKey, Window: time.Duration(b.Throttle)},
		Deferred:       b.Deferred,
		Delay:          time.Duration(b.Delay),
		IdempotencyTTL: time.Duration(b.IdempotencyTTL),
		Meta:           b.Meta,
		Priority:       b.Priority,
		Queue:          runlane.Queue{Name: b.Queue.ID},
		ReturnActive:   b.ReturnActive,
		RunAt:          b.RunAt,
		RunID:          b.RunID.ID,
		StrictPayload:  b.StrictPayload,
		TraceCarrier:   b.TraceCarrier,
	}
	for _, key := range []struct{ given, to *string }{
		{b.IdempotencyKey, &o.IdempotencyKey},
		{b.SingletonKey, &o.SingletonKey},
		{b.ConcurrencyKey, &o.ConcurrencyKey},
	} {
		if key.given != nil {
			*key.to = *key.given
		}
	}
	return o, runlane.TaskKeys{
		Concurrency: b.ConcurrencyKey != nil,
		Idempotency: b.IdempotencyKey != nil,
		Singleton:   b.SingletonKey != nil,
	}
}

type triggerInput struct {
	Body triggerBody `body:"json" required:"true"`
}

func triggerRun(ctx context.Context, c *call, in *triggerInput) (*reply, error) {
	if err := in.Body.adoptKey(c.r); err != nil {
		return nil, err
	}
	item, err := c.item(ctx, &in.Body)
	if err != nil {
		return nil, err
	}
	result, err := c.rt.Trigger(ctx, item.Call, item.Options)
	if err != nil {
		return nil, err
	}
	return c.triggered(result), nil
}

// triggeredOf does not reveal whether payloads differ if the caller may not read them.
func (c *call) triggeredOf(result *runlane.TriggerResult) *shown.Triggered {
	seen := shown.TriggeredOf(result, 0)
	seen.Differs = seen.Differs && !c.hides(&c.by)
	return seen
}

func (c *call) triggered(result *runlane.TriggerResult) *reply {
	answered := object("triggered", c.triggeredOf(result))
	answered.run, answered.made, answered.sequence = string(result.Run.ID), true, result.Run.EventSequence
	if result.Outcome == runlane.TriggerCreated {
		answered.status = http.StatusCreated
	}
	return answered
}

// adoptKey reads the header Idempotency-Key. The key may be quoted, as a structured field.
func (b *triggerBody) adoptKey(r *http.Request) error {
	lines := r.Header.Values("Idempotency-Key")
	if len(lines) == 0 {
		return nil
	}
	key := strings.TrimSpace(lines[0])
	if len(key) > 1 && strings.HasPrefix(key, `"`) && strings.HasSuffix(key, `"`) {
		key = strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(key[1 : len(key)-1])
	}
	if len(lines) > 1 || key == "" || b.IdempotencyKey != nil && *b.IdempotencyKey != key {
		return badInput("there are several idempotency keys, or an empty one", "give one, in the header or in the body")
	}
	b.IdempotencyKey = &key
	return nil
}

// maxTraceHeader limits a header of a trace; W3C guarantees as much for tracestate.
const maxTraceHeader = 512

// carrierOf reads the trace of the request, so that the run continues it: W3C, and X-Ray's if it is sampled, since AWS
// adds that header to every request. Proxies set them: a header never makes a trigger too large.
func carrierOf(h http.Header, meta map[string]string) map[string]string {
	carrier, room := map[string]string{}, runlane.MaxMetaBytes
	for key, value := range meta {
		room -= len(key) + len(value)
	}
	for _, name := range []string{"traceparent", "tracestate", "X-Amzn-Trace-Id"} {
		value := h.Get(name)
		switch {
		case value == "", len(value) > maxTraceHeader, len(name)+len(value) > room, !utf8.ValidString(value):
		case name == "tracestate" && carrier["traceparent"] == "":
		case name == "X-Amzn-Trace-Id" && !strings.Contains(value, "Sampled=1"):
		default:
			carrier[name] = value
			room -= len(name) + len(value)
		}
	}
	if len(carrier) == 0 {
		return nil
	}
	return carrier
}

// OwnTasks is the prefix of tasks that only this package may trigger, such as those of [Webhook].
const OwnTasks = taskbook.Reserved

// item builds a trigger and looks up its task.
func (c *call) item(ctx context.Context, body *triggerBody) (core.BatchItem, error) {
	if body.StrictPayload && c.hides(&c.by) {
		return core.BatchItem{}, refusal(http.StatusForbidden, codeForbidden,
			"strictPayload tells of payloads, and the caller has no scope payloads, or this server shows none",
			"leave strictPayload out, or use a token that has the scope")
	}
	options, given := body.options(c.by)
	if options.TraceCarrier == nil {
		options.TraceCarrier = carrierOf(c.r.Header, options.Meta)
	}
	book := taskbook.Book{
		Runtime: c.rt,
		Foreign: body.Foreign,
		Tasks:   c.catalog.list,
		Doubt:   func(taskbook.Doubt) {}, // nobody to report to
		Now:     time.Now,
	}
	call, err := book.Call(ctx, body.Task.ID, orNull(body.Payload), options, given)
	return core.BatchItem{Call: call, Options: options}, wordedForHTTP(err)
}

// wordedForHTTP adds hints in terms of the API to errors of the book.
func wordedForHTTP(err error) error {
	if unknown, ok := errors.AsType[*taskbook.UnknownTaskError](err); ok {
		return refusal(http.StatusNotFound, string(runlane.ErrTaskNotFound), unknown.Error(),
			unknown.Known("GET /v1/tasks")+"; \"foreign\": true takes the name as it is")
	}
	if missing, ok := errors.AsType[*taskbook.MissingKeysError](err); ok {
		names := make([]string, len(missing.Kinds))
		for i, kind := range missing.Kinds {
			names[i] = kind + "Key"
		}
		return badInput(missing.Error(), "give "+strings.Join(names, " and ")+", empty for none")
	}
	return err
}

// catalogAge is the time for which tasks stored by other programs are cached. Ticks change them once a day.
const catalogAge = 5 * time.Second

// catalog caches the tasks of the environment. Only tasks of other programs need it.
type catalog struct {
	rt  *core.Runtime
	now func() time.Time

	mu    sync.Mutex
	at    time.Time
	tasks []core.TaskState
}

// list is safe for concurrent use. Callers must not change the tasks.
func (c *catalog) list(ctx context.Context) ([]core.TaskState, error) {
	c.mu.Lock()
	tasks, fresh := c.tasks, !c.at.IsZero() && c.now().Sub(c.at) < catalogAge
	c.mu.Unlock()
	if fresh {
		return tasks, nil
	}
	tasks, err := c.rt.Tasks().List(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.tasks, c.at = tasks, c.now()
	c.mu.Unlock()
	return tasks, nil
}

type batchBody struct {
	Runs []triggerBody `json:"runs" required:"true" doc:"the runs to make, 1 to 10,000"`
}

type batchInput struct {
	Body batchBody `body:"json" required:"true"`
}

// batchResult is the outcome of a batch. Results has one entry for each run, in the same order.
type batchResult struct {
	Created  int         `json:"created"`
	Existing int         `json:"existing"`
	Failed   int         `json:"failed"`
	Results  []oneResult `json:"results"`
}

type oneResult struct {
	*shown.Triggered
	Error *problem `json:"error,omitempty"`
}

// triggerBatch creates each run in its own commit, so that an invalid one fails alone.
func triggerBatch(ctx context.Context, c *call, in *batchInput) (*reply, error) {
	if n := len(in.Body.Runs); n == 0 || n > MaxBatch {
		return nil, badInput(fmt.Sprintf("runs has %d runs", n), fmt.Sprintf("send 1 to %d", MaxBatch))
	}
	result := &batchResult{Results: make([]oneResult, len(in.Body.Runs))}
	items := make([]core.BatchItem, 0, len(in.Body.Runs))
	places := make([]int, 0, len(in.Body.Runs))
	for i := range in.Body.Runs {
		item, err := c.item(ctx, &in.Body.Runs[i])
		if p := problemOfItem(err); p != nil {
			if p.Status >= http.StatusInternalServerError {
				return nil, err // the tasks cannot be looked up, which is not the run's fault
			}
			result.Results[i].Error = p
			continue
		}
		items, places = append(items, item), append(places, i)
	}
	if len(items) > 0 {
		results, err := c.rt.TriggerBatch(ctx, items)
		if err != nil && !slices.ContainsFunc(results, func(r core.BatchResult) bool { return r.Err == nil }) {
			return nil, err // nothing was created
		}
		for i, one := range results {
			result.Results[places[i]] = c.resultOf(&one)
		}
	}
	var total shown.Batch
	for i := range result.Results {
		if one := &result.Results[i]; one.Error != nil {
			total.Failed++
		} else {
			total.Count(one.Outcome)
		}
	}
	result.Created, result.Existing, result.Failed = total.Created, total.Existing, total.Failed
	return object("batch", result), nil
}

func problemOfItem(err error) *problem {
	if err == nil {
		return nil
	}
	return problemOf(err)
}

func (c *call) resultOf(one *core.BatchResult) oneResult {
	if one.Err != nil {
		return oneResult{Error: problemOf(one.Err)}
	}
	return oneResult{Triggered: c.triggeredOf(one.Result)}
}
