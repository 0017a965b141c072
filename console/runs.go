package console

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
	"github.com/runlane/runlane-go/server"
)

// filterOf reads the filter of an address or a form; the names are those of the API.
func filterOf(query url.Values) (core.RunFilter, error) {
	f := core.RunFilter{
		Queue:       runlane.QueueName(query.Get("queue")),
		ScheduleID:  runlane.ScheduleID(query.Get("schedule")),
		SourceRunID: runlane.RunID(query.Get("source")),
		TaskID:      runlane.TaskID(query.Get("task")),
		Waiting:     runlane.WaitingFor(query.Get("waiting")),
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

// filterNames are the fields of a filter in an address.
var filterNames = []string{"status", "task", "queue", "schedule", "source", "waiting"}

// onlyFilter is an address's filter, without what else stands there.
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
	runs, err := v.rt.Runs().List(v.r.Context(), &core.ListOptions{
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
		v.runTable("Runs", runs.Items, g.Group{
			g.Text("No run matches. "), h.A(h.Href(v.Prefix+"/runs"), g.Text("Show all")), g.Text(", or "),
			h.A(h.Href(v.Prefix+"/trigger"), g.Text("trigger one")), g.Text("."),
		}),
		more,
		v.bulkForms(query, filter),
	}}
	if query.Get("after") != "" {
		p.live = "" // a page behind the first one is read, not watched
	}
	return p, nil
}

// find goes to a run or a flow by its id, or to the runs of a task or a queue by their name.
func (v *visitor) find(what string) (*page, error) {
	to := ""
	_, err := v.rt.Runs().Get(v.r.Context(), runlane.RunID(what))
	switch code := runlane.CodeOf(err); {
	case err == nil:
		to = "/runs/" + url.PathEscape(what)
	case code != runlane.ErrRunNotFound && code != runlane.ErrValidationFailed:
		return nil, err
	default:
		if _, err := v.rt.Flows().Get(v.r.Context(), runlane.FlowID(what)); err == nil {
			return v.redirect(v.flowPath(runlane.FlowID(what)))
		}
		queues, err := v.rt.Queues().InUse(v.r.Context())
		if err != nil {
			return nil, err
		}
		field := "task"
		if slices.ContainsFunc(queues, func(q core.QueueState) bool { return string(q.Queue.Name) == what }) {
			field = "queue"
		}
		to = "/runs?" + url.Values{field: {what}}.Encode()
	}
	return v.redirect(to)
}

func (v *visitor) runTable(name string, runs []runlane.RunSummary, empty g.Node) g.Node {
	rows := g.Map(runs, func(run runlane.RunSummary) g.Node {
		return h.Tr(
			h.Td(badge(run.Status), g.Iff(run.Waiting != nil, func() g.Node {
				return h.Span(h.Class("note"), g.Text(" waits for "+waitsFor(run.Waiting)))
			}), g.If(run.FailureCode != "", h.Span(h.Class("note"), g.Text(" "+visible(string(run.FailureCode)))))),
			h.Td(v.runLink(run.ID)),
			h.Td(h.A(h.Href(v.listed("task", string(run.TaskID))), g.Text(visible(string(run.TaskID))))),
			h.Td(v.queueLink(run.Queue)),
			h.Td(g.Textf("%d", run.Counters.Attempts)),
			h.Td(v.ago(run.CreatedAt)),
			h.Td(v.ago(lastOf(&run))),
		)
	})
	return table(name, []string{"Status", "Run", "Task", "Queue", "Attempts", "Created", "Due or ended"}, rows, empty)
}

// lastOf is when a run ended, or when it is due.
func lastOf(run *runlane.RunSummary) time.Time {
	if !run.FinishedAt.IsZero() {
		return run.FinishedAt
	}
	return run.RunAt
}

// waitsFor says what a suspended run waits for, in a few words.
func waitsFor(w *runlane.Waiting) string {
	var words []string
	for _, kind := range w.For {
		if kind == runlane.WaitingSignal && w.Has(runlane.WaitingInput) {
			continue // a person is asked for it
		}
		words = append(words, waitWord(kind))
	}
	said := strings.Join(words, " or ")
	if len(w.Names) > 0 {
		said += " " + clip(strings.Join(w.Names, ", "), 60)
	}
	return visible(said)
}

// waitWord is a kind of wait as a sentence has it.
func waitWord(kind runlane.WaitingFor) string {
	switch kind {
	case runlane.WaitingBlocked:
		return "an operator"
	case runlane.WaitingInput:
		return "the answer of a person:"
	case runlane.WaitingChildren, runlane.WaitingEnds:
		return "runs"
	default:
		return string(kind)
	}
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
		choice("status", "Status", query.Get("status"), shown.StatusWords()),
		field("task", "Task"), field("queue", "Queue"), field("schedule", "Schedule"), field("source", "Source run"),
		choice("waiting", "Waits for", query.Get("waiting"), kinds),
		h.Div(h.Button(g.Text("Filter")), g.Text(" "), h.A(h.Href(v.Prefix+"/runs"), g.Text("Clear"))),
	)
}

// bulks are the changes that many runs can get at once.
var bulks = []struct{ name, title, does string }{
	{"cancel", "Cancel", "active runs end; those that execute are asked to"},
	{"resume", "Resume", "waiting runs go on now"},
	{"retry", "Retry", "failed runs are repeated, as new runs"},
	{"rerun", "Rerun", "finished runs are repeated, as new runs"},
}

// bulkForms offer changes of all runs that match. Each counts first.
func (v *visitor) bulkForms(query url.Values, filter core.RunFilter) g.Node {
	kept := onlyFilter(query)
	if !v.Has(server.ScopeOperate) || len(kept) == 0 {
		return g.Group{}
	}
	var forms g.Group
	for _, b := range bulks {
		if !fits(b.name, filter.Statuses) {
			continue
		}
		forms = append(forms, h.Form(h.Method("post"), h.Action(v.Prefix+"/bulk/"+b.name), hiddenFields(kept),
			h.Button(g.Text(b.title+" all…")), h.Span(h.Class("note"), g.Text(" "+b.does)),
		))
	}
	if len(forms) == 0 {
		return g.Group{}
	}
	return h.Section(h.H2(g.Text("All that match")),
		h.P(h.Class("note"), g.Text("Nothing changes before you have seen the count.")), forms)
}

// fits reports whether a change means anything for a list of those statuses.
func fits(change string, statuses []runlane.Status) bool {
	if len(statuses) == 0 {
		return true
	}
	return slices.ContainsFunc(statuses, func(s runlane.Status) bool {
		switch change {
		case "cancel":
			return s.Active()
		case "resume":
			return s.Waiting()
		case "retry":
			return s == runlane.StatusFailed
		default:
			return s.Terminal()
		}
	})
}

func hiddenFields(values url.Values) g.Node {
	var fields g.Group
	for _, name := range filterNames {
		for _, value := range values[name] {
			fields = append(fields, h.Input(h.Type("hidden"), h.Name(name), h.Value(value)))
		}
	}
	return fields
}

// confirmAbove is how many runs are changed without typing their number.
const confirmAbove = 100

// bulk counts, then asks, then changes.
func (v *visitor) bulk() (*page, error) {
	change := v.r.PathValue("change")
	runs := v.rt.Runs()
	do, known := map[string]bulkCall{
		"cancel": runs.CancelAll,
		"resume": runs.ResumeAll,
		"retry":  runs.RetryAll,
		"rerun":  runs.RerunAll,
	}[change]
	if !known {
		return v.nothing()
	}
	kept := onlyFilter(v.r.PostForm)
	filter, err := filterOf(kept)
	if err != nil {
		return nil, err
	}
	options := &core.BulkOptions{RunFilter: filter, ChangeOptions: v.reason(), DryRun: true}
	counted, err := v.all(options, do)
	if err != nil {
		return nil, err
	}
	said := v.r.PostFormValue("count")
	sure := v.r.PostFormValue("sure") == "yes" &&
		(counted.Matched <= confirmAbove || said == fmt.Sprint(counted.Matched))
	if !sure {
		return v.ask(change, kept, counted.Matched, v.r.PostFormValue("sure") == "yes"), nil
	}
	options.DryRun = false
	done, err := v.all(options, do)
	if err == nil && len(done.Failed) > 0 {
		for id, fault := range done.Failed {
			err = fmt.Errorf("%d of %d were changed; run %s: %w", done.Changed, done.Matched, id, fault)
			break
		}
	}
	return v.changed(change+" all", kept.Encode(), "/runs?"+kept.Encode(), err)
}

// bulkCall changes all runs that match.
type bulkCall func(context.Context, *core.BulkOptions) (*core.BulkResult, error)

// bulkMost bounds what one request changes.
const bulkMost = 10_000

// all makes calls until none is left, or there are too many.
func (v *visitor) all(o *core.BulkOptions, do bulkCall) (*core.BulkResult, error) {
	sum := &core.BulkResult{Failed: map[runlane.RunID]error{}}
	for options := *o; ; {
		part, err := do(v.r.Context(), &options)
		if part != nil {
			sum.Matched += part.Matched
			sum.Changed += part.Changed
			sum.Skipped += part.Skipped
			for id, fault := range part.Failed {
				sum.Failed[id] = fault
			}
		}
		switch {
		case err != nil:
			return sum, err
		case part.Next == "":
			return sum, nil
		case sum.Matched >= bulkMost:
			return sum, &runlane.Error{
				Code:    runlane.ErrValidationFailed,
				Message: fmt.Sprintf("more than %d runs match", bulkMost),
				Hint:    "use the command line for so many, or a narrower filter",
			}
		}
		options.After = part.Next
	}
}

func (v *visitor) ask(change string, kept url.Values, matched int, wrong bool) *page {
	words := []string{"runs", change}
	for _, name := range filterNames {
		if values := kept[name]; len(values) > 0 {
			words = append(words, "--"+name, strings.Join(values, ","))
		}
	}
	title := fmt.Sprintf("%s %d runs?", strings.ToUpper(change[:1])+change[1:], matched)
	return &page{title: title, nav: "Runs", body: g.Group{
		g.If(wrong, h.P(h.Class("bad"), h.Role("alert"), g.Textf("Type the number of runs, %d, to go on.", matched))),
		h.Form(h.Method("post"), h.Action(v.Prefix+"/bulk/"+change), h.Class("card"), hiddenFields(kept),
			h.Input(h.Type("hidden"), h.Name("sure"), h.Value("yes")),
			h.Label(h.For("reason"), g.Text("Reason, kept with the change")),
			reasonField("reason", v.r.PostFormValue("reason")),
			g.Iff(matched > confirmAbove, func() g.Node {
				return g.Group{
					h.Label(h.For("count"), g.Textf("Type %d to go on", matched)),
					h.Input(h.ID("count"), h.Name("count"), h.Required(),
						h.Attr("inputmode", "numeric"), h.AutoComplete("off")),
				}
			}),
			h.Div(
				h.Button(h.Class("danger"), g.If(matched == 0, h.Disabled()), g.Textf("%s %d", change, matched)),
				g.Text(" "),
				h.A(h.Href(v.Prefix+"/runs?"+kept.Encode()), g.Text("Leave them"))),
		),
		h.P(v.command(words...)),
	}}
}

func (v *visitor) reason() core.ChangeOptions {
	return core.ChangeOptions{Actor: v.Actor, Reason: strings.TrimSpace(v.r.PostFormValue("reason"))}
}
