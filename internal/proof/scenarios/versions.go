package scenarios

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// versions is a scene with programs of several versions of one task. Each round of the task is a step and a pause.
type versions struct {
	*scene
	programs map[int]*caller
	tasks    map[int]*runlane.Task[jobPayload]
	told     []string // by each attempt: its version, and what the run began with
}

func newVersions(t *testing.T, h Harness, numbers ...int) *versions {
	t.Helper()
	v := &versions{programs: map[int]*caller{}, tasks: map[int]*runlane.Task[jobPayload]{}}
	for i, number := range numbers {
		task, handler := job("scenario.versions", &runlane.TaskOptions[jobPayload]{Version: number}, v.handle(number))
		v.tasks[number] = task
		if i == 0 {
			v.scene = newScene(t, h, handler)
			v.programs[number] = v.rt
			continue
		}
		v.options.Handlers = []runlane.Handler{handler}
		l, err := lane.New(v.lent(), v.faults.transport(NewScriptedTransport()), nil)
		v.must(err)
		v.programs[number] = v.open(l)
	}
	return v
}

func (v *versions) handle(number int) func(ctx context.Context, a *runlane.Attempt) error {
	return func(ctx context.Context, a *runlane.Attempt) error {
		began, err := a.Began(ctx)
		if err != nil {
			return err
		}
		v.told = append(v.told, fmt.Sprintf("%d of %d", number, began))
		for round := range 3 {
			err := a.Do(ctx, fmt.Sprint("work/", round), func(context.Context) error { return nil })
			if err == nil {
				err = a.Sleep(ctx, fmt.Sprint("pause/", round), time.Hour)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// attempt lets the program of a version execute the run once, after its pause.
func (v *versions) attempt(run *runlane.Run, number int) *runlane.Run {
	v.Helper()
	v.clock.Advance(2 * time.Hour)
	v.rt = v.programs[number]
	return v.execute(run)
}

func (v *versions) wantTold(want ...string) {
	v.Helper()
	if got := strings.Join(v.told, ", "); got != strings.Join(want, ", ") {
		v.Errorf("told %s, want %s", got, strings.Join(want, ", "))
	}
}

// records are the names of what the run remembers, each with its attempt.
func (v *versions) records(run *runlane.Run) string {
	v.Helper()
	records, err := v.rt.Runs().Steps(v.Context(), run.ID)
	v.must(err)
	var names []string
	for _, r := range records {
		names = append(names, fmt.Sprintf("%s %d", r.Name, r.Attempt))
	}
	return strings.Join(names, ", ")
}

func versionBegan(t *testing.T, h Harness) {
	v := newVersions(t, h, 1, 2)
	run := v.execute(v.trigger(v.tasks[1].With(jobPayload{}), nil))
	run = v.attempt(run, 2)
	run = v.attempt(run, 2)
	v.wantStatus(v.attempt(run, 2), runlane.StatusSucceeded)
	v.wantTold("1 of 1", "2 of 1", "2 of 1", "2 of 1")
	const want = "version:1 1, work/0 1, pause/0 1, version:2 2, work/1 2, pause/1 2, work/2 3, pause/2 3"
	if got := v.records(run); got != want {
		t.Errorf("it remembers %s, want %s", got, want)
	}
}

func versionNone(t *testing.T, h Harness) {
	v := newVersions(t, h, 0, 3)
	run := v.execute(v.trigger(v.tasks[0].With(jobPayload{}), nil))
	if got := v.records(run); strings.Contains(got, "version") {
		t.Errorf("a task without a version keeps one: %s", got)
	}
	run = v.attempt(run, 3)
	run = v.attempt(run, 3)
	v.wantStatus(v.attempt(run, 3), runlane.StatusSucceeded)
	v.wantTold("0 of 0", "3 of 0", "3 of 0", "3 of 0")
}

func versionOlder(t *testing.T, h Harness) {
	v := newVersions(t, h, 2, 1)
	run := v.execute(v.trigger(v.tasks[2].With(jobPayload{}), nil))
	run = v.attempt(run, 1)
	v.wantStatus(run, runlane.StatusReleased)
	if left := run.RunAt.Sub(v.now()); run.Counters.Failures > 0 || left <= 0 || left > time.Minute {
		t.Errorf("an older program left it with %+v, due in %s", run.Counters, left)
	}
	history := v.history(run.ID)
	if last := history[len(history)-1].Body; !strings.Contains(fmt.Sprint(last), "version 2 of the task") {
		t.Errorf("the reason is not told: %+v", last)
	}
	run = v.attempt(run, 2)
	v.wantStatus(v.attempt(run, 2), runlane.StatusReleased)
	v.wantTold("2 of 2", "2 of 2", "2 of 2")
}
