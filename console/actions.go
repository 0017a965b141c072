package console

import (
	"encoding/json"
	"fmt"
	"slices"

	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/server"
)

type action struct {
	name, title string
	fits        bool
	danger      bool
}

// actions shows the buttons that apply now, and the equivalent commands behind a toggle.
func (v *visitor) actions(run *runlane.Run) g.Node {
	id := string(run.ID)
	var forms, commands g.Group
	if v.Has(server.ScopeTrigger) && run.Waiting != nil {
		for _, name := range signalNames(run.Waiting) {
			forms = append(forms, v.signalForm(run, name))
			commands = append(commands, h.Li(v.command("runs", "signal", id, name, "--body", "JSON")))
		}
		if run.Waiting.Has(runlane.WaitingAnything) {
			forms = append(forms, v.anySignalForm(run))
			commands = append(commands, h.Li(v.command("runs", "signal", id, "NAME", "--body", "JSON")))
		}
	}
	if v.Has(server.ScopeOperate) {
		for _, a := range []action{
			{"resume", "Resume now", run.Status.Waiting(), false},
			{"cancel", "Cancel", run.Status.Active() && run.Status != runlane.StatusCancellationRequested, true},
			{"retry", "Retry", run.Status == runlane.StatusFailed, false},
			{"rerun", "Rerun", run.Status.Terminal(), false},
		} {
			if !a.fits {
				continue
			}
			forms = append(forms, h.Form(h.Method("post"), h.Action(v.runPath(run.ID)+"/"+a.name), h.Class("action"),
				g.If(a.name == "resume", seen(runSeen(run))),
				h.Label(h.Class("sr"), h.For("reason-"+a.name), g.Text("Reason to "+a.name)),
				reasonField("reason-"+a.name, ""),
				h.Button(g.If(a.danger, h.Class("danger")), g.Text(a.title)),
			))
			commands = append(commands, h.Li(v.command("runs", a.name, id)))
		}
	}
	if len(forms) == 0 {
		return g.Group{}
	}
	return h.Section(h.Class("actions"), h.Aria("label", "Actions"), forms,
		h.Details(h.Summary(g.Text("As commands")), h.Ul(h.Class("commands"), commands)))
}

func signalNames(w *runlane.Waiting) []string {
	if w.Has(runlane.WaitingSignal) || w.Has(runlane.WaitingInput) {
		return w.Names
	}
	return nil
}

// questionOf shows the question of a signal, or all questions of the wait.
func questionOf(w *runlane.Waiting, name string) g.Node {
	asks := w.Asks()
	if i := slices.IndexFunc(asks, func(q runlane.Question) bool { return q.Name == name }); i >= 0 {
		asks = asks[i : i+1]
	}
	return g.Map(asks, func(q runlane.Question) g.Node { return h.P(g.Text(visible(q.Prompt))) })
}

func (v *visitor) signalForm(run *runlane.Run, name string) g.Node {
	title := "Send signal " + visible(name)
	if run.Waiting.Has(runlane.WaitingInput) {
		title = "Answer " + visible(name)
	}
	schema := schemaOf(run.Waiting, name)
	return h.Form(h.Method("post"), h.Action(v.runPath(run.ID)+"/signal"), h.Class("card"),
		h.Input(h.Type("hidden"), h.Name("signal"), h.Value(name)), seen(runSeen(run)),
		questionOf(run.Waiting, name),
		signalBody("signal-"+name, schema, v.typedSignal(v.r.PostFormValue("signal") == name)),
		h.Div(h.Button(g.Text(title))),
	)
}

func (v *visitor) typedSignal(this bool) typedForm {
	if v.refused == nil || !this {
		return typedForm{}
	}
	return v.typed(v.refused)
}

func schemaOf(w *runlane.Waiting, name string) json.RawMessage {
	if w == nil {
		return nil
	}
	return w.Schemas[name]
}

// signalBody shows inputs for a signal's body: the fields of its schema, or JSON.
func signalBody(id string, schema json.RawMessage, form typedForm) g.Node {
	if fields := bodyFields(schema); len(fields) > 0 {
		nodes := g.Group{form.wrong(""), h.Input(h.Type("hidden"), h.Name("as"), h.Value("fields"))}
		for i := range fields {
			nodes = append(nodes, fields[i].node(fmt.Sprintf("%s-%d", id, i), form))
		}
		return nodes
	}
	label := "Body, JSON of the type that the task reads: another one ends the run"
	if schema != nil {
		label = "Body, JSON that fits the schema of the wait"
	}
	return g.Group{
		form.wrong(""),
		h.Label(h.For(id), g.Text(label)),
		form.wrong("body"),
		h.Textarea(h.ID(id), h.Name("body"), h.Rows("3"), h.Attr("spellcheck", "false"), h.Required(),
			g.Text("\n"+form.or("body", ""))), // a browser drops the first line break
	}
}

// anySignalForm sends a signal by name, for a run that waits for more signals than it lists.
func (v *visitor) anySignalForm(run *runlane.Run) g.Node {
	form := v.typedSignal(!slices.Contains(signalNames(run.Waiting), v.r.PostFormValue("signal")))
	return h.Form(h.Method("post"), h.Action(v.runPath(run.ID)+"/signal"), h.Class("card"), seen(runSeen(run)),
		questionOf(run.Waiting, ""),
		h.Label(h.For("signal-name"), g.Text("Name of the signal: the task's code has those that it waits for")),
		h.Input(h.ID("signal-name"), h.Name("signal"), h.Value(form.or("signal", "")), h.Required(),
			h.AutoComplete("off")),
		signalBody("signal-any", nil, form),
		h.Div(h.Button(g.Text("Send signal"))),
	)
}
