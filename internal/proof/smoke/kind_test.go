package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/examples/webhooks"
)

func TestOpen_RefusesWhatItShouldNotMake_WithoutARequest(t *testing.T) {
	t.Parallel()
	to := target{table: "table", queues: map[runlane.QueueName]string{"work": "https://sqs.eu-west-1.amazonaws.com/1/work"}}
	for name, row := range map[string]struct {
		each  int
		to    target
		fault string
	}{
		"no runs":           {-1, to, "1 to 100 runs"},
		"too many":          {maxRuns/len(everyKind()) + 9, to, "1 to 100 runs"},
		"no standard queue": {1, target{queues: map[runlane.QueueName]string{"a": "https://h/1/a.fifo"}}, "no standard queue"},
	} {
		if _, err := open(t.Context(), aws.Config{}, row.to, wish{each: row.each, patience: time.Minute}); err == nil || !strings.Contains(err.Error(), row.fault) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckStack_OutputsOfAnotherTemplate_NamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	err := checkStack(t.Context(), map[string]string{"EnvironmentName": "prod", "Bucket": "b"}, wish{each: 1, patience: time.Minute}, t.Output())
	if err == nil || !strings.Contains(err.Error(), "TableName") {
		t.Error(err)
	}
}

// everyPayload lets a task do all that a check asks for.
func everyPayload() map[string]json.RawMessage {
	return map[string]json.RawMessage{
		webhooks.CheckSucceed: json.RawMessage(`{}`), webhooks.CheckRetry: json.RawMessage(`{}`), webhooks.CheckRelease: json.RawMessage(`{}`),
	}
}

func TestKindsFor_LeaveNoQueueOut(t *testing.T) {
	t.Parallel()
	queues := map[runlane.QueueName]string{
		"b": "https://h/1/b", "a": "https://h/1/a", "c": "https://h/1/c.fifo", "d": "https://h/1/d.fifo", "e": "https://h/1/e",
	}
	for _, row := range []struct {
		queues   []runlane.QueueName
		payloads map[string]json.RawMessage
		want     string
		without  []gap
	}{
		{
			[]runlane.QueueName{"a", "b", "c", "d", "e"}, everyPayload(),
			"eager a, eager in b b, eager in e e, deferred a, unsent a, delayed a, retried a, released a, duplicate a, cancelled a, fifo c, fifo in d d", nil,
		},
		{
			[]runlane.QueueName{"b"}, map[string]json.RawMessage{webhooks.CheckSucceed: json.RawMessage(`1`)},
			"eager b, deferred b, unsent b, delayed b, duplicate b, cancelled b",
			[]gap{
				{"retried", "the task is not told how"}, {"released", "the task is not told how"},
				{"fifo", "the deployment has no such queue"},
			},
		},
	} {
		of := map[runlane.QueueName]string{}
		for _, name := range row.queues {
			of[name] = queues[name]
		}
		chosen, without := kindsFor(of, row.payloads)
		var got []string
		for _, k := range chosen {
			got = append(got, k.label()+" "+string(k.queue))
		}
		if text := strings.Join(got, ", "); text != row.want || !slices.Equal(without, row.without) {
			t.Errorf("%q: %s without %v", row.queues, text, without)
		}
	}
}

func TestPlan_IDsAreDifferentAndValid(t *testing.T) {
	t.Parallel()
	queues := map[runlane.QueueName]string{"a": "https://h/1/a", "b": "https://h/1/b", "c": "https://h/1/c.fifo", "d": "https://h/1/d.fifo"}
	chosen, _ := kindsFor(queues, everyPayload())
	var ids []runlane.RunID
	for _, p := range plan("smoke_x", 2, chosen) {
		if ids = append(ids, p.id); p.second != "" {
			ids = append(ids, p.second)
		}
		if p.fifo != (p.options.ConcurrencyKey != "") || p.options.Queue.Name != p.queue || p.id.Validate() != nil {
			t.Errorf("%s is of queue %s", p.id, p.options.Queue.Name)
		}
	}
	slices.Sort(ids)
	if n := len(ids); n != 2*len(chosen)+2 || len(slices.Compact(ids)) != n || !strings.HasPrefix(string(ids[0]), "smoke_x_") {
		t.Errorf("ids are %q", ids)
	}
}

// A check of many queues makes no more runs than any other, and one of a task of one's own is bounded by its timeout.
func TestPlan_IsBounded(t *testing.T) {
	t.Parallel()
	to := target{queues: map[runlane.QueueName]string{}}
	for n := range 40 {
		name := fmt.Sprintf("q%d", n)
		to.queues[runlane.QueueName(name)] = "https://h/1/" + name
	}
	s := &smoke{task: webhooks.Check.Definition(), memory: 256, patience: 3 * time.Minute}
	if err := s.plan(to, wish{}); err != nil || len(s.probes) != 2*len(s.kinds) || len(s.kinds) != 47 {
		t.Fatalf("%d runs of %d kinds, %v", len(s.probes), len(s.kinds), err)
	}
	cheap := s.atMost()
	s.task = &runlane.Definition{Timeout: time.Minute}
	if long := s.atMost(); cheap > 0.05 || long < 3*cheap || long > 0.5 {
		t.Errorf("at most $%.3f, and $%.3f with a minute each", cheap, long)
	}
	for _, payload := range []string{`{"a":`, `"` + strings.Repeat("x", maxPayload) + `"`} {
		if err := s.plan(to, wish{task: "mine", payload: json.RawMessage(payload)}); err == nil {
			t.Errorf("takes the payload %.10s", payload)
		}
	}
}

func TestJudge_TellsWhatDidNotEndAsItShould(t *testing.T) {
	t.Parallel()
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	probeOf := func(name string, run *runlane.Run) *probe {
		all := everyKind()
		k := &all[slices.IndexFunc(all, func(k kind) bool { return k.name == name })]
		return &probe{kind: k, options: k.options, id: runlane.RunID(name), run: run}
	}
	succeeded := func(c runlane.Counters) *runlane.Run {
		return &runlane.Run{Status: runlane.StatusSucceeded, Counters: c, RunAt: at(10), StartedAt: at(10), FinishedAt: at(11)}
	}
	once, twice := runlane.Counters{Attempts: 1}, runlane.Counters{Attempts: 2}
	early := succeeded(once)
	early.StartedAt = at(9)
	for name, row := range map[string]struct {
		p     *probe
		fault string
	}{
		"succeeded":                 {probeOf("eager", succeeded(once)), ""},
		"an attempt too many":       {probeOf("eager", succeeded(twice)), "Attempts:2"},
		"failed":                    {probeOf("eager", &runlane.Run{Status: runlane.StatusFailed, Counters: once}), "failed after"},
		"never retried":             {probeOf("retried", succeeded(once)), "Retries:1"},
		"executed though cancelled": {probeOf("cancelled", succeeded(once)), "want cancelled"},
		"on time":                   {probeOf("delayed", succeeded(once)), ""},
		"too early":                 {probeOf("delayed", early), "before its time"},
	} {
		row.p.judge()
		if got := row.p.fault; (got == nil) != (row.fault == "") || got != nil && !strings.Contains(got.Error(), row.fault) {
			t.Errorf("%s: %v, want %q", name, got, row.fault)
		}
	}

	first, second := probeOf("fifo", succeeded(once)), probeOf("fifo", succeeded(once))
	if judgeOrder([]*probe{first, second}); first.fault != nil || second.fault == nil {
		t.Errorf("two at once: %v, %v", first.fault, second.fault)
	}
	second = probeOf("fifo", &runlane.Run{StartedAt: at(11), FinishedAt: at(12)})
	if judgeOrder([]*probe{first, second}); second.fault != nil {
		t.Errorf("one after the other: %v", second.fault)
	}
}

// The relay is dead when a tick had to send what it should have sent, however this machine's clock stands.
func TestJudge_DeadRelay_IsFound(t *testing.T) {
	t.Parallel()
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	probeOf := func(name string, committed, started int) *probe {
		all := everyKind()
		k := &all[slices.IndexFunc(all, func(k kind) bool { return k.name == name })]
		p := &probe{kind: k, options: k.options}
		p.committed, p.run = at(committed), &runlane.Run{StartedAt: at(started)}
		return p
	}
	for _, ahead := range []int{0, 100, -100} {
		eager := probeOf("eager", 10+ahead, 11)
		for started, dead := range map[int]bool{12: false, 50: false, 73: true} {
			p := probeOf("deferred", 11+ahead, started)
			if judgeRelay([]*probe{eager, p}); (p.fault != nil) != dead || eager.fault != nil {
				t.Errorf("clock %d s ahead, started at %d: %v", ahead, started, p.fault)
			}
		}
	}
}

func TestSplit_LeavesOutWaitsThatWereAskedFor(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	started := func(ms int) runlane.EventRecord {
		return runlane.EventRecord{Event: runlane.Event{OccurredAt: at(ms), Body: &runlane.RunStarted{}}}
	}
	p := &probe{
		triggered: at(1000), committed: at(1010), run: &runlane.Run{FinishedAt: at(3025)},
		events: []runlane.EventRecord{started(1050), started(3000)},
	}
	const ms = time.Millisecond
	if x, ok := splitOf(p); !ok || x != (split{commit: 10 * ms, start: 40 * ms, end: 25 * ms}) {
		t.Errorf("retried after two seconds: %+v, %t", x, ok)
	}
	p.options.Delay = 20 * ms
	if x, _ := splitOf(p); x.start != 30*ms {
		t.Errorf("put off by 20 ms: %+v", x)
	}
	if _, ok := splitOf(&probe{run: &runlane.Run{}, committed: at(1)}); ok {
		t.Error("a run that never started has no split")
	}
	if got := middleAndMost([]time.Duration{9 * ms, 1 * ms, 5 * ms}); got != "5 / 9" {
		t.Error(got)
	}
	for want, of := range map[string][2]float64{"+10.0 %": {110, 100}, "-0.1 %": {99.9, 100}, "+0.0 %": {5, 5}, "-": {5, 0}} {
		if got := percent(of[0], of[1]); got != want {
			t.Errorf("percent(%v) is %q, want %q", of, got, want)
		}
	}
}
