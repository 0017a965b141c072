package console

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/server"
)

// changeRun does what a button of a run says.
func (v *visitor) changeRun() (*page, error) {
	ctx, id, change := v.r.Context(), runlane.RunID(v.r.PathValue("run")), v.r.PathValue("change")
	options, to := v.reason(), id
	var err error
	switch runs := v.rt.Runs(); change {
	case "cancel":
		_, err = runs.Cancel(ctx, id, &options)
	case "resume":
		_, err = runs.Resume(ctx, id, &options)
	case "retry", "rerun":
		again := runs.Retry
		if change == "rerun" {
			again = runs.Rerun
		}
		var made *runlane.Run
		if made, err = again(ctx, id, &options); err == nil {
			to = made.ID
		}
	case "signal":
		var body json.RawMessage
		if body, err = given(v.r.PostFormValue("body")); err == nil {
			value := runlane.NewRawSignal(v.r.PostFormValue("signal"), body)
			err = v.rt.Signal(ctx, id, value, &runlane.SignalOptions{Actor: v.Actor})
		}
	default:
		return v.nothing()
	}
	return v.changed(change, string(id), "/runs/"+pathEscape(string(to)), err)
}

// given is JSON that a person typed.
func given(text string) (json.RawMessage, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return json.RawMessage("null"), nil
	}
	if !json.Valid([]byte(text)) {
		return nil, &runlane.Error{
			Code:    runlane.ErrValidationFailed,
			Message: "this is no JSON: " + clip(text, 60),
			Hint:    `put text in quotes, like "ada"`,
		}
	}
	return json.RawMessage(text), nil
}

func (v *visitor) changeSchedule() (*page, error) {
	ctx, id, change := v.r.Context(), runlane.ScheduleID(v.r.PathValue("schedule")), v.r.PathValue("change")
	options, to := v.reason(), "/schedules"
	var err error
	switch schedules := v.rt.Schedules(); change {
	case "pause":
		err = schedules.Pause(ctx, id, &options)
	case "resume":
		err = schedules.Resume(ctx, id, &options)
	case "trigger":
		var made *runlane.Run
		if made, err = schedules.TriggerNow(ctx, id, &options); err == nil {
			to = "/runs/" + pathEscape(string(made.ID))
		}
	default:
		return v.nothing()
	}
	return v.changed("schedule "+change, string(id), to, err)
}

func (v *visitor) requeue() (*page, error) {
	id, options := runlane.RunID(v.r.PathValue("run")), v.reason()
	err := v.rt.DeadLetters().Requeue(v.r.Context(), id, &options)
	return v.changed("requeue", string(id), "/runs/"+pathEscape(string(id)), err)
}

// triggerForm asks for a task and its payload.
func (v *visitor) triggerForm() (*page, error) {
	if !v.Has(server.ScopeTrigger) {
		return nil, &denied{server.ScopeTrigger}
	}
	tasks, err := v.rt.Tasks().List(v.r.Context())
	if err != nil {
		return nil, err
	}
	chosen := v.r.URL.Query().Get("task")
	var options g.Group
	for i := range tasks {
		id := string(tasks[i].Definition().ID)
		options = append(options, h.Option(h.Value(id), g.If(id == chosen, h.Selected()), g.Text(visible(id))))
	}
	if len(options) == 0 {
		return &page{title: "Trigger a run", body: g.Group{h.P(
			h.Class("empty"),
			g.Text("No task is known yet: a worker tells of its tasks when it ticks. Start one, or "),
			v.command("dev"),
		)}}, nil
	}
	return &page{title: "Trigger a run", body: g.Group{
		h.Form(h.Method("post"), h.Action(v.Prefix+"/trigger"), h.Class("card"),
			h.Label(h.For("task"), g.Text("Task")), h.Select(h.ID("task"), h.Name("task"), options),
			h.Label(h.For("payload"), g.Text("Payload, JSON")),
			h.Textarea(h.ID("payload"), h.Name("payload"), h.Rows("10"), h.Attr("spellcheck", "false"), g.Text("{}")),
			h.Label(h.For("key"), g.Text("Idempotency key, if the same form may be sent twice")),
			h.Input(h.ID("key"), h.Name("key"), h.AutoComplete("off"), h.MaxLength(fmt.Sprint(runlane.MaxKeyBytes))),
			h.Div(h.Button(g.Text("Trigger"))),
		),
		h.P(v.command("trigger", "TASK", "PAYLOAD")),
	}}, nil
}

func (v *visitor) trigger() (*page, error) {
	id := runlane.TaskID(v.r.PostFormValue("task"))
	payload, err := given(v.r.PostFormValue("payload"))
	if err != nil {
		return nil, err
	}
	tasks, err := v.rt.Tasks().List(v.r.Context())
	if err != nil {
		return nil, err
	}
	for i := range tasks {
		if definition := tasks[i].Definition(); definition.ID == id {
			options := &runlane.TriggerOptions{IdempotencyKey: v.r.PostFormValue("key")}
			made, err := v.rt.Trigger(v.r.Context(), runlane.NewRawCall(definition, payload), options)
			to, which := "", string(id)
			if err == nil {
				to, which = "/runs/"+url.PathEscape(string(made.Run.ID)), string(made.Run.ID)
			}
			return v.changed("trigger", which, to, err)
		}
	}
	return nil, &runlane.Error{
		Code:    runlane.ErrTaskNotFound,
		Message: fmt.Sprintf("no task %q is known here", id),
		Hint:    "start its worker: tasks are known when it ticks",
	}
}
