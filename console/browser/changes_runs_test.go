package browser

import (
	"fmt"

	"github.com/chromedp/chromedp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/console/internal/world"
)

func (o *operator) logsIn() {
	o.open("/runs?status=failed")
	o.onPage("Log in")
	o.fill("#token", o.token)
	o.click("Log in")
	o.onPage("Runs")
	o.shows(string(o.Failed))
}

func (o *operator) logsOut() {
	o.open("/runs")
	o.head("Log out")
	o.onPage("Log in")
	o.open("/runs")
	o.onPage("Log in")
}

func (o *operator) cancels() {
	o.openRun(o.Delayed)
	o.fill("#reason-cancel", "wrong address")
	o.click("Cancel")
	o.badge("cancelled")
	o.shows("wrong address")
	o.by(o.Delayed, runlane.StatusCancelled, "wrong address")
}

func (o *operator) resumes() {
	o.openRun(o.Blocked)
	o.fill("#reason-resume", "the quota is higher")
	o.click("Resume now")
	o.badge("queued")
	o.shows("the quota is higher")
	o.by(o.Blocked, runlane.StatusQueued, "the quota is higher")
	o.execute(o.Blocked, runlane.StatusReleased) // its handler asks again
	o.badge("released")
}

func (o *operator) answers() {
	o.openRun(o.Asking)
	o.shows("Refund 40 euros?")
	o.fill("#signal-approved", `{"by":"ada"}`)
	o.click("Answer approved")
	o.badge("queued")
	o.by(o.Asking, runlane.StatusQueued, "")
	o.execute(o.Asking, runlane.StatusSucceeded)
	o.badge("succeeded")
}

func (o *operator) signals() {
	run := o.runNow(world.Ship.With([]byte(`1`)), "")
	o.openRun(run)
	o.fill("#signal-packed", `{"parcels":2}`)
	o.click("Send signal packed")
	o.badge("queued")
	o.by(run, runlane.StatusQueued, "")
	o.execute(run, runlane.StatusSucceeded)
	o.badge("succeeded")
}

func (o *operator) retries() {
	o.openRun(o.Failed)
	o.fill("#reason-retry", "the server is back")
	o.click("Retry")
	o.isAgain(o.Failed, runlane.SourceManualRetry, "the server is back")
}

func (o *operator) reruns() {
	o.openRun(o.Succeeded)
	o.fill("#reason-rerun", "for the report")
	o.click("Rerun")
	o.isAgain(o.Succeeded, runlane.SourceRerun, "for the report")
}

// isAgain judges the run on the page: it repeats another, which stays as it was.
func (o *operator) isAgain(source runlane.RunID, kind runlane.SourceType, reason string) {
	o.t.Helper()
	old := o.run(source)
	o.until("another run is open", fmt.Sprintf(`location.pathname.startsWith("/runs/") && location.pathname != "/runs/%s"`, source))
	o.onPage(string(old.TaskID))
	o.badge("queued")
	o.shows(string(source))
	o.shows(reason)
	made := o.by(o.opened(), runlane.StatusQueued, reason)
	if made.Source.Type != kind || made.Source.RunID != source || !old.Status.Terminal() {
		o.t.Errorf("the source of the new run is %+v; the old one is %s", made.Source, old.Status)
	}
}

func (o *operator) triggersByJSON() {
	o.open("/")
	o.head("Trigger")
	o.onPage("Trigger a run")
	o.do(chromedp.SetValue(chromedp.CSS("#task"), "mail.welcome"))
	o.fill("#payload", `{"to": "eve", "n": 1.50}`)
	o.fill("#key", "by JSON")
	o.click("Trigger")
	o.onPage("mail.welcome")
	o.badge("queued")
	o.isTriggered("mail.welcome", "by JSON", `{"to": "eve", "n": 1.50}`)
}

// A task whose schema is known is triggered by a form of its properties.
func (o *operator) triggersByForm() {
	o.open("/tasks")
	o.do(chromedp.Click(chromedp.CSS(`a[href="/trigger?task=mail.invite"]`)))
	o.onPage("Trigger mail.invite")
	o.fill("#field-0", "ada@example.com")
	o.fill("#field-1", "2")
	o.do(chromedp.SetValue(chromedp.CSS("#field-2"), `"team"`))
	o.fill("#key", "by form")
	o.click("Trigger")
	o.onPage("mail.invite")
	o.badge("queued")
	o.isTriggered("mail.invite", "by form", `{"to":"ada@example.com","seats":2,"plan":"team"}`)
}

// isTriggered judges the run on the page.
func (o *operator) isTriggered(task runlane.TaskID, key, payload string) {
	o.t.Helper()
	run, err := o.Runs().FindCurrent(o.t.Context(), task, key)
	if err != nil || run.ID != o.opened() || string(run.Payload) != payload {
		o.t.Fatalf("%+v, %v", run, err)
	}
	o.by(run.ID, runlane.StatusQueued, "")
}
