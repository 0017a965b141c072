package core_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// shared is a storage that other processes could reach.
type shared struct{ lane.Storage }

func (s shared) Unwrap() lane.Storage { return s.Storage }

func (s shared) Capabilities() lane.StorageCapabilities {
	c := s.Storage.Capabilities()
	c.ProcessLocalState = false
	return c
}

// scheduleWorld is a runtime with schedules, and when their runs executed.
type scheduleWorld struct {
	rt  *core.Runtime
	log bytes.Buffer

	mu    sync.Mutex
	fires map[runlane.ScheduleID][]time.Time // as the runs say
	began map[runlane.ScheduleID][]time.Time // when their attempts began
}

// openSchedules opens a runtime, inside a bubble.
func openSchedules(t *testing.T, storage lane.Storage, when map[runlane.ScheduleID]runlane.When) *scheduleWorld {
	t.Helper()
	w := &scheduleWorld{fires: map[runlane.ScheduleID][]time.Time{}, began: map[runlane.ScheduleID][]time.Time{}}
	task := runlane.NewTask[payload]("scheduled", nil)
	handler := task.Handle(func(_ context.Context, a *runlane.Attempt, _ payload) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		source := a.Run.Source
		w.fires[source.ScheduleID] = append(w.fires[source.ScheduleID], source.FireTime)
		w.began[source.ScheduleID] = append(w.began[source.ScheduleID], time.Now().UTC())
		return nil
	})
	options := core.Options{Handlers: []runlane.Handler{handler}, Logger: slog.New(slog.NewJSONHandler(&w.log, nil))}
	for id, times := range when {
		options.Schedules = append(options.Schedules, runlane.Schedule{ID: id, When: times, Call: task.With(payload{})})
	}
	l := newLane(t, storage, memlane.NewTransport(nil))
	w.rt = openQuiet(t, l, options)
	return w
}

// work works for a while and closes the runtime.
func (w *scheduleWorld) work(t *testing.T, d time.Duration, options *core.WorkOptions) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	if err := errors.Join(w.rt.Work(ctx, options), w.rt.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// warnings are the schedules of the records with the message.
func (w *scheduleWorld) warnings(t *testing.T, message string) string {
	t.Helper()
	var ids []string
	for line := range strings.Lines(w.log.String()) {
		var record struct{ Level, Msg, Schedule, Hint string }
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(err)
		}
		if record.Msg != message {
			continue
		}
		if record.Level != "WARN" || record.Hint == "" {
			t.Errorf("the record is %s", line)
		}
		ids = append(ids, record.Schedule)
	}
	return strings.Join(ids, " ")
}

// aWhile is a moment that no schedule of the tests hits.
const aWhile = 1300 * time.Millisecond

func TestWork_EmbeddedLane_FiresSchedulesAtTheirSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		if err := rest(t.Context(), aWhile); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		w := openSchedules(t, memlane.NewStorage(nil), map[runlane.ScheduleID]runlane.When{
			"often": runlane.Every(5 * time.Second), "odd": runlane.Every(7 * time.Second).From(start.Add(-time.Hour + 3*time.Second)),
			"minutely": runlane.Cron("* * * * *"),
		})
		w.work(t, 10*time.Minute, nil)
		for id, want := range map[runlane.ScheduleID]struct {
			runs     int
			distance time.Duration
		}{"often": {120, 5 * time.Second}, "odd": {86, 7 * time.Second}, "minutely": {10, time.Minute}} {
			fires, began := w.fires[id], w.began[id]
			if len(fires) != want.runs {
				t.Errorf("%s made %d runs in ten minutes, want %d", id, len(fires), want.runs)
			}
			for i := range fires {
				if !began[i].Equal(fires[i]) {
					t.Errorf("%s: the run of %s began at %s", id, fires[i], began[i])
				}
				if i > 0 && fires[i].Sub(fires[i-1]) != want.distance {
					t.Errorf("%s fired at %s and then at %s", id, fires[i-1], fires[i])
				}
			}
		}
		minutes := map[time.Time]int{}
		for _, fire := range w.fires["often"] {
			if fire.Second()%5 != 0 || fire.Nanosecond() != 0 {
				t.Errorf("fired at %s", fire)
			}
			minutes[fire.Truncate(time.Minute)]++
		}
		first, last := start.UTC().Truncate(time.Minute), start.UTC().Truncate(time.Minute).Add(10*time.Minute)
		for minute, fires := range minutes { // the first and the last minute are parts of one
			if fires != 12 && !minute.Equal(first) && !minute.Equal(last) {
				t.Errorf("%d fires in the minute of %s", fires, minute)
			}
		}
		if said := w.warnings(t, "schedule is finer than the ticks that fire it"); said != "" {
			t.Errorf("warned of %s", said)
		}
	})
}

// Where other processes reach the state, ticks fire schedules: an interval below their distance comes once a tick, and opening says so.
func TestWork_SharedState_FiresSchedulesWithTheTickAndWarnsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := openSchedules(t, shared{memlane.NewStorage(nil)}, map[runlane.ScheduleID]runlane.When{
			"often": runlane.Every(5 * time.Second), "minutely": runlane.Every(time.Minute), "daily": runlane.Cron("@daily"),
			"once": runlane.Once(time.Now().Add(time.Hour)), "every-minute": runlane.Cron("* * * * *"),
		})
		const message = "schedule is finer than the ticks that fire it"
		if said := w.warnings(t, message); said != "often" {
			t.Errorf("opening warned of %q", said)
		}
		w.work(t, 10*time.Minute+time.Second, nil)
		if n := len(w.fires["often"]); n < 8 || n > 13 { // ticks are a minute apart, give or take a fifth
			t.Errorf("%d runs in ten minutes", n)
		}
		if said := w.warnings(t, message); said != "often" {
			t.Errorf("working warned again: %q", said)
		}
	})
}

// A worker that leaves maintenance to others fires nothing, and a paused schedule fires at none of its times.
func TestWork_EmbeddedLane_FiresOnlyWhatItShould(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		when := map[runlane.ScheduleID]runlane.When{"often": runlane.Every(5 * time.Second), "paused": runlane.Every(5 * time.Second)}
		storage := memlane.NewStorage(nil)
		idle := openSchedules(t, storage, when)
		idle.work(t, 5*time.Minute, &core.WorkOptions{NoTick: true})
		if len(idle.fires) != 0 {
			t.Errorf("a worker without ticks fired %v", idle.fires)
		}
		w := openSchedules(t, storage, when)
		if err := w.rt.Schedules().Pause(t.Context(), "paused", nil); err != nil {
			t.Fatal(err)
		}
		w.work(t, time.Minute+time.Second, nil)
		if len(w.fires["paused"]) != 0 || len(w.fires["often"]) != 12 {
			t.Errorf("fired %v", w.fires)
		}
	})
}

// unlisted is a storage whose schedules cannot be read while it says so.
type unlisted struct {
	lane.Storage
	mu   sync.Mutex
	fail bool
}

func (u *unlisted) Unwrap() lane.Storage { return u.Storage }

func (u *unlisted) refuse(fail bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.fail = fail
}

func (u *unlisted) ListSchedules(ctx context.Context, q *lane.PageQuery) (*runlane.Page[runlane.ScheduleRecord], error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.fail {
		return nil, &runlane.Error{Code: runlane.ErrStorageUnavailable, Message: "down"}
	}
	return u.Storage.ListSchedules(ctx, q)
}

// A storage that fails in between is no end of the schedule: what was missed is judged by the misfire policy at the next time.
func TestWork_EmbeddedLane_GoesOnFiringAfterAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		storage := &unlisted{Storage: memlane.NewStorage(nil)}
		w := openSchedules(t, storage, map[runlane.ScheduleID]runlane.When{"often": runlane.Every(5 * time.Second)})
		time.AfterFunc(11*time.Second, func() { storage.refuse(true) })
		time.AfterFunc(21*time.Second, func() { storage.refuse(false) })
		start := time.Now()
		w.work(t, 31*time.Second, nil)
		var seconds []float64
		for _, fire := range w.fires["often"] {
			seconds = append(seconds, fire.Sub(start).Seconds())
		}
		if len(seconds) != 4 || seconds[0] != 5 || seconds[1] != 10 || seconds[2] != 25 || seconds[3] != 30 {
			t.Errorf("fired at seconds %v", seconds)
		}
		if !strings.Contains(w.log.String(), "schedules could not be fired at their time") {
			t.Errorf("the log is %s", w.log.String())
		}
	})
}

// near is a storage that other processes reach too, and whose ticks cost little.
type near struct {
	shared

	ticks *atomic.Int64
}

func (n near) Unwrap() lane.Storage { return n.shared }

func (near) TickEvery() time.Duration { return 10 * time.Second }

func (n near) ListRunsNeedingCancellationFinalization(
	ctx context.Context, q *lane.DueQuery,
) (*runlane.Page[lane.RunRef], error) {
	n.ticks.Add(1) // the first stage of each
	return n.shared.ListRunsNeedingCancellationFinalization(ctx, q)
}

// A worker on a storage that is near ticks as often as that says, and fires its schedules at their times.
func TestWork_StorageThatIsNear_TicksMoreOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		storage := near{shared{memlane.NewStorage(nil)}, &atomic.Int64{}}
		w := openSchedules(t, storage, map[runlane.ScheduleID]runlane.When{"often": runlane.Every(7 * time.Second)})
		w.work(t, 2*time.Minute, nil)
		if n := storage.ticks.Load(); n < 10 || n > 16 {
			t.Errorf("%d ticks in two minutes", n)
		}
		if len(w.began["often"]) < 16 {
			t.Errorf("%d runs in two minutes", len(w.began["often"]))
		}
		for i, at := range w.began["often"] {
			if late := at.Sub(w.fires["often"][i]); late > time.Second {
				t.Errorf("the run of %s began %s late", w.fires["often"][i], late)
			}
		}
		if warned := w.warnings(t, "schedule is finer than the ticks that fire it"); warned != "" {
			t.Errorf("warned of %q", warned)
		}
	})
}
