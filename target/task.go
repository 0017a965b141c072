package target

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/runlane/runlane-go"
)

type taskEntry struct {
	HTTP            *httpEntry               `yaml:"http"`
	Command         *commandEntry            `yaml:"command"`
	Receipt         receiptEntry             `yaml:"receipt"`
	Queue           runlane.QueueName        `yaml:"queue"`
	Concurrency     int                      `yaml:"concurrency"`
	DispatchTimeout span                     `yaml:"dispatchTimeout"`
	Rate            runlane.Rate             `yaml:"rate"`
	Burst           int                      `yaml:"burst"`
	MaxAttempts     int                      `yaml:"maxAttempts"`
	Backoff         span                     `yaml:"backoff"`
	MaxBackoff      span                     `yaml:"maxBackoff"`
	NoJitter        bool                     `yaml:"noJitter"`
	Timeout         span                     `yaml:"timeout"`
	IdempotencyTTL  span                     `yaml:"idempotencyTtl"`
	IdempotencyKey  string                   `yaml:"idempotencyKey"`
	ConcurrencyKey  string                   `yaml:"concurrencyKey"`
	SingletonKey    string                   `yaml:"singletonKey"`
	Schedules       map[string]scheduleEntry `yaml:"schedules"`
}

// receiptEntry chooses what receipts have.
type receiptEntry struct {
	Headers []string `yaml:"headers"`
	Body    bool     `yaml:"body"`
	Output  *bool    `yaml:"output"`
}

type scheduleEntry struct {
	Cron    string          `yaml:"cron"`
	Zone    string          `yaml:"zone"`
	Every   span            `yaml:"every"`
	At      time.Time       `yaml:"at"`
	Payload any             `yaml:"payload"`
	Misfire misfireEntry    `yaml:"misfire"`
	Overlap runlane.Overlap `yaml:"overlap"`
}

type misfireEntry struct {
	Policy    runlane.MisfirePolicy `yaml:"policy"`
	Tolerance span                  `yaml:"tolerance"`
	Limit     int                   `yaml:"limit"`
	Window    span                  `yaml:"window"`
}

// span is a duration of more than 0, like 90s or 2d.
type span time.Duration

// UnmarshalYAML reads the form of runlane.ParseDuration.
func (s *span) UnmarshalYAML(node *yaml.Node) error {
	d, err := runlane.ParseDuration(node.Value)
	if err != nil || d <= 0 {
		return fmt.Errorf("line %d: %.40q is not a time like 90s or 2d", node.Line, node.Value)
	}
	*s = span(d)
	return nil
}

// codes are statuses or exit codes: numbers, and ranges like 400-499.
type codes [][2]int

// UnmarshalYAML reads a list.
func (c *codes) UnmarshalYAML(node *yaml.Node) error {
	var words []string
	if err := node.Decode(&words); err != nil {
		return fmt.Errorf("line %d: write a list like [404, 410-499]", node.Line)
	}
	*c = codes{}
	for _, word := range words {
		first, last, isRange := strings.Cut(word, "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || from < 0 || from > to || to > 999 {
			return fmt.Errorf("line %d: %.40q is not a code, nor a range of codes like 400-499", node.Line, word)
		}
		*c = append(*c, [2]int{from, to})
	}
	return nil
}

func (c codes) has(code int) bool {
	return slices.ContainsFunc(c, func(r [2]int) bool { return r[0] <= code && code <= r[1] })
}

// work executes an attempt.
type work func(ctx context.Context, a *runlane.Attempt, payload json.RawMessage) error

func (b *builder) addTask(to *Targets, e *taskEntry) {
	var do work
	timeout := time.Duration(e.Timeout)
	switch {
	case (e.HTTP == nil) == (e.Command == nil):
		b.fault("give it http or command", "it has not exactly one target")
		return
	case e.HTTP != nil:
		do = b.request(e)
		timeout = e.httpTimeout() + requestGrace
	default:
		do = b.command(e)
	}
	task := runlane.NewTask(runlane.TaskID(b.task), b.options(e, timeout))
	if err := task.Definition().Err(); err != nil {
		b.faults = append(b.faults, err)
		return
	}
	to.Handlers = append(to.Handlers, task.Handle(do))
	for _, id := range slices.Sorted(maps.Keys(e.Schedules)) {
		entry := e.Schedules[id]
		if schedule, ok := b.schedule(id, &entry); ok {
			schedule.Call = task.With(schedulePayload(entry.Payload))
			if _, err := schedule.Call.Prepare(); err != nil {
				b.fault("give the schedule the payload that the task's keys need", "schedule %q: %s", id, err)
			}
			to.Schedules = append(to.Schedules, schedule)
		}
	}
}

func (b *builder) options(e *taskEntry, timeout time.Duration) *runlane.TaskOptions[json.RawMessage] {
	o := &runlane.TaskOptions[json.RawMessage]{
		IdempotencyTTL: time.Duration(e.IdempotencyTTL),
		Retry:          runlane.Retry{MaxAttempts: e.MaxAttempts, NoJitter: e.NoJitter},
		Timeout:        timeout,
		ConcurrencyKey: b.key("concurrencyKey", e.ConcurrencyKey),
		IdempotencyKey: b.key("idempotencyKey", e.IdempotencyKey),
		SingletonKey:   b.key("singletonKey", e.SingletonKey),
	}
	queue := runlane.Queue{
		Name: e.Queue, Concurrency: e.Concurrency, DispatchTimeout: time.Duration(e.DispatchTimeout),
		Rate: e.Rate, Burst: e.Burst,
	}
	if queue != (runlane.Queue{}) {
		o.Queue = queue
	}
	switch {
	case e.MaxBackoff > 0:
		o.Retry.Backoff = runlane.Exponential{Base: time.Duration(e.Backoff), Max: time.Duration(e.MaxBackoff)}
	case e.Backoff > 0:
		o.Retry.Backoff = runlane.Fixed(e.Backoff)
	}
	return o
}

func (b *builder) key(what, text string) func(json.RawMessage) string {
	if text == "" {
		return nil
	}
	t := b.template(what, text)
	if strings.Contains(text, "${secret.") {
		b.fault("use fields of the payload", "%s names a secret, and keys are shown with runs", what)
	}
	if slices.ContainsFunc(t, func(p part) bool { return p.of == "run" }) {
		b.fault("use fields of the payload", "%s names the run, which is not made yet", what)
	}
	return t.keyOf
}

func (b *builder) schedule(id string, e *scheduleEntry) (schedule runlane.Schedule, ok bool) {
	chosen := 0
	schedule = runlane.Schedule{
		ID: runlane.ScheduleID(id), Overlap: e.Overlap,
		Misfire: runlane.Misfire{
			Policy: e.Misfire.Policy, Tolerance: time.Duration(e.Misfire.Tolerance),
			Limit: e.Misfire.Limit, Window: time.Duration(e.Misfire.Window),
		},
	}
	if e.Cron != "" {
		chosen++
		schedule.When = runlane.Cron(e.Cron)
	}
	if e.Every > 0 {
		chosen++
		schedule.When = runlane.Every(time.Duration(e.Every))
	}
	if !e.At.IsZero() {
		chosen++
		schedule.When = runlane.Once(e.At)
	}
	if chosen != 1 {
		b.fault("give it one of cron, every and at", "schedule %q has not exactly one time", id)
		return schedule, false
	}
	if e.Zone != "" {
		schedule.When = schedule.When.In(e.Zone)
	}
	if err := schedule.When.Validate(); err != nil {
		b.fault("", "schedule %q: %s", id, err)
		return schedule, false
	}
	if _, err := json.Marshal(e.Payload); err != nil {
		b.fault("write names in quotes", "schedule %q has a payload that JSON has not", id)
		return schedule, false
	}
	return schedule, true
}

// schedulePayload returns the payload of a schedule's runs, {} unless given.
func schedulePayload(value any) json.RawMessage {
	if value == nil {
		return json.RawMessage("{}")
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil // the schedule is refused
	}
	return text
}
