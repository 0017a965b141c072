package dynamostore

import (
	"testing"
	"time"
)

func TestOldestDue_IsTheOldestMarkerOfAllKindsThatIsDue(t *testing.T) {
	w := newWorld(t)
	start := w.now
	want := func(at time.Duration, since time.Time) {
		t.Helper()
		got, err := w.store.OldestDue(t.Context(), "test", start.Add(at))
		if err != nil || !got.Equal(since) {
			t.Errorf("after %s the oldest is %v (%v), want %v", at, got, err, since)
		}
	}
	want(time.Hour, time.Time{})
	w.create(eager, 10*time.Minute, nil) // waits for its time
	want(9*time.Minute, time.Time{})
	want(time.Hour, start.Add(10*time.Minute))
	w.pass(time.Minute).create(deferred, 0, nil) // unpublished
	want(time.Hour, start.Add(time.Minute))
	want(30*time.Second, time.Time{})
	if got, err := w.store.OldestDue(t.Context(), "other", start.Add(time.Hour)); err != nil || !got.IsZero() {
		t.Errorf("another environment has %v, %v", got, err)
	}
}
