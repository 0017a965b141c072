package lives

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

var allSteps = []step[*life]{
	{"trigger", 14, (*life).stepTrigger},
	{"batch", 3, (*life).stepBatch},
	{"run now", 3, (*life).stepRunNow},
	{"deliver", 14, (*life).stepDeliver},
	{"deliver astray", 3, (*life).stepStray},
	{"lose a wakeup", 2, (*life).stepLose},
	{"hold a wakeup up", 2, (*life).stepHold},
	{"execute next", 2, (*life).stepNext},
	{"drain", 1, (*life).stepDrain},
	{"begin an attempt", 6, (*life).stepBegin},
	{"end an attempt", 6, (*life).stepEnd},
	{"interrupt an attempt", 1, (*life).stepInterrupt},
	{"kill a process", 3, (*life).stepKill},
	{"act at once", 4, (*life).stepAtOnce},
	{"advance", 10, (*life).stepAdvance},
	{"advance to", 8, (*life).stepAdvanceTo},
	{"tick", 12, (*life).stepTick},
	{"relay", 3, (*life).stepRelay},
	{"cancel", 5, (*life).stepCancel},
	{"resume a run", 3, (*life).stepGoOn},
	{"resume all", 1, (*life).stepGoOnAll},
	{"rerun", 2, (*life).stepRerun},
	{"retry", 2, (*life).stepRetry},
	{"cancel all", 1, (*life).stepCancelAll},
	{"rerun all", 1, (*life).stepRerunAll},
	{"retry all", 1, (*life).stepRetryAll},
	{"prune", 2, (*life).stepPrune},
	{"reset a key", 1, (*life).stepReset},
	{"requeue", 2, (*life).stepRequeue},
	{"deploy", 3, (*life).stepDeploy},
	{"signal", 4, (*life).stepSignal},
	{"start a flow", 3, (*life).stepFlow},
	{"cancel a flow", 1, (*life).stepFlowCancel},
	{"retry a flow", 2, (*life).stepFlowRetry},
	{"pause a schedule", 1, (*life).stepPause},
	{"resume a schedule", 1, (*life).stepResume},
	{"fire a schedule", 1, (*life).stepFire},
}

var habits = []*habit{
	{name: "anything", tasks: everyTask, outcomes: anyOutcome},
	{ // and of an attempt that dies, of a child that fails, of a node that is cancelled
		name:     "runs that wait",
		tasks:    slices.Concat(waiters, waiters, tasks[:1]),
		outcomes: []string{succeeds, succeeds, succeeds, succeeds, fails, failsFinal, kills, blocks},
		more: map[string]int{
			"signal":       24,
			"deliver":      30,
			"cancel":       3,
			"retry a flow": 3,
			"prune":        3,
		},
	},
	{
		name:     "flows",
		tasks:    []*task{taskOf("once"), taskOf("again"), taskOf("slot"), waiters[0]},
		outcomes: []string{succeeds, succeeds, succeeds, fails, failsFinal, failsFinal, kills},
		more: map[string]int{
			"trigger":       3,
			"batch":         0,
			"signal":        6,
			"deliver":       40,
			"drain":         4,
			"start a flow":  14,
			"cancel a flow": 4,
			"retry a flow":  14,
			"prune":         3,
		},
	},
	{
		name:     "a full queue",
		tasks:    []*task{taskOf("slot"), taskOf("slot"), taskOf("slot"), taskOf("again")},
		outcomes: anyOutcome,
		more: map[string]int{
			"begin an attempt": 12, "end an attempt": 8, "trigger": 8, "cancel": 4, "act at once": 14,
		},
	},
	{
		name:     "dying workers",
		tasks:    []*task{taskOf("once"), taskOf("slot"), taskOf("exact")},
		outcomes: []string{kills, kills, fails, releases, succeeds},
		more: map[string]int{
			"deliver astray":   12,
			"begin an attempt": 10,
			"kill a process":   10,
			"advance to":       16,
			"tick":             16,
			"prune":            0,
		},
	},
	{
		name:     "overtaken workers",
		tasks:    []*task{taskOf("again"), taskOf("slot")},
		outcomes: []string{succeeds, succeeds, fails, releases},
		more: map[string]int{
			"trigger":          3,
			"batch":            0,
			"begin an attempt": 24,
			"advance to":       24,
			"end an attempt":   10,
			"drain":            0,
			"deliver":          6,
			"prune":            1,
			"act at once":      8,
		},
	},
	{ // two ids and one key go from run to run, and from process to process, whose memory of them is old
		name: "ids used again", tasks: tasks[:1], outcomes: anyOutcome, reuses: true,
		more: map[string]int{
			"trigger":    60,
			"batch":      0,
			"run now":    0,
			"cancel":     40,
			"prune":      20,
			"deliver":    4,
			"tick":       4,
			"advance":    4,
			"advance to": 0,
		},
	},
	{
		name: "schedules", tasks: tasks[:1], outcomes: anyOutcome, scheduled: true,
		more: map[string]int{
			"trigger":           3,
			"batch":             0,
			"run now":           0,
			"pause a schedule":  3,
			"resume a schedule": 5,
			"fire a schedule":   3,
			"advance":           20,
			"tick":              24,
			"deploy":            6,
		},
	},
}

// idMaker counts.
type idMaker struct {
	mu sync.Mutex
	n  int
}

func (l *life) newID(prefix string) string {
	l.ids.mu.Lock()
	defer l.ids.mu.Unlock()
	l.ids.n++
	return fmt.Sprintf("%s%08d", prefix, l.ids.n)
}

// drawCall draws a call, and remembers its key.
func (l *life) drawCall(list []*task) (t *task, p payload, o runlane.TriggerOptions) {
	t, p, o = l.drawOptions(list)
	if t.waits() {
		p.Program = pick(l, "program", programs)
	}
	if key := (owned{t.id, o.IdempotencyKey}); key.key != "" && !slices.Contains(l.keys, key) {
		l.keys = append(l.keys, key)
	}
	return t, p, o
}

var delays = []time.Duration{
	2 * time.Second,
	5 * time.Second,
	time.Minute,
	15 * time.Minute,
	15*time.Minute + time.Second,
	40 * time.Minute,
	30 * time.Hour,
}

// told is a call in the words of a history.
func told(p *process, t *task, load payload, o *runlane.TriggerOptions) string {
	return "  " + p.name + ": " + described(t, load, o)
}

// refusals of a call with these options.
func refusals(o *runlane.TriggerOptions) (codes []runlane.ErrorCode) {
	if o.StrictPayload || o.RunID != "" {
		codes = append(codes, runlane.ErrValidationFailed)
	}
	if o.SingletonKey != "" || o.IdempotencyKey != "" || o.RunID != "" {
		codes = append(codes, runlane.ErrStorageConflict)
	}
	return codes
}

// answered notes what a caller was told.
func (l *life) answered(p *process, result *runlane.TriggerResult, err error) {
	if err == nil && !p.dead.Load() {
		l.note("  %s: %s", result.Outcome, result.Run.ID)
		l.book.answers(result.Run.ID)
	}
}

func (l *life) stepTrigger() bool {
	if len(l.book.runs()) >= mostRuns {
		return false
	}
	p := l.process()
	t, load, o := l.drawCall(l.habit.tasks)
	l.drawDelay(&o)
	l.note("%s", told(p, t, load, &o))
	result, err := p.rt.Trigger(l.ctx, p.tasks[t.id].With(load), &o)
	l.allows(p, "trigger", err, refusals(&o)...)
	l.answered(p, result, err)
	return true
}

func (l *life) stepBatch() bool {
	if len(l.book.runs()) >= mostRuns-2 {
		return false
	}
	p := l.process()
	items := make([]core.BatchItem, 2+l.below("items", 3))
	options := make([]runlane.TriggerOptions, len(items))
	for i := range items {
		t, load, o := l.drawCall(l.habit.tasks)
		l.drawDelay(&o)
		o.RunID = runlane.RunID(l.newID("batch_"))
		options[i] = o
		items[i] = core.BatchItem{Call: p.tasks[t.id].With(load), Options: &options[i]}
		l.note("%s", told(p, t, load, &o))
	}
	results, err := p.rt.TriggerBatch(l.ctx, items)
	l.allows(p, "batch", err)
	if len(results) != len(items) {
		l.fail("a batch of %d has %d results", len(items), len(results))
	}
	for i, result := range results {
		l.allows(p, "item", result.Err, refusals(&options[i])...)
		l.answered(p, result.Result, result.Err)
	}
	return true
}

func (l *life) stepRunNow() bool {
	if len(l.book.runs()) >= mostRuns {
		return false
	}
	p := l.process()
	t, load, o := l.drawCall(l.habit.tasks)
	v := l.drawVisit(p)
	l.note("%s: %s", told(p, t, load, &o), v.outcome.kind)
	p.prepare(v)
	result, err := p.rt.RunNow(l.ctx, p.tasks[t.id].With(load), &o)
	p.prepare(nil)
	l.allows(p, "run now", err, append(refusals(&o), runlane.ErrStorageConflict, runlane.ErrTaskNotFound)...)
	l.answered(p, result, err)
	return true
}
