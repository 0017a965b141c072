package console

import (
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
	"github.com/runlane/runlane-go/server"
)

func (v *visitor) flowPath(id runlane.FlowID) string { return "/flows/" + pathEscape(string(id)) }

func (v *visitor) flowLink(id runlane.FlowID) g.Node {
	return h.A(h.Class("id"), h.Href(v.Prefix+v.flowPath(id)), g.Text(visible(string(id))))
}

func flowBadge(s runlane.FlowStatus) g.Node {
	return h.Span(h.Class("badge "+string(s)), g.Text(string(s)))
}

func (v *visitor) flows() (*page, error) {
	query := v.r.URL.Query()
	options := core.FlowListOptions{After: runlane.Cursor(query.Get("after")), Limit: 50}
	chosen := query.Get("status")
	if chosen != "" {
		statuses, unknown := shown.FlowStatuses(chosen)
		if unknown != nil {
			return nil, &runlane.Error{
				Code:    runlane.ErrValidationFailed,
				Message: fmt.Sprintf("flows have no status %q", *unknown),
				Hint:    "choose one of the list",
			}
		}
		options.Statuses = statuses
	}
	found, err := v.rt.Flows().List(v.r.Context(), &options)
	if err != nil {
		return nil, err
	}
	empty, more := g.Text("No flow matches. Programs start them with StartFlow."), g.Group{}
	if found.Next != "" {
		next := url.Values{"after": {string(found.Next)}}
		if chosen != "" {
			next.Set("status", chosen)
		}
		empty = g.Text("None of those that were looked at matches; there are more.")
		more = append(more, v.more("/flows", next))
	}
	rows := g.Map(found.Items, func(f runlane.FlowState) g.Node {
		return h.Tr(
			h.Td(flowBadge(f.Status), g.If(cancelledWords(&f) != "", h.Span(h.Class("note"), g.Text(" cancelled")))),
			h.Td(v.flowLink(f.ID)), h.Td(g.Textf("%d", f.Retries)), h.Td(v.ago(f.CreatedAt)), h.Td(v.ago(f.FinishedAt)),
		)
	})
	p := &page{title: "Flows", nav: "Flows", live: "list", body: g.Group{
		h.Form(h.Class("filter"), h.Method("get"), h.Action(v.Prefix+"/flows"), h.Aria("label", "Filter"),
			choice("status", "Status", chosen, shown.FlowStatusWords()),
			h.Div(h.Button(g.Text("Filter")), g.Text(" "), h.A(h.Href(v.Prefix+"/flows"), g.Text("Clear"))),
		),
		table("Flows", []string{"Status", "Flow", "Retries", "Created", "Finished"}, rows, empty), more,
		h.P(v.command("flows", "list")),
	}}
	if options.After != "" {
		p.live = "" // only the first page is live
	}
	return p, nil
}

func (v *visitor) flow() (*page, error) {
	state, err := v.rt.Flows().Get(v.r.Context(), runlane.FlowID(v.r.PathValue("flow")))
	if err != nil {
		return nil, err
	}
	id := string(state.ID)
	p := &page{title: "Flow " + visible(id), nav: "Flows", body: g.Group{
		h.P(h.Class("head"), flowBadge(state.Status), g.Text(" "),
			h.Code(g.Text(visible(id))), copyButton(id, "the id")),
		h.Section(h.Class("card why"), h.Aria("label", "How far it is"),
			h.P(h.Strong(g.Text(counts(state)))), h.P(v.command("flows", "show", id))),
		v.flowActions(state),
		facts(
			fact{"Created", v.ago(state.CreatedAt)},
			fact{"Finished", v.until(state.FinishedAt)},
			fact{"Cancelled", text(cancelledWords(state))},
			fact{"Retried", text(times(state.Retries))},
		),
		section("Graph", v.picture(state)),
		section("Nodes", v.nodeTable(state)),
	}}
	if !state.Status.Ended() {
		p.live = "list"
	}
	return p, nil
}

// counts sums up the nodes by status, in the order of adding: "2 succeeded, 1 failed, 3 waiting for others".
func counts(state *runlane.FlowState) string {
	var words []string
	count := map[string]int{}
	for i := range state.Nodes {
		word := nodeWords(&state.Nodes[i])
		if count[word] == 0 {
			words = append(words, word)
		}
		count[word]++
	}
	for i, word := range words {
		n := count[word]
		if word == "waits" {
			word = "waiting for others"
		}
		words[i] = fmt.Sprintf("%d %s", n, word)
	}
	return strings.Join(words, ", ")
}

func cancelledWords(state *runlane.FlowState) string {
	if !state.Cancelled || state.Status.Ended() {
		return ""
	}
	return "yes; what had begun is being ended or undone"
}

func times(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "once"
	default:
		return fmt.Sprintf("%d times", n)
	}
}

func (v *visitor) nodeTable(state *runlane.FlowState) g.Node {
	var rows g.Group
	for i := range state.Nodes {
		n := &state.Nodes[i]
		run, detail := g.Text("–"), n.Failure.Message
		if n.Status != "" {
			run = v.runLink(n.RunID)
		}
		if n.Waiting != nil && !n.Waiting.Has(runlane.WaitingEnds) {
			detail = "waits for " + waitsFor(n.Waiting)
		}
		rows = append(rows, h.Tr(
			h.Td(g.Text(visible(n.Name)),
				g.If(n.Retries > 0, h.Span(h.Class("note"), g.Text(" retried "+times(n.Retries))))),
			h.Td(h.Span(h.Class("badge "+nodeClass(n)), g.Text(nodeWords(n)))),
			h.Td(g.Text(visible(clip(shown.After(n), 200)))), h.Td(g.Text(visible(string(n.TaskID)))),
			h.Td(g.Textf("%d", n.Attempts)), h.Td(run), h.Td(g.Text(visible(clip(detail, 200)))),
		))
	}
	columns := []string{"Node", "Status", "After", "Task", "Attempts", "Run", "Detail"}
	return table("Nodes", columns, rows, g.Text("The flow has no nodes."))
}

// undoing returns the open nodes with the condition failed or always. A cancelled flow still runs them.
func undoing(state *runlane.FlowState) (names []string) {
	for i := range state.Nodes {
		n := &state.Nodes[i]
		if (n.If == runlane.IfFailed || n.If == runlane.Always) && shown.OpenNode(n) {
			names = append(names, n.Name)
		}
	}
	return names
}

// flowActions shows the buttons that apply now, each with the equivalent command.
func (v *visitor) flowActions(state *runlane.FlowState) g.Node {
	if !v.Has(server.ScopeOperate) {
		return g.Group{}
	}
	var forms g.Group
	undo := undoing(state)
	named := clip(strings.Join(undo, ", "), 200)
	if !state.Status.Ended() && !state.Cancelled {
		means := "Runs that have not ended are cancelled."
		if len(undo) > 0 {
			means += " Still to run, where their conditions are met: " + named + "."
		}
		forms = append(forms, v.flowForm(state.ID, "cancel", "Cancel", means, nil,
			v.command("flows", "cancel", string(state.ID))))
	}
	if !state.Status.Ended() && len(undo) > 0 {
		forms = append(forms, v.flowForm(state.ID, "cancel", "Cancel everything",
			"These are ended, too, so that what had begun is not undone: "+named+".",
			h.Input(h.Type("hidden"), h.Name("everything"), h.Value("yes")),
			v.command("flows", "cancel", string(state.ID), "--everything")))
	}
	if state.Status.Ended() && state.Status != runlane.FlowCompleted {
		forms = append(forms, h.Form(h.Method("post"), h.Class("action"),
			h.Action(v.Prefix+v.flowPath(state.ID)+"/retry"),
			h.Button(g.Text("Retry what did not succeed…")), v.command("flows", "retry", string(state.ID), "--dry-run"),
			h.Span(h.Class("note"), g.Text("The nodes are named first; nothing changes before."))))
	}
	if len(forms) == 0 {
		return g.Group{}
	}
	return h.Section(h.Class("actions"), h.Aria("label", "Actions"), forms)
}

func (v *visitor) flowForm(id runlane.FlowID, change, title, means string, hidden, command g.Node) g.Node {
	field := "reason-" + strings.ReplaceAll(strings.ToLower(title), " ", "-")
	return h.Form(h.Method("post"), h.Action(v.Prefix+v.flowPath(id)+"/"+change), h.Class("action"), hidden,
		h.Label(h.Class("sr"), h.For(field), g.Text("Reason to "+strings.ToLower(title))), reasonField(field, ""),
		h.Button(h.Class("danger"), g.Text(title)), command, h.Span(h.Class("note"), g.Text(visible(means))),
	)
}

// changeFlow handles the buttons of a flow. A retry is confirmed first.
func (v *visitor) changeFlow() (*page, error) {
	ctx, id, change := v.r.Context(), runlane.FlowID(v.r.PathValue("flow")), v.r.PathValue("change")
	reason := v.reason()
	var err error
	switch change {
	case "cancel":
		everything := v.r.PostFormValue("everything") == "yes"
		if everything {
			change = "cancel everything"
		}
		_, err = v.rt.Flows().Cancel(ctx, id, &core.CancelFlowOptions{ChangeOptions: reason, Everything: everything})
	case "retry":
		var state *runlane.FlowState
		if state, err = v.rt.Flows().Get(ctx, id); err != nil {
			break
		}
		if v.r.PostFormValue("sure") != "yes" {
			return v.askRetry(state)
		}
		if err = v.checkSeen(runlane.ConflictFlow, flowSeen(state)); err == nil {
			_, err = v.rt.Flows().Retry(ctx, id, &core.RetryFlowOptions{
				ChangeOptions: reason, Number: state.Retries + 1, NothingUndone: v.r.PostFormValue("nothing-undone") == "yes",
			})
		}
	default:
		return v.notFound()
	}
	return v.changed("flow "+change, slog.String("flow", string(id)), v.flowPath(id), err)
}

// askRetry lists the nodes that would get new runs. If the retry is refused because nodes may have undone something, it
// asks whether they did.
func (v *visitor) askRetry(state *runlane.FlowState) (*page, error) {
	id := state.ID
	command, button := []string{"flows", "retry", string(id)}, "Retry %d"
	var undone g.Group
	renewed, err := v.rt.Flows().PlanRetry(v.r.Context(), id, nil)
	if err != nil {
		refusal := err
		renewed, err = v.rt.Flows().PlanRetry(v.r.Context(), id, &core.RetryFlowOptions{NothingUndone: true})
		if err != nil {
			return nil, refusal
		}
		undone = g.Group{
			h.Input(h.Type("hidden"), h.Name("nothing-undone"), h.Value("yes")),
			h.P(h.Class("bad"), g.Text(visible(message(refusal)))),
			h.P(g.Text("Start another flow instead, unless they undid nothing, because they were alerts, for example.")),
		}
		command, button = append(command, "--nothing-undone"), "They undid nothing: retry %d"
	}
	kind := "nodes"
	if len(renewed) == 1 {
		kind = "node"
	}
	return &page{title: fmt.Sprintf("Retry %d %s?", len(renewed), kind), nav: "Flows", body: g.Group{
		h.P(g.Text("These nodes of "), v.flowLink(id),
			g.Text(" get new runs with the payloads of the old ones. What has succeeded stays.")),
		h.Ul(g.Map(renewed, func(name string) g.Node { return h.Li(g.Text(visible(name))) })),
		h.Form(h.Method("post"), h.Action(v.Prefix+v.flowPath(id)+"/retry"), h.Class("card"),
			h.Input(h.Type("hidden"), h.Name("sure"), h.Value("yes")), seen(flowSeen(state)), undone,
			h.Label(h.For("reason"), g.Text("Reason, kept with the change")), reasonField("reason", ""),
			h.Div(h.Button(g.Textf(button, len(renewed))), g.Text(" "),
				h.A(h.Href(v.Prefix+v.flowPath(id)), g.Text("Leave them"))),
		),
		h.P(v.command(command...)),
	}}, nil
}
