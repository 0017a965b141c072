package lives

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// What the random histories found, as short histories.

func modelTicks(t *testing.T, d *modelDeployment) {
	t.Helper()
	if _, err := d.rt.Tick(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}

func modelOccurrences(t *testing.T, d *modelDeployment) (found []runlane.Occurrence) {
	t.Helper()
	for o, err := range d.rt.Schedules().Occurrences(t.Context(), modelScheduleID, false) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, o)
	}
	return found
}

// A day's schedule becomes an hour's: what its new definition would have had this morning is not missed, it never was.
func TestTick_ChangedSchedule_FiresNothingFromBeforeItsLastLook(t *testing.T) {
	t.Parallel()
	for _, paused := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newModelWorld()
			defer w.close()
			kind := &modelScheduleKind{every: 24 * time.Hour, then: time.Hour}
			old := w.deploy(0, false, kind)
			modelTicks(t, old)
			time.Sleep(24*time.Hour + 5*time.Minute)
			modelTicks(t, old) // fires
			time.Sleep(5*time.Hour + 5*time.Minute)
			modelTicks(t, old) // looks, and notes it
			if paused {
				if err := old.rt.Schedules().Pause(t.Context(), modelScheduleID, nil); err != nil {
					t.Fatal(err)
				}
			}

			changed := w.deploy(0, true, kind)
			for range 2 { // the first look at a new definition and the one after it
				time.Sleep(10 * time.Minute)
				modelTicks(t, changed)
			}
			if err := changed.rt.Schedules().Resume(t.Context(), modelScheduleID, nil); err != nil {
				t.Fatal(err)
			}
			if found := modelOccurrences(t, changed); len(found) != 1 {
				t.Errorf("paused %t: the occurrences are %+v", paused, found)
			}
			time.Sleep(time.Hour)
			modelTicks(t, changed)
			if found := modelOccurrences(t, changed); len(found) != 2 {
				t.Errorf("paused %t: the new definition does not fire: %+v", paused, found)
			}
		})
	}
}

// A run of a bounded queue is queued also before its time. That a queued run is due, however far its writer's clock was ahead, is not
// said of it.
func TestExecuteDelivery_DelayedRunOfABoundedQueue_IsNotTakenEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newModelWorld()
		defer w.close()
		d := w.deploy(1, false, nil)
		result, err := d.rt.Trigger(t.Context(), d.tasks["slot"].With(payload{}), &runlane.TriggerOptions{Delay: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		wakeup := lane.Wakeup{RunKey: lane.RunKey{RunID: result.Run.ID}}
		got, err := d.rt.ExecuteDelivery(t.Context(), wakeup, nil)
		if err != nil || got.Ignored != core.IgnoredNotDue {
			t.Errorf("three seconds early: %+v, %v", got, err)
		}
		time.Sleep(3 * time.Second)
		if got, err = d.rt.ExecuteDelivery(t.Context(), wakeup, nil); err != nil || got.Ignored != "" {
			t.Errorf("in time: %+v, %v", got, err)
		}
	})
}

// A wakeup that was given up waits for a person, also when its queue gets a limit meanwhile.
func TestTick_DeadLetterOfAScheduledRun_IsNotDispatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newModelWorld()
		defer w.close()
		unlimited := w.deploy(0, false, nil)
		result, err := unlimited.rt.Trigger(t.Context(), unlimited.tasks["slot"].With(payload{}), &runlane.TriggerOptions{Delay: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour + time.Minute)
		w.transport.set(modeRejects)
		if _, err := unlimited.rt.Tick(t.Context(), nil); runlane.CodeOf(err) != runlane.ErrTransportPublishFailed {
			t.Fatalf("the transport rejects everything, and the tick says %v", err)
		}
		w.transport.set("")
		limited := w.deploy(1, false, nil)
		modelTicks(t, limited)
		got, err := limited.rt.Runs().Explain(t.Context(), result.Run.ID)
		if err != nil || got.Wait != core.WaitOperator {
			t.Errorf("it waits for %+v, %v", got, err)
		}
	})
}
