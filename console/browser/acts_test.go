package browser

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/console/internal/world"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/server"
)

// A run's page shows what happens to it without being read again, also after its server was away.
func TestRun_IsLive(t *testing.T) {
	t.Parallel()
	p := newPerson(t, memlane.New(), nil)
	p.open("/runs/" + string(p.Delayed))
	p.onPage("mail.welcome")
	says[bool](p, `window.same = true`)
	p.until("the stream is open", `document.body.dataset.stream == "open"`)
	address := strings.TrimPrefix(p.url, "http://")
	p.stop()
	p.serve(address)
	if _, err := p.Runs().Cancel(t.Context(), p.Delayed, nil); err != nil {
		t.Fatal(err)
	}
	p.until("the run shows as cancelled", `document.querySelector(".head .badge").innerText == "cancelled"`)
	if !says[bool](p, `window.same === true`) {
		t.Error("the page was loaded again")
	}
}

// asksNothing judges that a page has stopped asking: it does not even when someone comes back to it.
func (p *person) asksNothing() {
	p.t.Helper()
	p.until("nothing more is awaited", `document.body.dataset.stream == "over"`)
	asked := says[int](p, `(() => {
		let asked = 0;
		window.fetch = async () => { asked++; return new Response(); };
		window.EventSource = function () { asked++; };
		document.dispatchEvent(new Event("visibilitychange"));
		return asked;
	})()`)
	if asked != 0 {
		p.t.Errorf("the page has asked %d times", asked)
	}
}

// The page of a run asks for nothing after the run's end, even when the end comes while a person fills in a form.
func TestRun_Ended_AsksNothing(t *testing.T) {
	t.Parallel()
	p := newPerson(t, memlane.New(), nil)
	p.open("/runs/" + string(p.Delayed))
	p.until("the stream is open", `document.body.dataset.stream == "open"`)
	says[bool](p, `(() => {
		document.querySelector("#reason-cancel").focus();
		window.streams = 0;
		const real = EventSource;
		window.EventSource = function (url) { streams++; return new real(url); };
		return true;
	})()`)
	if _, err := p.Runs().Cancel(t.Context(), p.Delayed, nil); err != nil {
		t.Fatal(err)
	}
	p.until("the stream has ended", `document.body.dataset.stream == "lost"`)
	says[bool](p, `(document.activeElement.blur(), true)`)
	p.until("the run shows as cancelled", `document.querySelector(".head .badge").innerText == "cancelled"`)
	p.asksNothing()
	if opened := says[int](p, `window.streams`); opened != 0 {
		t.Errorf("%d streams were opened after the end", opened)
	}
}

// The page of a caller who is not let in any more asks for nothing.
func TestRun_Refused_AsksNothing(t *testing.T) {
	t.Parallel()
	var out atomic.Bool
	p := newPerson(t, memlane.New(), &server.Options{Access: func(*http.Request) (server.Access, error) {
		if out.Load() {
			return server.Access{}, server.ErrForbidden
		}
		return server.Access{Scopes: server.Scopes()}, nil
	}})
	p.open("/runs/" + string(p.Delayed))
	p.until("the stream is open", `document.body.dataset.stream == "open"`)
	out.Store(true)
	address := strings.TrimPrefix(p.url, "http://")
	p.stop()
	p.serve(address)
	p.shows("not kept up to date any more (403)")
	p.asksNothing()
}

// A list shows new runs, and leaves alone what a person does meanwhile.
func TestList_IsLive(t *testing.T) {
	t.Parallel()
	p := newPerson(t, memlane.New(), nil)
	p.open("/runs")
	p.onPage("Runs")
	says[bool](p, `window.same = true`)
	made, err := p.Trigger(t.Context(), world.Welcome.With([]byte(`1`)), nil)
	if err != nil {
		t.Fatal(err)
	}
	p.shows(string(made.Run.ID))
	if !says[bool](p, `window.same === true`) {
		t.Error("the page was loaded again")
	}
	p.do(chromedp.Click(chromedp.CSS("#filter-task")), chromedp.SendKeys(chromedp.CSS("#filter-task"), "mail.bro"))
	p.until("what was typed is there", `document.activeElement.id == "filter-task" && document.activeElement.value == "mail.bro"`)
	p.press(kb.Enter)
	p.until("the filter is in the address", `location.search.includes("task=mail.bro")`)
}

// What a person types and marks while a list is being read stays.
func TestList_WhatIsTypedMeanwhile_Stays(t *testing.T) {
	t.Parallel()
	p := newPerson(t, memlane.New(), nil)
	p.open("/runs")
	p.onPage("Runs")
	says[bool](p, `(() => {
		const read = window.fetch;
		window.fetch = async (...a) => { const all = await read(...a); await new Promise((go) => { window.go = go; }); return all; };
		return true;
	})()`)
	p.press("jj")
	marked := says[string](p, `document.querySelector("tr.here a.id").title`)
	made, err := p.Trigger(t.Context(), world.Welcome.With([]byte(`1`)), nil)
	if err != nil {
		t.Fatal(err)
	}
	p.press("r")
	p.until("the list is being read", `!!window.go`)
	p.do(chromedp.SendKeys(chromedp.CSS("#filter-task"), "mail"))
	says[bool](p, `(window.go(), true)`)
	p.shows(string(made.Run.ID))
	if typed := says[string](p, `document.querySelector("#filter-task").value`); typed != "mail" {
		t.Errorf("typed is %q", typed)
	}
	if now := says[string](p, `document.querySelector("tr.here a.id").title`); now != marked {
		t.Errorf("%s is marked, %s was", now, marked)
	}
}

// Why a run waits is the first that its page says, one click from the overview.
func TestWaiting_IsExplained(t *testing.T) {
	t.Parallel()
	p := newPerson(t, memlane.New(), nil)
	p.open("/")
	p.click(string(p.Blocked))
	p.onPage("report.later")
	p.until("the first lines say why", `document.querySelector("main .why").innerText.includes("an operator")`)
	p.underFive()
}

// An approval is answered in three clicks from the overview.
func TestApproval_IsAnswered(t *testing.T) {
	t.Parallel()
	p := newPerson(t, memlane.New(), nil)
	p.open("/")
	p.shows("waits for the answer of a person (approved): Refund 40 euros?")
	p.click(string(p.Asking))
	p.onPage("order.refund")
	p.shows("Refund 40 euros?")
	p.fill("main textarea", "true")
	p.click("Answer approved")
	p.until("the run goes on", `(document.querySelector(".head .badge")?.innerText ?? "released") != "released"`)
	p.underFive()
	run, err := p.Runs().Get(t.Context(), p.Asking)
	if err != nil || run.Status == runlane.StatusReleased {
		t.Fatal(run.Status, err)
	}
}

// Two hundred failed runs are repaired in four clicks and a number.
func TestFailed_AreRepaired(t *testing.T) {
	t.Parallel()
	p := newPerson(t, memlane.New(), nil)
	p.failed(200)
	p.toRetryAll(201)
	p.do(chromedp.SendKeys(chromedp.CSS("#count"), "201"))
	p.click("retry 201")
	p.onPage("Runs")
	p.underFive()
	waiting, err := p.Queues().Stats(t.Context(), "slow")
	if err != nil || waiting.Waiting != 201 {
		t.Fatalf("%+v, %v", waiting, err)
	}
}

// Everything can be reached by keys alone.
func TestKeys(t *testing.T) {
	t.Parallel()
	p := newPerson(t, memlane.New(), nil)
	p.open("/")
	p.onPage("Overview")
	p.press("gr")
	p.onPage("Runs")
	p.press("jj")
	want := says[string](p, `document.querySelector("tr.here a.id").title`)
	p.press(kb.Enter)
	p.until("the run is open", fmt.Sprintf(`location.pathname == "/runs/%s"`, want))
	p.onPage("")
	p.press("?")
	p.until("the keys are shown", `document.querySelector("#help").open`)
	p.press(kb.Escape)
	p.until("the keys are gone", `!document.querySelector("#help").open`)
	p.press("/")
	p.until("the search has the keys", `document.activeElement.id == "search"`)
	p.press("order.refund" + kb.Enter)
	p.until("the search has found the task", `location.search == "?task=order.refund"`)
}

// A browser logs in by the form, and sees what its token allows.
func TestLogin(t *testing.T) {
	t.Parallel()
	token := strings.Repeat("reader-", 6)
	access, err := server.TokenAccess(server.Token{
		Name: "reader", Hash: server.HashToken(token), Scopes: []server.Scope{server.ScopeRead},
	})
	if err != nil {
		t.Fatal(err)
	}
	p := newPerson(t, memlane.New(), &server.Options{Access: access})
	p.open("/runs?status=failed")
	p.onPage("Log in")
	if says[bool](p, `!!document.querySelector("nav")`) {
		t.Error("pages are offered before the login")
	}
	p.do(chromedp.SendKeys(chromedp.CSS("#token"), token))
	p.click("Log in")
	p.onPage("Runs")
	p.shows(string(p.Failed))
	if says[bool](p, `document.cookie.includes("reader")`) {
		t.Error("a script can read the token")
	}
	p.open("/runs/" + string(p.Failed))
	if says[bool](p, `!!document.querySelector("main form")`) {
		t.Error("a reader is offered a change")
	}
}

// What a person does with a mouse is done by keys alone: an answer, a cancellation with its reason, a trigger by a form.
func TestKeys_Act(t *testing.T) {
	t.Parallel()
	p := newPerson(t, memlane.New(), nil)
	p.open("/runs/" + string(p.Asking))
	p.tabTo("Body, JSON of the type that the task reads: another one ends the run")
	p.press("true")
	p.tabTo("Answer approved")
	p.press(kb.Enter)
	p.until("the run goes on", `(document.querySelector(".head .badge")?.innerText ?? "released") != "released"`)

	p.open("/runs/" + string(p.Delayed))
	p.tabTo("Reason to cancel")
	p.press("by keys")
	p.tabTo("Cancel")
	p.press(kb.Enter)
	p.until("the run is cancelled", `document.querySelector(".head .badge")?.innerText == "cancelled"`)

	p.open("/trigger?task=mail.invite")
	p.tabTo("field:to")
	p.press("ada@example.com")
	p.tabTo("Trigger")
	p.press(kb.Enter)
	p.onPage("mail.invite")

	p.open("/runs/" + string(p.Delayed))
	if !says[bool](p, `document.querySelector("main").textContent.includes("by keys")`) {
		t.Error("the reason is not there")
	}
}

// tabTo presses the tab key until what has this text, name or label has the focus, in the page's main part.
func (p *person) tabTo(text string) {
	p.t.Helper()
	says[bool](p, `(document.querySelector("main").focus(), true)`)
	for range 60 {
		p.press(kb.Tab)
		has := `((e) => [e.innerText, e.name, e.labels?.[0]?.textContent].includes(%q))(document.activeElement)`
		if says[bool](p, fmt.Sprintf(has, text)) {
			checks.Add(1)
			return
		}
	}
	p.t.Fatalf("no key leads to %q: %s", text, says[string](p, `document.activeElement.outerHTML`))
}

// failed makes runs that have failed, beside the one of the world.
func (p *person) failed(n int) {
	p.t.Helper()
	for range n {
		if _, err := p.RunNow(p.ctx, world.Broken.With([]byte(`1`)), nil); err != nil {
			p.t.Fatal(err)
		}
	}
}

// toRetryAll goes from the overview to the question whether all runs that have failed are to be retried.
func (p *person) toRetryAll(n int) {
	p.t.Helper()
	p.open("/")
	p.click("All that failed")
	p.onPage("Runs")
	p.click("Retry all…")
	p.onPage(fmt.Sprintf("Retry %d runs?", n))
}
