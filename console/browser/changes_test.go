package browser

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/server"
)

// A change is something that a person does by the console, with the forms that the browser sends for it.
type change struct {
	name  string
	sends []string
	do    func(*operator)
}

// operator is a person who has logged in and may do everything.
type operator struct {
	*person

	token   string
	refuses *atomic.Bool // the transport, all wakeups
}

// changes are all that the console offers. The first logs in, and the last logs out. Each has runs that no other
// changes.
var changes = []change{
	{"log in", []string{"/login"}, (*operator).logsIn},
	{"cancel", []string{"/runs/{run}/cancel"}, (*operator).cancels},
	{"resume", []string{"/runs/{run}/resume"}, (*operator).resumes},
	{"answer", []string{"/runs/{run}/signal"}, (*operator).answers},
	{"signal", []string{"/runs/{run}/signal"}, (*operator).signals},
	{"retry", []string{"/runs/{run}/retry"}, (*operator).retries},
	{"rerun", []string{"/runs/{run}/rerun"}, (*operator).reruns},
	{"trigger by JSON", []string{"/trigger"}, (*operator).triggersByJSON},
	{"trigger by the form of a schema", []string{"/trigger as"}, (*operator).triggersByForm},
	{"pause and resume a queue", []string{"/queues/{queue}/pause", "/queues/{queue}/resume"}, (*operator).pausesQueue},
	{"pause and resume a schedule", []string{"/schedules/{schedule}/pause", "/schedules/{schedule}/resume"}, (*operator).pausesSchedule},
	{"trigger a schedule", []string{"/schedules/{schedule}/trigger"}, (*operator).triggersSchedule},
	{"cancel a flow", []string{"/flows/{flow}/cancel", "/flows/{flow}/cancel everything"}, (*operator).cancelsFlow},
	{"retry a flow", []string{"/flows/{flow}/retry", "/flows/{flow}/retry sure nothing-undone"}, (*operator).retriesFlow},
	{"requeue a dead letter", []string{"/deadletters/{run}/requeue"}, (*operator).requeues},
	{"cancel many", []string{"/bulk/cancel", "/bulk/cancel sure"}, (*operator).cancelsMany},
	{"resume many", []string{"/bulk/resume", "/bulk/resume sure"}, (*operator).resumesMany},
	{"retry many", []string{"/bulk/retry", "/bulk/retry sure"}, (*operator).retriesMany},
	{"rerun many", []string{"/bulk/rerun", "/bulk/rerun sure"}, (*operator).rerunsMany},
	{"doctor", []string{"/doctor"}, (*operator).checks},
	{"log out", []string{"/logout"}, (*operator).logsOut},
}

// Each change does on every lane what it says: the page shows it, and the runtime has it. No page offers another.
func TestChanges_OnEveryLane(t *testing.T) {
	t.Parallel()
	for name, open := range lanes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOperator(t, open(t))
			for _, c := range changes {
				t.Run(c.name, func(t *testing.T) {
					o.t = t
					o.forms.begin()
					c.do(o)
					if sent := o.forms.since(); !slices.Equal(sent, c.sends) {
						t.Errorf("it has sent the forms %q, and names %q", sent, c.sends)
					}
				})
			}
			o.t = t
			for _, form := range o.forms.unsent() {
				t.Errorf("a page offers %s, which no case sends", form)
			}
		})
	}
}

func newOperator(t *testing.T, l *lane.Lane) *operator {
	t.Helper()
	o := &operator{token: strings.Repeat("operator-", 5), refuses: &atomic.Bool{}}
	access, err := server.TokenAccess(server.Token{Name: "ada", Hash: server.HashToken(o.token), Scopes: server.Scopes()})
	if err != nil {
		t.Fatal(err)
	}
	l.Transport = &refusing{l.Transport, o.refuses}
	o.person = newPerson(t, l, &server.Options{Access: access})
	o.work()
	return o
}

// refusing is a transport that may refuse wakeups for good.
type refusing struct {
	lane.Transport

	now *atomic.Bool
}

func (r *refusing) Unwrap() lane.Transport { return r.Transport }

func (r *refusing) PublishWakeups(ctx context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	if !r.now.Load() {
		return r.Transport.PublishWakeups(ctx, c)
	}
	failure := runlane.Failure{Code: runlane.ErrTransportPublishFailed, Message: "the queue takes none"}
	return slices.Repeat([]lane.PublishOutcome{{
		Type: lane.PublishFailed, Failure: failure, Permanent: true,
	}}, len(c.Attempts)), nil
}

// openRun opens the page of a run.
func (o *operator) openRun(id runlane.RunID) {
	o.t.Helper()
	o.open("/runs/" + string(id))
	o.onPage(string(o.run(id).TaskID))
}

// opened is the run of the page.
func (o *operator) opened() runlane.RunID {
	o.t.Helper()
	return runlane.RunID(strings.TrimPrefix(says[string](o.person, `location.pathname`), "/runs/"))
}

// badge waits until the page shows a status of what it is about.
func (o *operator) badge(status string) {
	o.t.Helper()
	o.until("the page says "+status, fmt.Sprintf(`document.querySelector(".head .badge")?.innerText == %q`, status))
}

func (o *operator) run(id runlane.RunID) *runlane.Run {
	o.t.Helper()
	run, err := o.Runs().Get(o.t.Context(), id)
	if err != nil {
		o.t.Fatal(err)
	}
	return run
}

// by judges a run: its status, and that the person who has logged in did something to it for a reason, "" for none.
func (o *operator) by(id runlane.RunID, status runlane.Status, reason string) *runlane.Run {
	o.t.Helper()
	run := o.run(id)
	if run.Status != status {
		o.t.Errorf("run %s is %s, not %s", id, run.Status, status)
	}
	found := false
	for event, err := range o.Runs().Events(o.t.Context(), id, nil) {
		if err != nil {
			o.t.Fatal(err)
		}
		found = found || event.Actor.ID == "ada" && reasonOf(&event) == reason
	}
	if !found {
		o.t.Errorf("no event of run %s is by ada, for the reason %q", id, reason)
	}
	return run
}

// reasonOf is why a person did what the event says.
func reasonOf(event *runlane.EventRecord) string {
	switch body := event.Body.(type) {
	case *runlane.RunCancelled:
		return body.Reason
	case *runlane.RunResumed:
		return body.Reason
	default:
		return event.Meta["runlane.reason"]
	}
}

// runNow makes a run and executes it once.
func (o *operator) runNow(call runlane.Call, queue runlane.QueueName) runlane.RunID {
	o.t.Helper()
	made, err := o.RunNow(o.t.Context(), call, &runlane.TriggerOptions{Queue: runlane.Queue{Name: queue}})
	if err != nil {
		o.t.Fatal(err)
	}
	return made.Run.ID
}

// execute executes what is due until a run has a status.
func (o *operator) execute(id runlane.RunID, status runlane.Status) {
	o.t.Helper()
	for o.run(id).Status != status {
		if _, err := o.ExecuteNext(o.t.Context(), nil); err != nil {
			o.t.Fatal(err)
		}
	}
}
