package core_test

import (
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/doctor"
	"github.com/runlane/runlane-go/memlane"
)

// fired are the fire times of the runs that the schedule made since, oldest first. They are ended.
func (w *twoTickers) fired(since time.Time) (hours []int) {
	w.Helper()
	for o, err := range w.runtimes[0].Schedules().Occurrences(w.Context(), "s", false) {
		if err != nil {
			w.Fatal(err)
		}
		if o.RunID == "" || !o.FireTime.After(since) || o.FireTime.After(w.now) {
			continue
		}
		hours = append(hours, o.FireTime.Hour())
		if run, err := w.runtimes[0].Runs().Get(w.Context(), o.RunID); err != nil || run.Status.Terminal() {
			continue
		}
		if _, err := w.runtimes[0].Runs().Cancel(w.Context(), o.RunID, nil); err != nil {
			w.Fatal(err)
		}
	}
	slices.Reverse(hours)
	return hours
}

// A process whose clock is ahead ticks once. The schedule goes on at its next time and says so, doctor names it, and it does not stop
// either when that time comes.
func TestTick_ClockAhead_TheScheduleGoesOn(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{3 * time.Hour, 365 * 24 * time.Hour} {
		for _, policy := range []runlane.Overlap{
			runlane.OverlapAllow, runlane.OverlapForbid, runlane.OverlapReplace, runlane.OverlapQueueLatest,
		} {
			w := newTwoTickers(t, time.Hour, policy)
			begin := w.now
			w.now = begin.Add(time.Hour + time.Second)
			w.tick(0)
			w.fired(begin)
			right := w.now.Add(30 * time.Minute)
			w.now = right.Add(ahead)
			w.tick(1)
			w.now = right
			state, err := w.runtimes[0].Schedules().Get(t.Context(), "s")
			if err != nil || !state.Next.Equal(begin.Add(2*time.Hour)) || !slices.Equal(state.Doubted, []string{"lastFire"}) {
				t.Errorf("%s %q: the schedule is %+v, %v", ahead, policy, state, err)
			}
			findings, err := doctor.Look(t.Context(), w.runtimes[0])
			named := false
			for _, f := range findings {
				named = named || f.Check == "schedules" && f.Status == doctor.Warned
			}
			if err != nil || !named {
				t.Errorf("%s %q: doctor says %+v, %v", ahead, policy, findings, err)
			}
			for end := begin.Add(7*time.Hour + time.Minute); w.now.Before(end); w.now = w.now.Add(time.Minute) {
				w.tick(0)
				w.fired(begin)
			}
			want := []int{13, 14, 15, 16, 17, 18, 19}
			if ahead == 3*time.Hour {
				want = []int{13, 14, 16, 17, 18, 19} // the record of the skip of 14 and 15 o'clock is at the latter
			}
			if got := w.fired(begin); !slices.Equal(got, want) {
				t.Errorf("%s %q: fired at %v, want %v", ahead, policy, got, want)
			}
		}
	}
}

// A clock that was ahead when the schedule was registered.
func TestTick_RegisteredByAClockAhead_Fires(t *testing.T) {
	t.Parallel()
	w := newTwoTickers(t, time.Hour, runlane.OverlapAllow)
	begin := w.now.Add(-365 * 24 * time.Hour)
	for w.now = begin; w.now.Before(begin.Add(3 * time.Hour)); w.now = w.now.Add(time.Minute) {
		w.tick(0)
	}
	if got := w.fired(begin); !slices.Equal(got, []int{13, 14}) {
		t.Errorf("fired at %v", got)
	}
}

// A changed definition fires no time before its program was opened, whenever the old one noted its evaluations; one with other
// payloads at the same times does not miss what came due in between.
func TestSchedule_Changed_FiresNothingFromBeforeItWasDeployed(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		when runlane.When
		want []int // minutes
	}{
		"other times":   {runlane.Cron("20,40,50 12 * * *"), []int{50}},
		"other payload": {runlane.Cron("45 12 * * *"), []int{45}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
			clock := func() time.Time { return now }
			storage := memlane.NewStorage(&memlane.StorageOptions{Now: clock})
			task := runlane.NewTask[int]("scheduled", nil)
			open := func(when runlane.When, n int) *core.Runtime {
				l := newLane(t, storage, memlane.NewTransport(nil))
				rt := openQuiet(t, l, core.Options{World: &core.World{Now: clock}, Schedules: []runlane.Schedule{{
					ID: "s", When: when, Call: task.With(n),
				}}})
				return rt
			}
			tick := func(rt *core.Runtime) {
				tick(t, rt)
			}
			old := open(runlane.Cron("45 12 * * *"), 1)
			for ; now.Minute() < 44; now = now.Add(time.Minute) {
				tick(old)
			}
			now = now.Add(2 * time.Minute) // 12:46
			changed := open(c.when, 2)
			for ; now.Minute() < 55; now = now.Add(time.Minute) {
				tick(changed)
			}
			var got []int
			for o, err := range changed.Schedules().Occurrences(t.Context(), "s", false) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, o.FireTime.Minute())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("fired at %v, want %v", got, c.want)
			}
		})
	}
}
