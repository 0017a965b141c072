package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/runlane/runlane-go"
)

func TestOpen_RefusesWhatItShouldNotMake_WithoutARequest(t *testing.T) {
	t.Parallel()
	to := target{table: "table", queues: map[runlane.QueueName]string{"work": "https://sqs.eu-west-1.amazonaws.com/1/work"}}
	for name, row := range map[string]struct {
		each  int
		to    target
		fault string
	}{
		"no runs":           {0, to, "1 to 100 runs"},
		"too many":          {maxRuns/len(kinds()) + 1, to, "1 to 100 runs"},
		"no standard queue": {1, target{queues: map[runlane.QueueName]string{"a": "https://h/1/a.fifo"}}, "no standard queue"},
	} {
		if _, err := open(t.Context(), aws.Config{}, row.to, row.each, time.Minute); err == nil || !strings.Contains(err.Error(), row.fault) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckStack_OutputsOfAnotherTemplate_NamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	err := checkStack(t.Context(), map[string]string{"EnvironmentName": "prod", "Bucket": "b"}, 1, time.Minute, t.Output())
	if err == nil || !strings.Contains(err.Error(), "TableName") {
		t.Error(err)
	}
}

func TestPlan_FIFOKindsNeedSuchAQueue(t *testing.T) {
	t.Parallel()
	standard, fifo := chooseQueues(map[runlane.QueueName]string{"b": "https://h/1/b", "a": "https://h/1/a", "c": "https://h/1/c.fifo"})
	if standard != "a" || fifo != "c" {
		t.Fatalf("chose %q and %q", standard, fifo)
	}
	with, without := plan("smoke_x", 2, standard, fifo), plan("smoke_x", 2, standard, "")
	if len(with) != 2*len(kinds()) || len(without) != len(with)-2 {
		t.Errorf("%d runs with a FIFO queue, %d without", len(with), len(without))
	}
	var ids []runlane.RunID
	for _, p := range with {
		if ids = append(ids, p.id); p.second != "" {
			ids = append(ids, p.second)
		}
		if p.fifo != (p.options.Queue.Name == fifo) || p.id.Validate() != nil {
			t.Errorf("%s is of queue %s", p.id, p.options.Queue.Name)
		}
	}
	slices.Sort(ids)
	if n := len(ids); len(slices.Compact(ids)) != n || !strings.HasPrefix(string(ids[0]), "smoke_x_") {
		t.Errorf("ids are %q", ids)
	}
}

func TestJudge_TellsWhatDidNotEndAsItShould(t *testing.T) {
	t.Parallel()
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	probeOf := func(name string, run *runlane.Run) *probe {
		all := kinds()
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
