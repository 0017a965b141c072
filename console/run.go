package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/apart"
	"github.com/runlane/runlane-go/internal/shown"
)

func (v *visitor) redirect(to string) (*page, error) {
	http.Redirect(v.w, v.r, v.Prefix+to, http.StatusSeeOther)
	return nil, nil
}

const (
	attemptsShown = 200 // the last ones
	eventsShown   = 200
	childrenShown = 50
)

func (v *visitor) run() (*page, error) {
	ctx, id := apart.Leave(v.r.Context()), runlane.RunID(v.r.PathValue("run"))
	run, err := v.rt.Runs().Get(ctx, id)
	if runlane.CodeOf(err) == runlane.ErrRunNotFound {
		if whole, err := v.runByPrefix(string(id)); err != nil || whole != "" {
			return v.toRun(whole, err)
		}
	}
	if err != nil {
		return nil, err
	}
	why, err := v.rt.Runs().Explain(ctx, id)
	if err != nil {
		return nil, err
	}
	attempts, err := v.rt.Runs().Attempts(ctx, id)
	if err != nil {
		return nil, err
	}
	more := max(0, len(attempts)-attemptsShown)
	attempts = attempts[more:]
	kept, err := v.rt.Runs().Kept(ctx, id)
	if runlane.CodeOf(err) == runlane.ErrCapabilityUnsupported {
		kept, err = &core.Kept{}, nil
	}
	if err != nil {
		return nil, err
	}
	logs, err := v.log(run)
	if err != nil {
		return nil, err
	}
	note, err := v.rt.Runs().Progress(ctx, id)
	if err != nil {
		return nil, err
	}
	children, err := v.list(core.ListOptions{RunFilter: core.RunFilter{SourceRunID: id}, Limit: childrenShown})
	if err != nil {
		return nil, err
	}
	tree, err := v.runTree(id)
	if err != nil {
		return nil, err
	}
	history, err := v.history(run)
	if err != nil {
		return nil, err
	}
	p := &page{title: string(run.TaskID), nav: "Runs", body: g.Group{
		v.triggered(),
		h.P(h.Class("head"), badge(run.Status), g.Text(" "),
			h.Code(g.Text(visible(string(id)))), copyButton(string(id), "the id")),
		v.why(why),
		v.actions(run),
		v.runFacts(run, note),
		v.failure(run),
		v.timeline(run, timelineOf(run, attempts, kept.Steps, tree)),
		section("Attempts", v.attempts(run, attempts, more)),
		v.steps(id, kept.Steps),
		v.receipts(id, kept.Receipts),
		logs,
		v.called(id, tree),
		v.others(id, children),
		v.body("Payload", "payload", run.Payload, run.PayloadError(), id, apartOf(run).PayloadApart),
		v.body("Output", "output", run.Output, run.OutputError(), id, apartOf(run).OutputApart),
		section("Events", history),
	}}
	if !run.Status.Terminal() {
		p.live = "run:" + string(id)
	}
	return p, nil
}

func section(title string, body g.Node) g.Node {
	return h.Section(h.H2(g.Text(title)), body)
}

// why explains the state of the run, at the top of the page.
func (v *visitor) why(e *core.Explanation) g.Node {
	return h.Section(h.Class("card why"), h.Aria("label", "Why it is where it is"),
		h.P(h.Strong(g.Text(visible(e.Next)))),
		facts(
			fact{"Until", v.until(e.Until)},
			fact{"Waits for", v.waiting(e.Waiting)},
			fact{"Worker", text(e.Owner.WorkerID)},
			fact{"Slots held by", v.holders(e.Holders)},
		),
		h.P(v.command("runs", "explain", string(e.RunID))),
	)
}

func (v *visitor) until(t time.Time) g.Node {
	if t.IsZero() {
		return nil
	}
	return v.ago(t)
}

func (v *visitor) waiting(w *runlane.Waiting) g.Node {
	if w == nil {
		return nil
	}
	return g.Text(waitsFor(w))
}

func (v *visitor) holders(ids []runlane.RunID) g.Node {
	if len(ids) == 0 {
		return nil
	}
	var links g.Group
	for i, id := range ids[:min(len(ids), 20)] {
		links = append(links, g.If(i > 0, g.Text(", ")), v.runLink(id))
	}
	return links
}

func (v *visitor) runFacts(run *runlane.Run, note *runlane.Progress) g.Node {
	var noted, from g.Node
	if note != nil {
		noted = g.Group{g.Text(visible(note.Note) + " "), v.ago(note.At)}
	}
	switch s := run.Source; {
	case s.FlowID != "":
		from = g.Group{g.Text("flow "), v.flowLink(s.FlowID), g.Text(", node " + visible(s.Node))}
	case s.RunID != "":
		from = g.Group{g.Text(string(s.Type) + " "), v.runLink(s.RunID), g.Text(" " + visible(s.Call))}
	case s.ScheduleID != "":
		from = g.Group{g.Text("schedule "), v.scheduleLink(s.ScheduleID)}
	default:
		from = g.Text(string(s.Type))
	}
	all := []fact{
		{"Queue", v.queueLink(run.Queue)},
		{"Progress", noted},
		{"Source", from},
		{"Created", v.ago(run.CreatedAt)},
		{"Due", v.until(run.RunAt)},
		{"Started", v.until(run.StartedAt)},
		{"Ended", v.until(run.FinishedAt)},
		{"Attempts", g.Textf("%d, %d failed, %d retried, %d released", run.Counters.Attempts, run.Counters.Failures,
			run.Counters.Retries, run.Counters.Releases)},
		{"Singleton key", text(run.SingletonKey)},
		{"Concurrency key", text(run.ConcurrencyKey)},
		{"Priority", text(shown.Priority(run.Priority))},
		{"Idempotency key", text(run.IdempotencyKey)},
	}
	for _, name := range sortedKeys(run.Meta) {
		all = append(all, fact{clip(visible(name), 60), text(run.Meta[name])})
	}
	return facts(all...)
}

func (v *visitor) failure(run *runlane.Run) g.Node {
	if run.Failure.IsZero() {
		return g.Group{}
	}
	all := []fact{{"Code", text(string(run.Failure.Code))}}
	for _, name := range sortedKeys(run.Failure.Meta) {
		all = append(all, fact{clip(visible(name), 60), text(run.Failure.Meta[name])})
	}
	return h.Section(h.Class("card bad"), h.H2(g.Text("Failure")),
		h.Pre(h.Class("wrap"), g.Text(visible(run.Failure.Message))), facts(all...))
}

// attempts shows each attempt with a bar from its start to its end.
func (v *visitor) attempts(run *runlane.Run, attempts []core.AttemptSummary, more int) g.Node {
	begin, end := run.CreatedAt, v.now
	if !run.FinishedAt.IsZero() {
		end = run.FinishedAt
	}
	whole := max(end.Sub(begin), time.Millisecond)
	rows := g.Map(attempts, func(a core.AttemptSummary) g.Node {
		ended := a.FinishedAt
		if ended.IsZero() {
			ended = v.now
		}
		left := max(0, 100*a.StartedAt.Sub(begin).Seconds()/whole.Seconds())
		width := max(0.7, 100*ended.Sub(a.StartedAt).Seconds()/whole.Seconds())
		return h.Tr(
			h.Td(g.Textf("%d", a.Number)),
			h.Td(h.Span(h.Class("badge "+string(a.Status)), g.Text(strings.ReplaceAll(string(a.Status), "_", " ")))),
			h.Td(v.ago(a.StartedAt)),
			h.Td(g.Text(short(ended.Sub(a.StartedAt)))),
			h.Td(h.Class("line"), bar(string(a.Status), left, width)),
			h.Td(g.Text(visible(clip(a.Failure.Message, 120)))),
			h.Td(g.Text(visible(a.WorkerID))),
		)
	})
	columns := []string{"Attempt", "Outcome", "Began", "Took", "When", "Failure", "Worker"}
	return g.Group{
		g.Iff(more > 0, func() g.Node {
			return h.P(h.Class("note"), g.Textf("%d earlier ones: ", more),
				v.command("runs", "attempts", string(run.ID)))
		}),
		table("Attempts", columns, rows, g.Text("None yet. See above what the run waits for.")),
	}
}

// triggered shows a note if a trigger found this existing run.
func (v *visitor) triggered() g.Node {
	query := v.r.URL.Query()
	if query.Get("there") != "already" {
		return g.Group{}
	}
	said := "This run existed already, with the same key or id: no other one was made."
	if query.Get("payload") == "differs" {
		said += " Its payload differs from yours."
	}
	return h.P(h.Class("note"), h.Role("status"), g.Text(said))
}

// bar draws part of a line; left and width are percentages.
func bar(class string, left, width float64) g.Node {
	percent := func(x float64) string { return fmt.Sprintf("%.2f", x) }
	return h.SVG(h.Attr("viewBox", "0 0 100 8"), h.Attr("preserveAspectRatio", "none"), h.Aria("hidden", "true"),
		h.El("rect", h.Class("bar "+class), h.Attr("y", "1"), h.Attr("height", "6"),
			h.Attr("x", percent(min(left, 99.3))), h.Attr("width", percent(min(width, 100)))))
}

// body shows a payload or output as folding JSON, with a link to the raw bytes.
func (v *visitor) body(
	title, name string, text []byte, fault error, id runlane.RunID, about runlane.BodyApart,
) g.Node {
	link := h.A(h.Href(v.Prefix+"/v1/runs/"+pathEscape(string(id))+"/"+name), g.Text("as it is"))
	switch {
	case v.HidePayloads:
		note := h.P(h.Class("note"), g.Text(
			"Payloads and outputs are hidden: by the server, or because the token lacks the scope payloads."))
		return g.If(name == "payload", section(title, note))
	case fault != nil:
		return section(title, h.P(h.Class("note"), g.Text(visible(fault.Error()))))
	case about.Bytes > 0: // too large for a page
		return section(title, h.P(h.Class("note"), g.Textf("%d bytes, kept apart from the run · ", about.Bytes), link,
			g.Text(" · SHA-256 "), h.Code(g.Text(about.SHA256))))
	case text == nil:
		return g.Group{}
	}
	return section(title, g.Group{
		h.P(h.Class("note"), g.Textf("%d bytes · ", len(text)), link),
		v.tree(text),
	})
}

func apartOf(run *runlane.Run) runlane.Sealed {
	if run.Sealed == nil {
		return runlane.Sealed{}
	}
	return *run.Sealed
}

func (v *visitor) history(run *runlane.Run) (g.Node, error) {
	var rows g.Group
	for event, err := range v.rt.Runs().Events(apart.Leave(v.r.Context()), run.ID, &core.EventOptions{Descending: true}) {
		if err != nil {
			return nil, err
		}
		if len(rows) == eventsShown {
			older := v.command("runs", "events", string(run.ID))
			rows = append(rows, h.Tr(h.Td(h.ColSpan("5"), g.Text("Older ones: "), older)))
			break
		}
		rows = append(rows, h.Tr(
			h.ID(fmt.Sprintf("event-%d", event.Sequence)),
			h.Td(g.Textf("%d", event.Sequence)), h.Td(h.Code(g.Text(string(event.Type())))),
			h.Td(v.ago(event.OccurredAt)), h.Td(g.Text(actorText(event.Actor))), h.Td(v.eventDetails(&event)),
		))
	}
	return table("Events", []string{"Number", "Event", "When", "By", "What"}, rows, g.Text("")), nil
}

// eventDetails shows an event's reason and meta, and the whole event as JSON.
func (v *visitor) eventDetails(event *runlane.EventRecord) g.Node {
	text, err := json.Marshal(shown.EventOf(event))
	if err != nil {
		return g.Text(visible(err.Error()))
	}
	return g.Group{
		g.Text(visible(clip(eventReason(event), 200)) + " "),
		h.Details(
			h.Summary(h.Span(h.Class("sr"), g.Textf("Event %d as ", event.Sequence)), g.Text("JSON")),
			v.tree(text),
		),
	}
}

// eventReason returns the reason of a change and the event's meta.
func eventReason(event *runlane.EventRecord) string {
	var words []string
	switch body := event.Body.(type) {
	case *runlane.RunCancellationRequested:
		words = append(words, body.Reason)
	case *runlane.RunCancelled:
		words = append(words, body.Reason)
	case *runlane.RunResumed:
		words = append(words, body.Reason)
	default: // other events have their reason in meta
	}
	for _, name := range sortedKeys(event.Meta) {
		words = append(words, event.Meta[name])
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ", ")
}

func actorText(a runlane.Actor) string {
	if a.ID == "" {
		return string(a.Type)
	}
	return visible(string(a.Type) + " " + a.ID)
}
