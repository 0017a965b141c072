package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/console/internal/world"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/server"
)

// working is a site with flows and calls.
func working(t *testing.T, options *server.Options) *site {
	t.Helper()
	s := newSite(t, options)
	if err := s.Work(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *site) hasNot(page string, parts ...string) {
	s.t.Helper()
	for _, part := range parts {
		if strings.Contains(page, part) {
			s.t.Errorf("the page has %q", part)
		}
	}
}

func (s *site) node(flow runlane.FlowID, name string) runlane.NodeState {
	s.t.Helper()
	state, err := s.Flows().Get(s.t.Context(), flow)
	if err != nil {
		s.t.Fatal(err)
	}
	n, ok := state.Node(name)
	if !ok {
		s.t.Fatalf("flow %s has no node %s", flow, name)
	}
	return n
}

func TestFlows_AreListedAndShown(t *testing.T) {
	t.Parallel()
	s := working(t, nil)
	failed, waiting := string(s.FailedFlow), string(s.WaitingFlow)

	s.has(s.get(http.StatusOK, "/flows"), "/flows/"+failed, "/flows/"+waiting, "runlane flows list")
	only := s.get(http.StatusOK, "/flows?status=failed")
	s.has(only, "/flows/"+failed, `<option value="failed" selected>`)
	s.hasNot(only, "/flows/"+waiting)
	s.has(s.get(http.StatusOK, "/flows?status=pending"), "No flow matches")
	s.has(s.get(http.StatusBadRequest, "/flows?status=odd"), "flows have no status")
	s.get(http.StatusBadRequest, "/flows?after=odd")
	s.has(s.get(http.StatusOK, "/runs?find="+failed), "Flow "+failed) // the search knows flows

	page := s.get(http.StatusOK, "/flows/"+failed)
	s.has(page, "4 succeeded, 1 failed, 1 cancelled", "the mail server refused it", "undo", "if failed", "always",
		"runlane flows show "+failed, "runlane flows retry --dry-run "+failed, `data-live=""`)
	s.hasNot(page, "Cancel", "<script>", `style="`)
	run := string(s.node(s.FailedFlow, "test/darwin").RunID)
	s.has(page, fmt.Sprintf(`<a href="/runs/%s"><g `, run))
	s.has(s.get(http.StatusOK, "/runs/"+run), `href="/flows/`+failed+`"`, "node test/darwin")

	s.has(s.get(http.StatusOK, "/flows/"+waiting), "1 released", "waiting for others", "waits for the answer of a person (approved)",
		"Still to run, where their conditions are met: undo, tell.", "runlane flows cancel --everything "+waiting, `data-live="list"`)
	s.get(http.StatusNotFound, "/flows/absent")
}

func TestFlow_IsCancelled(t *testing.T) {
	t.Parallel()
	s := working(t, nil)
	at := "/flows/" + string(s.WaitingFlow)
	s.has(s.post(http.StatusOK, at+"/cancel", url.Values{"reason": {"wrong branch"}}), "Cancel everything", "what had begun is being ended or undone")
	if asked, undo := s.node(s.WaitingFlow, "test/darwin"), s.node(s.WaitingFlow, "undo"); asked.Status != runlane.StatusCancelled || undo.Status.Terminal() {
		t.Errorf("the one that waited is %s, what undoes is %s", asked.Status, undo.Status)
	}
	page := s.post(http.StatusOK, at+"/cancel", url.Values{"everything": {"yes"}})
	s.has(page, "Flow "+string(s.WaitingFlow), "Retry what did not succeed…")
	s.hasNot(page, "Cancel everything")
	for _, name := range []string{"undo", "tell"} {
		if n := s.node(s.WaitingFlow, name); n.Status != runlane.StatusCancelled {
			t.Errorf("%s is %s", name, n.Status)
		}
	}
	s.has(s.post(http.StatusBadRequest, at+"/cancel", nil), "there is nothing to cancel")
	s.post(http.StatusNotFound, at+"/explode", nil)
	s.post(http.StatusNotFound, "/flows/absent/cancel", nil)
}

// A retry names its nodes before it makes a run.
func TestFlow_IsRetriedAfterItsNodesWereNamed(t *testing.T) {
	t.Parallel()
	s := working(t, nil)
	at, before := "/flows/"+string(s.FailedFlow), s.node(s.FailedFlow, "test/darwin").RunID
	asked := s.post(http.StatusOK, at+"/retry", nil)
	s.has(asked, "Retry 4 nodes?", "<li>test/darwin</li>", "<li>deploy to all of the machines</li>", "<li>undo</li>",
		"was undone by", "They undid nothing: retry 4",
		"<code>runlane flows retry --nothing-undone "+string(s.FailedFlow)+"</code>")
	s.hasNot(asked, "<li>build</li>", "<li>test/linux</li>")
	if now := s.node(s.FailedFlow, "test/darwin").RunID; now != before {
		t.Fatal("a run was made before it was sure")
	}
	sure := url.Values{"sure": {"yes"}, "reason": {"mail is back"}, "seen": {"0.1"}}
	s.post(http.StatusConflict, at+"/retry", sure) // of other nodes than those that were named
	sure.Set("seen", field(asked, "seen"))
	s.has(s.post(http.StatusBadRequest, at+"/retry", sure), "was undone by")
	sure.Set("nothing-undone", field(asked, "nothing-undone"))
	s.has(s.post(http.StatusOK, at+"/retry", sure), "retried once", "Retried", `data-live="list"`)
	if now := s.node(s.FailedFlow, "test/darwin"); now.RunID == before || now.Status != runlane.StatusQueued {
		t.Errorf("%+v", now)
	}
	s.post(http.StatusBadRequest, at+"/retry", nil) // it has not finished
}

func TestFlow_ReadersSeeAndChangeNothing(t *testing.T) {
	t.Parallel()
	access, words := tokens(t)
	s := working(t, &server.Options{Access: access, Prefix: "/runlane"})
	at := "/flows/" + string(s.FailedFlow)
	page := s.post(http.StatusOK, "/login", url.Values{"token": {words["reader"]}, "to": {at}})
	s.has(page, "4 succeeded", `href="/runlane/runs/`)
	s.hasNot(page, "Retry what")
	s.has(s.post(http.StatusForbidden, at+"/retry", url.Values{"sure": {"yes"}}), "no scope operate")
	s.post(http.StatusForbidden, at+"/cancel", nil)
}

// Names are text, and a graph of a thousand nodes is a table.
func TestFlow_OfAnyShape_IsShown(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	call := world.Welcome.With(json.RawMessage(`1`))
	wide := runlane.NewFlow("wide")
	for i := range runlane.MaxFlowNodes {
		wide.Add(fmt.Sprintf("n%d", i), call, nil)
	}
	// Each behind all before it: lines pass every column.
	knotted := func(id runlane.FlowID, n int) *runlane.Flow {
		f := runlane.NewFlow(id)
		var before []runlane.Node
		for i := range n {
			name := fmt.Sprintf("<b>\"%d", i)
			before = append(before, f.Add(name, call, &runlane.NodeOptions{After: before}))
		}
		return f
	}
	for _, f := range []*runlane.Flow{wide, knotted("long", 30), knotted("short", 8)} {
		if _, err := s.StartFlow(t.Context(), f, nil); err != nil {
			t.Fatal(err)
		}
	}
	page := s.get(http.StatusOK, "/flows/wide")
	s.has(page, "too large to look at", "n999")
	if most := 1 << 20; len(page) > most {
		t.Errorf("a page of %d bytes", len(page))
	}
	s.has(s.get(http.StatusOK, "/flows/long"), "&lt;b&gt;", "too large to look at")
	page = s.get(http.StatusOK, "/flows/short")
	s.has(page, "<svg", "&lt;b&gt;")
	s.hasNot(page, "<b>", "too large to look at")
	if lines := strings.Count(page, `class="arrow"`); lines != 7*8/2 {
		t.Errorf("%d arrows", lines)
	}
}

func TestRun_ShowsWhatItCalled(t *testing.T) {
	t.Parallel()
	s := working(t, nil)
	page := s.get(http.StatusOK, "/runs/"+string(s.Caller))
	s.has(page, "What it called", "report.part · 40 of 40 ended", "… 30 more: 30 succeeded", "runlane runs tree run_caller", "/runs?source=run_caller")
	s.hasNot(page, "<h2>Runs that come from it")
	_, tree, _ := strings.Cut(page, `class="tree"`)
	tree, _, _ = strings.Cut(tree, "</section>")
	if shown := strings.Count(tree, `class="id"`); shown != 10 {
		t.Errorf("%d of 40 are shown", shown)
	}
	s.hasNot(s.get(http.StatusOK, "/runs/"+string(s.Failed)), "What it called")

	// A rerun was not called.
	s.post(http.StatusOK, "/runs/"+string(s.Caller)+"/rerun", nil)
	s.has(s.get(http.StatusOK, "/runs/"+string(s.Caller)), "<h2>Runs that come from it", "What it called")

	// Beyond what a page reads the others are counted alone.
	many := &runlane.TriggerOptions{RunID: "run_many"}
	if _, err := s.Trigger(t.Context(), world.Fanned.With(600), many); err != nil {
		t.Fatal(err)
	}
	if err := s.Runtime.Work(t.Context(), &core.WorkOptions{Drain: true}); err != nil {
		t.Fatal(err)
	}
	s.has(s.get(http.StatusOK, "/runs/run_many"), "600 of 600 ended", "… 590 more: 590 not looked at")
}
