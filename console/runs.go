package console

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
	"github.com/runlane/runlane-go/internal/taskbook"
)

// filterOf reads a filter from a URL or form. It uses the API's names.
func filterOf(query url.Values) (core.RunFilter, error) {
	f := core.RunFilter{
		Queue:       runlane.QueueName(query.Get("queue")),
		ScheduleID:  runlane.ScheduleID(query.Get("schedule")),
		SourceRunID: runlane.RunID(query.Get("source")),
		TaskID:      runlane.TaskID(query.Get("task")),
		Waiting:     runlane.WaitingFor(query.Get("waiting")),

		FailureCode: runlane.ErrorCode(query.Get("failureCode")),
	}
	words := strings.Join(query["status"], ",")
	if words == "" {
		return f, nil
	}
	statuses, unknown := shown.Statuses(words)
	if unknown != nil {
		return f, &runlane.Error{
			Code:    runlane.ErrValidationFailed,
			Message: fmt.Sprintf("there is no status %q", *unknown),
			Hint:    "choose one of the list",
		}
	}
	f.Statuses = statuses
	return f, nil
}

var filterNames = []string{"status", "task", "queue", "schedule", "source", "waiting", "failureCode"}

func onlyFilter(query url.Values) url.Values {
	kept := url.Values{}
	for _, name := range filterNames {
		for _, word := range query[name] {
			if word != "" {
				kept.Add(name, word)
			}
		}
	}
	return kept
}

func (v *visitor) runs() (*page, error) {
	query := v.r.URL.Query()
	if found := strings.TrimSpace(query.Get("find")); found != "" {
		return v.find(found)
	}
	filter, err := filterOf(query)
	if err != nil {
		return nil, err
	}
	runs, err := v.list(core.ListOptions{
		RunFilter: filter, After: runlane.Cursor(query.Get("after")), Limit: 50,
	})
	if err != nil {
		return nil, err
	}
	more := g.Group{}
	if runs.Next != "" {
		next := onlyFilter(query)
		next.Set("after", string(runs.Next))
		more = append(more, v.more("/runs", next))
	}
	p := &page{title: "Runs", nav: "Runs", live: "list", body: g.Group{
		v.filterForm(query),
		v.changedRuns(query),
		v.runTable("Runs", runs.Items, none(runs, g.Group{
			g.Text("No run matches. "), h.A(h.Href(v.Prefix+"/runs"), g.Text("Show all")), g.Text(", or "),
			h.A(h.Href(v.Prefix+"/trigger"), g.Text("trigger one")), g.Text("."),
		})),
		more,
		v.bulkForms(query, filter),
	}}
	if query.Get("after") != "" {
		p.live = "" // only the first page is live
	}
	return p, nil
}

// find redirects to a run or flow by its ID, to the runs of a queue or task by name, or to a run by the prefix of its
// ID.
func (v *visitor) find(what string) (*page, error) {
	ctx := v.r.Context()
	_, err := v.rt.Runs().Get(ctx, runlane.RunID(what))
	switch code := runlane.CodeOf(err); {
	case err == nil:
		return v.redirect("/runs/" + pathEscape(what))
	case code != runlane.ErrRunNotFound && code != runlane.ErrValidationFailed:
		return nil, err
	}
	if _, err := v.rt.Flows().Get(ctx, runlane.FlowID(what)); err == nil {
		return v.redirect(v.flowPath(runlane.FlowID(what)))
	}
	queues, err := v.rt.Queues().InUse(ctx)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(queues, func(q core.QueueState) bool { return string(q.Queue.Name) == what }) {
		return v.redirect("/runs?" + url.Values{"queue": {what}}.Encode())
	}
	tasks, err := v.rt.Tasks().List(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(tasks, func(t core.TaskState) bool { return string(t.ID) == what }) {
		id, err := v.runByPrefix(what)
		if err != nil || id != "" {
			return v.toRun(id, err)
		}
	}
	return v.redirect("/runs?" + url.Values{"task": {what}}.Encode())
}

func (v *visitor) toRun(id runlane.RunID, err error) (*page, error) {
	if err != nil {
		return nil, err
	}
	return v.redirect("/runs/" + pathEscape(string(id)))
}

const prefixesShown = 5

// runByPrefix returns the only run with the prefix, by the rule of the command line, or "".
func (v *visitor) runByPrefix(what string) (runlane.RunID, error) {
	ids, _, err := taskbook.RunsByPrefix(v.r.Context(), v.rt, what)
	switch {
	case runlane.CodeOf(err) == runlane.ErrCapabilityUnsupported || err == nil && len(ids) == 0:
		return "", nil
	case err != nil:
		return "", err
	case len(ids) == 1:
		return ids[0], nil
	}
	var names []string
	for _, id := range ids[:min(len(ids), prefixesShown)] {
		names = append(names, string(id))
	}
	return "", &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		Message: fmt.Sprintf("%q is the beginning of %d runs", what, len(ids)),
		Hint:    "give more of the id: " + strings.Join(names, ", "),
	}
}

func (v *visitor) runTable(name string, runs []runlane.RunSummary, empty g.Node) g.Node {
	rows := g.Map(runs, func(run runlane.RunSummary) g.Node {
		return h.Tr(
			h.Td(h.Class("name"), h.A(h.Href(v.listed("task", string(run.TaskID))), g.Text(visible(string(run.TaskID)))),
				g.If(run.ConcurrencyKey != "", h.Span(h.Class("note"), g.Text(" "+visible(clip(run.ConcurrencyKey, 40)))))),
			h.Td(badge(run.Status), g.Iff(run.Waiting != nil, func() g.Node {
				return h.Span(h.Class("note"), g.Text(" waits for "+waitsFor(run.Waiting)))
			}), g.If(run.FailureCode != "", h.Span(h.Class("note"), g.Text(" "+visible(string(run.FailureCode)))))),
			h.Td(v.shortRun(run.ID)),
			h.Td(v.queueLink(run.Queue)),
			h.Td(g.Textf("%d", run.Counters.Attempts)),
			h.Td(v.ago(run.CreatedAt)),
			h.Td(v.ago(lastOf(&run))),
		)
	})
	return table(name, []string{"Task", "Status", "Run", "Queue", "Attempts", "Created", "Due or ended"}, rows, empty)
}

func lastOf(run *runlane.RunSummary) time.Time {
	if !run.FinishedAt.IsZero() {
		return run.FinishedAt
	}
	return run.RunAt
}

// waitsFor describes a wait, with its question.
func waitsFor(w *runlane.Waiting) string {
	said := clip(shown.WaitsFor(w), 120)
	if asked := shown.Asked(w); asked != "" {
		said += ": " + asked
	}
	return visible(said)
}

var waitingKinds = runlane.WaitingKinds()

func (v *visitor) filterForm(query url.Values) g.Node {
	field := func(name, title string) g.Node {
		id := "filter-" + name
		return h.Div(h.Label(h.For(id), g.Text(title)), h.Input(h.ID(id), h.Name(name), h.Value(query.Get(name)),
			h.AutoComplete("off"), h.Attr("spellcheck", "false")))
	}
	var kinds []string
	for _, kind := range waitingKinds {
		kinds = append(kinds, string(kind))
	}
	return h.Form(h.Class("filter"), h.Method("get"), h.Action(v.Prefix+"/runs"), h.Aria("label", "Filter"),
		choice("status", "Status", strings.Join(query["status"], ","), shown.StatusWords()),
		field("task", "Task"), field("queue", "Queue"), field("schedule", "Schedule"), field("source", "Source run"),
		choice("waiting", "Waits for", query.Get("waiting"), kinds),
		h.Div(h.Button(g.Text("Filter")), g.Text(" "), h.A(h.Href(v.Prefix+"/runs"), g.Text("Clear"))),
	)
}

func (v *visitor) reason() core.ChangeOptions {
	return core.ChangeOptions{Actor: v.Actor, Reason: strings.TrimSpace(v.r.PostFormValue("reason"))}
}
