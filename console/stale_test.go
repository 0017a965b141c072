package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/console/internal/world"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

// seen is the form of a run's page as it is now, with these fields beside.
func (s *site) seen(id runlane.RunID, fields ...string) url.Values {
	s.t.Helper()
	run, err := s.Runs().Get(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	form := url.Values{"seen": {fmt.Sprint(run.EventSequence)}}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return form
}

// field is the value of a hidden field of a page.
func field(page, name string) string {
	_, after, _ := strings.Cut(page, `name="`+name+`" value="`)
	value, _, _ := strings.Cut(after, `"`)
	return value
}

// A list of which few runs match among very many says what there is, or that not all were looked at: never that there
// are none.
func TestLists_FindWhatIsBehindManyOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	again, err := s.Runs().Rerun(t.Context(), s.Succeeded, nil)
	if err != nil {
		t.Fatal(err)
	}
	items := make([]core.BatchItem, 1_100)
	for i := range items {
		items[i] = core.BatchItem{Call: world.Refund.With(json.RawMessage(`1`))}
	}
	if _, err := s.TriggerBatch(t.Context(), items); err != nil {
		t.Fatal(err)
	}
	s.has(s.get(http.StatusOK, "/"), "Needs attention", string(s.Asking), string(s.Failed), "Made and ended")
	s.has(s.get(http.StatusOK, "/runs?status=failed"), string(s.Failed))
	s.has(s.get(http.StatusOK, "/runs?waiting=input"), string(s.Asking))
	s.has(s.get(http.StatusOK, "/runs/"+string(s.Succeeded)), "Runs that come from it", string(again.ID))
	for range 10 {
		if _, err := s.TriggerBatch(t.Context(), items); err != nil {
			t.Fatal(err)
		}
	}
	s.has(s.get(http.StatusOK, "/"), string(s.Failed), string(s.Asking))
	s.has(s.get(http.StatusOK, "/runs?status=failed"), string(s.Failed))
	f, nightly := lanetest.NewFactory(runlane.DefaultEnvironment), runlane.Source{Type: runlane.SourceSchedule, ScheduleID: "nightly"}
	for range 11_000 { // no index has the runs of a schedule in another queue
		nightly.FireTime = nightly.FireTime.Add(time.Minute)
		_, err := s.Lane().Storage.AppendRunEvents(t.Context(), f.Creation(t, time.Now(), lanetest.RunOptions{Source: nightly, NoDelivery: true}))
		if err != nil {
			t.Fatal(err)
		}
	}
	s.has(s.get(http.StatusOK, "/runs?schedule=nightly&queue=other"), "None among the runs that were looked at, which are not all", "More")
}

// More runs match by the time of the confirmation than the person saw: it is asked again, also for a few.
func TestBulk_OfMoreThanWasSeen_AsksAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	form := url.Values{"task": {"mail.welcome"}, "status": {"active"}}
	page := s.post(http.StatusOK, "/bulk/cancel", form)
	s.has(page, "Cancel 1 runs?")
	other, err := s.Trigger(t.Context(), world.Welcome.With(json.RawMessage(`2`)), nil)
	if err != nil {
		t.Fatal(err)
	}
	form.Set("sure", "yes")
	form.Set("seen", field(page, "seen"))
	s.has(s.post(http.StatusOK, "/bulk/cancel", form), "Now 2 runs match", "Cancel 2 runs?")
	if got := s.status(other.Run.ID); got == runlane.StatusCancelled {
		t.Error("a run was cancelled that no person saw")
	}
}

// unmade is a storage that makes no run that comes from this one.
type unmade struct {
	lane.Storage
	of *runlane.RunID
}

func (u unmade) Unwrap() lane.Storage { return u.Storage }

func (u unmade) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if c.Creates() && c.Projected.Source.RunID == *u.of {
		return nil, &runlane.Error{Code: runlane.ErrStorageUnavailable, Message: "the disk is full"}
	}
	return u.Storage.AppendRunEvents(ctx, c)
}

// Where some of many runs fail, the page says how many were changed, and names those that failed.
func TestBulk_ThatFailsForSome_SaysWhatWasDone(t *testing.T) {
	t.Parallel()
	l, of := memlane.New(), runlane.RunID("none")
	l.Storage = unmade{l.Storage, &of}
	s := newSiteOn(t, l, nil)
	for range 3 {
		run, err := s.RunNow(t.Context(), world.Broken.With(json.RawMessage(`1`)), nil)
		if err != nil {
			t.Fatal(err)
		}
		of = run.Run.ID
	}
	form := url.Values{"status": {"failed"}, "sure": {"yes"}, "seen": {"4"}}
	page := s.post(http.StatusOK, "/bulk/retry", form)
	s.has(page, "retry: 3 of 4 runs were changed, for 0 there was nothing to do, 1 failed", "/runs/"+string(of), "the disk is full")
	of = "none"
	s.has(s.post(http.StatusOK, "/bulk/retry", form), "1 runs were changed. For 3 there was nothing to do")
}

// A button of a page that was read before another person acted does nothing.
func TestRun_ButtonsOfAnOldPage_DoNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	old := s.seen(s.Blocked)
	at := "/runs/" + string(s.Blocked)
	s.post(http.StatusOK, at+"/resume", old)
	for {
		done, err := s.ExecuteNext(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if done == nil || s.status(s.Blocked) == runlane.StatusReleased {
			break
		}
	}
	s.has(s.post(http.StatusConflict, at+"/resume", old), "this has changed since you looked; nothing was done")
	if got := s.status(s.Blocked); got != runlane.StatusReleased {
		t.Errorf("it is %s", got)
	}
}

// A wait is answered once by its form: the same again is one answer, another one is refused, and so is one for a wait
// that is over.
func TestAnswer_IsTakenOnce(t *testing.T) {
	t.Parallel()
	both := runlane.NewTask[int]("both", nil)
	a, b := runlane.NewSignal[string]("a"), runlane.NewSignal[string]("b")
	w := programOn(t, memlane.New(), both.Handle(func(ctx context.Context, attempt *runlane.Attempt, _ int) error {
		var x, y *string
		return runlane.WaitAll(ctx, attempt, nil, a.Into(&x), b.Into(&y))
	}))
	s := siteOf(t, w, nil)
	made, err := w.RunNow(t.Context(), both.With(1), nil)
	if err != nil {
		t.Fatal(err)
	}
	id := made.Run.ID
	at := "/runs/" + string(id) + "/signal"
	first := s.seen(id, "signal", "a", "body", `"yes"`)
	s.post(http.StatusOK, at, first)
	s.post(http.StatusOK, at, first)
	first.Set("body", `"no"`)
	s.post(http.StatusConflict, at, first)
	last := s.seen(id, "signal", "b", "body", `"yes"`)
	s.post(http.StatusOK, at, last)
	s.post(http.StatusConflict, at, last) // the run goes on
}

// A run that waits for more signals than it keeps is answered by a name.
func TestAnswer_ToOneOfMany(t *testing.T) {
	t.Parallel()
	many := runlane.NewTask[int]("many", nil)
	var cases []runlane.Case
	for _, name := range []string{"approve", "reject", "defer", "ask"} {
		cases = append(cases, runlane.NewSignal[bool](name).Into(new(*bool)))
	}
	w := programOn(t, memlane.New(), many.Handle(func(ctx context.Context, attempt *runlane.Attempt, _ int) error {
		return runlane.WaitAny(ctx, attempt, &runlane.WaitOptions{Prompt: "Which?"}, cases...)
	}))
	s := siteOf(t, w, nil)
	made, err := w.RunNow(t.Context(), many.With(1), nil)
	if err != nil {
		t.Fatal(err)
	}
	id := made.Run.ID
	s.has(s.get(http.StatusOK, "/runs/"+string(id)), "Which?", "Name of the signal")
	s.post(http.StatusOK, "/runs/"+string(id)+"/signal", s.seen(id, "signal", "defer", "body", "true"))
	if got := s.status(id); got != runlane.StatusQueued {
		t.Errorf("it is %s", got)
	}
}

// A trigger whose key has a run says that it is an old one.
func TestTrigger_OfAKeyThatIsUsed_SaysSo(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	form := url.Values{"task": {"mail.welcome"}, "payload": {`{"to":"zoe"}`}, "key": {"card-1"}}
	if page := s.post(http.StatusOK, "/trigger", form); strings.Contains(page, "existed already") {
		t.Error("the first run is said to have been there")
	}
	s.has(s.post(http.StatusOK, "/trigger", form), "This run existed already")
	form.Set("payload", "0")
	s.has(s.post(http.StatusOK, "/trigger", form), "This run existed already", "Its payload differs from yours.")
}

// The page of a run with very much in it has bounds.
func TestRun_WithVeryMuch_HasBounds(t *testing.T) {
	t.Parallel()
	steps := runlane.NewTask[int]("steps", nil)
	w := programOn(t, memlane.New(), steps.Handle(func(ctx context.Context, a *runlane.Attempt, _ int) error {
		for i := range 60 {
			if _, err := runlane.Step(ctx, a, fmt.Sprint("step ", i), func(context.Context) ([]int, error) {
				return make([]int, 1_500), nil
			}); err != nil {
				return err
			}
		}
		return nil
	}))
	s := siteOf(t, w, nil)
	made, err := w.RunNow(t.Context(), steps.With(1), nil)
	if err != nil {
		t.Fatal(err)
	}
	page := s.get(http.StatusOK, "/runs/"+string(made.Run.ID))
	if n := strings.Count(page, "<span class=\"number\">"); n < 5_000 || n > 15_000 {
		t.Errorf("the page has %d numbers of JSON", n)
	}
}

// A run is found by the beginning of its id, as on the command line.
func TestFind_ByTheBeginningOfAnId(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for _, id := range []runlane.RunID{"order-4711-paid", "order-4711-sent", "order-4712"} {
		if _, err := s.Trigger(t.Context(), world.Welcome.With(json.RawMessage("1")), &runlane.TriggerOptions{RunID: id}); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"/runs?find=", "/runs/"} {
		s.has(s.get(http.StatusOK, path+"order-4711-p"), "order-4711-paid</code>")
		s.has(s.get(http.StatusBadRequest, path+"order-4711"), "is the beginning of 2 runs", "order-4711-paid, order-4711-sent")
	}
	s.has(s.get(http.StatusOK, "/runs?find=order-9999"), "No run matches")
	s.get(http.StatusNotFound, "/runs/order-9999")
}
