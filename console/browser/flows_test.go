package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/console/internal/world"
	"github.com/runlane/runlane-go/memlane"
)

// status is that of a node on the page, in its graph and in the table beside it.
func (p *person) status(node, words string) {
	p.t.Helper()
	p.until(node+" is "+words, fmt.Sprintf(`(() => {
		const box = [...document.querySelectorAll(".graph text.name")].find(e => e.textContent == %q);
		const row = [...document.querySelectorAll("main tbody tr")].find(e => e.cells[0].innerText.split(" ")[0] == %q);
		return box?.parentNode.querySelector(".said").textContent.startsWith(%q) && row?.cells[1].innerText == %q;
	})()`, node, node, words, words))
}

// A flow's page follows its runs, and its graph leads to them.
func TestFlow_IsLiveAndLeadsToItsRuns(t *testing.T) {
	t.Parallel()
	p := newPerson(t, memlane.New(), nil)
	p.work()
	p.open("/flows/" + string(p.WaitingFlow))
	p.onPage("Flow release-43")
	p.status("test/darwin", "released")
	says[bool](p, `window.same = true`)
	state, err := p.Flows().Get(t.Context(), p.WaitingFlow)
	if err != nil {
		t.Fatal(err)
	}
	asking, _ := state.Node("test/darwin")
	if err := p.Signal(t.Context(), asking.RunID, world.Approved.With([]byte(`true`)), nil); err != nil {
		t.Fatal(err)
	}
	p.finish(p.WaitingFlow)
	p.status("test/darwin", "succeeded")
	p.status("tell", "succeeded")
	p.until("the flow shows as completed", `document.querySelector(".head .badge").innerText == "completed"`)
	if !says[bool](p, `window.same === true`) {
		t.Error("the page was loaded again")
	}
	says[bool](p, `document.querySelector(".graph a").focus(), true`)
	stays := says[bool](p, `htmx.ajax("GET", location.href, {target: "#main", select: "#main", swap: "outerMorph"})
		.then(() => document.activeElement === document.querySelector(".graph a"))`)
	if !stays {
		t.Error("the keys are elsewhere after the page was read again")
	}
	p.press(kb.Tab + kb.Tab)
	p.until("the third node has the keys", `document.activeElement.closest(".graph") && document.activeElement.textContent == "test/darwin succeeded"`)
	p.press(kb.Enter)
	p.until("the node's run is open", fmt.Sprintf(`location.pathname == "/runs/%s"`, asking.RunID))
	p.onPage("order.refund")
	p.shows("node test/darwin")
	p.click("release-43")
	p.onPage("Flow release-43")
}

// finish executes what is due until a flow has ended.
func (p *person) finish(id runlane.FlowID) {
	p.t.Helper()
	for {
		state, err := p.Flows().Get(p.ctx, id)
		if err != nil {
			p.t.Fatal(err)
		}
		if state.Status.Ended() {
			return
		}
		if _, err := p.ExecuteNext(p.ctx, nil); err != nil {
			p.t.Fatal(err)
		}
	}
}

// What failed is found and repeated by keys and five clicks, and its nodes are named before anything changes.
func TestFlow_IsRetried(t *testing.T) {
	t.Parallel()
	p := newPerson(t, memlane.New(), nil)
	p.work()
	p.open("/")
	p.onPage("Overview")
	p.press("gf")
	p.onPage("Flows")
	p.do(chromedp.SetValue(chromedp.CSS("#filter-status"), "failed"))
	p.click("Filter")
	p.until("the filter is in the address", `location.search.includes("status=failed")`)
	p.onPage("Flows")
	p.click(string(p.FailedFlow))
	p.onPage("Flow release-42")
	p.click("Retry what did not succeed…")
	p.onPage("Retry 4 nodes?")
	p.shows("deploy to all of the machines")
	p.click("Retry 4")
	p.onPage("Flow release-42")
	p.status("test/darwin", "queued")
	p.shows("Retried")
}

// A run's page follows what the run called, while the run itself waits.
func TestRun_ShowsWhatItCalled(t *testing.T) {
	t.Parallel()
	p := newPerson(t, memlane.New(), nil)
	if _, err := p.Trigger(t.Context(), world.Fanned.With(12), &runlane.TriggerOptions{RunID: "run_caller"}); err != nil {
		t.Fatal(err)
	}
	next := func() {
		if _, err := p.ExecuteNext(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	next()
	p.open("/runs/run_caller")
	p.onPage("report.fanned")
	p.shows("0 of 12 ended")
	p.shows("… 2 more: 2 queued")
	says[bool](p, `window.same = true`)
	next()
	p.until("one of them has ended", `document.body.innerText.includes("1 of 12 ended")`)
	p.shows("… 2 more: 1 queued, 1 succeeded") // those that have not ended come first
	if !says[bool](p, `window.same === true`) {
		t.Error("the page was loaded again")
	}
	first := says[string](p, `document.querySelector(".tree a.id").innerText`)
	p.click(first)
	p.onPage("report.part")
	p.shows("call run_caller")
}
