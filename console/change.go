package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/taskbook"
	"github.com/runlane/runlane-go/server"
)

func (v *visitor) changeRun() (*page, error) {
	ctx, id, change := v.r.Context(), runlane.RunID(v.r.PathValue("run")), v.r.PathValue("change")
	options, to := v.reason(), "/runs/"+pathEscape(string(id))
	var err error
	switch runs := v.rt.Runs(); change {
	case "cancel":
		_, err = runs.Cancel(ctx, id, &options)
	case "resume":
		if _, err = v.runAsSeen(id); err == nil {
			_, err = runs.Resume(ctx, id, &options)
		}
	case "retry", "rerun":
		kind := runlane.SourceManualRetry
		if change == "rerun" {
			kind = runlane.SourceRerun
		}
		var made *runlane.TriggerResult
		if made, err = runs.Repeat(ctx, id, kind, &options); err == nil {
			to = v.madePath(made)
		}
	case "signal":
		if err = v.signal(id); isWrong(err) {
			return v.runAgain(err)
		}
	default:
		return v.notFound()
	}
	return v.changed(change, slog.String("run_id", string(id)), to, err)
}

// runAsSeen returns a run, unless it has changed since the form was made.
func (v *visitor) runAsSeen(id runlane.RunID) (*runlane.Run, error) {
	run, err := v.rt.Runs().Get(v.r.Context(), id)
	if err == nil {
		err = v.checkSeen(runlane.ConflictEventSequence, runSeen(run))
	}
	return run, err
}

// signal answers the wait that the form shows. Sending the form again with another answer is a conflict.
func (v *visitor) signal(id runlane.RunID) error {
	name := v.r.PostFormValue("signal")
	var body json.RawMessage
	var err error
	if v.r.PostFormValue("as") != "fields" { // the fields depend on the wait
		if body, err = given("body", v.r.PostFormValue("body")); err != nil {
			return err
		}
	}
	run, err := v.runAsSeen(id)
	if err == nil && body == nil {
		body, err = v.payloadFromFields(bodyFields(schemaOf(run.Waiting, name)))
	}
	if err != nil {
		return err
	}
	options := &runlane.SignalOptions{Actor: v.Actor, ID: formSignal(run, name)}
	return v.rt.Signal(v.r.Context(), id, runlane.NewRawSignal(name, body), options)
}

// runAgain shows the run again after a refused form. The page is not live, since a reload would lose the input.
func (v *visitor) runAgain(fault error) (*page, error) {
	v.refused = fault
	p, err := v.run()
	if err != nil || p == nil {
		return p, err
	}
	p.live = ""
	return nil, &keptForm{fault, p}
}

// given reads JSON from a field. Empty input is refused: a task that expects another type would fail permanently.
func given(name, text string) (json.RawMessage, error) {
	text = strings.TrimSpace(text)
	if !json.Valid([]byte(text)) {
		return nil, &wrongField{name: name, error: &runlane.Error{
			Code:    runlane.ErrValidationFailed,
			Message: "this is not JSON: " + clip(text, 60),
			Hint:    `put text in quotes, like "ada", and write null for nothing`,
		}}
	}
	return json.RawMessage(text), nil
}

func (v *visitor) changeQueue() (*page, error) {
	ctx, name, change := v.r.Context(), runlane.QueueName(v.r.PathValue("queue")), v.r.PathValue("change")
	options := v.reason()
	var err error
	switch queues := v.rt.Queues(); change {
	case "pause":
		_, err = queues.Pause(ctx, name, &core.PauseOptions{ChangeOptions: options})
	case "resume":
		_, err = queues.Resume(ctx, name, &options)
	default:
		return v.notFound()
	}
	return v.changed("queue "+change, slog.String("queue", string(name)), "/queues", err)
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
		return v.notFound()
	}
	return v.changed("schedule "+change, slog.String("schedule", string(id)), to, err)
}

func (v *visitor) requeue() (*page, error) {
	id, options := runlane.RunID(v.r.PathValue("run")), v.reason()
	err := v.rt.DeadLetters().Requeue(v.r.Context(), id, &options)
	return v.changed("requeue", slog.String("run_id", string(id)), "/runs/"+pathEscape(string(id)), err)
}

func (v *visitor) triggerForm() (*page, error) {
	if !v.Has(server.ScopeTrigger) {
		return nil, &denied{server.ScopeTrigger}
	}
	tasks, err := v.triggerable()
	if err != nil {
		return nil, err
	}
	if len(tasks) == 0 {
		return &page{title: "Trigger a run", body: g.Group{h.P(
			h.Class("empty"),
			g.Text("No task is known yet: workers register their tasks when they tick. Start one, or "),
			v.command("dev"),
		)}}, nil
	}
	query := v.r.URL.Query()
	return v.triggerPage(tasks, query.Get("task"), query.Get("as"), typedForm{}), nil
}

// triggerPage shows the form for a task: the fields of its schema, or JSON. as is "json" if JSON was requested.
func (v *visitor) triggerPage(tasks []core.TaskState, chosen, as string, form typedForm) *page {
	var options, forms g.Group
	for i := range tasks {
		id := string(tasks[i].Definition().ID)
		fields := fieldsOf(tasks[i].Schema)
		if id == chosen && len(fields) > 0 && as != "json" {
			return v.fieldsForm(id, fields, form)
		}
		options = append(options, h.Option(h.Value(id), g.If(id == chosen, h.Selected()), g.Text(visible(id))))
		if len(fields) > 0 {
			at := v.Prefix + "/trigger?task=" + pathEscape(id)
			forms = append(forms, g.Text(" "), h.A(h.Href(at), g.Text(visible(id))))
		}
	}
	return &page{title: "Trigger a run", body: g.Group{
		g.If(len(forms) > 0, h.P(g.Text("With a form:"), forms)),
		h.Form(h.Method("post"), h.Action(v.Prefix+"/trigger"), h.Class("card"),
			form.wrong(""),
			h.Label(h.For("task"), g.Text("Task")), h.Select(h.ID("task"), h.Name("task"), options),
			h.Label(h.For("payload"), g.Text("Payload, JSON; none is null")), form.wrong("payload"),
			h.Textarea(h.ID("payload"), h.Name("payload"), h.Rows("10"), h.Attr("spellcheck", "false"),
				g.Text("\n"+form.or("payload", ""))), // a browser drops the first line break
			triggerFoot(form),
		),
		h.P(v.command("trigger", "TASK", "PAYLOAD")),
	}}
}

func (v *visitor) fieldsForm(task string, fields []field, form typedForm) *page {
	nodes := make(g.Group, len(fields))
	for i := range fields {
		nodes[i] = fields[i].node(fmt.Sprintf("field-%d", i), form)
	}
	return &page{title: "Trigger " + visible(task), body: g.Group{
		h.Form(h.Method("post"), h.Action(v.Prefix+"/trigger"), h.Class("card"),
			h.Input(h.Type("hidden"), h.Name("task"), h.Value(task)),
			h.Input(h.Type("hidden"), h.Name("as"), h.Value("fields")),
			form.wrong(""),
			nodes,
			triggerFoot(form),
		),
		h.P(
			h.A(h.Href(v.Prefix+"/trigger?as=json&task="+pathEscape(task)), g.Text("Type the payload as JSON")),
			g.Text(" · "), h.A(h.Href(v.Prefix+"/trigger"), g.Text("Another task")),
		),
		h.P(v.command("trigger", task, "PAYLOAD")),
	}}
}

func triggerFoot(form typedForm) g.Node {
	return g.Group{
		h.Label(h.For("key"), g.Text("Idempotency key, if the same form may be sent twice")),
		h.Input(h.ID("key"), h.Name("key"), h.Value(form.or("key", "")), h.AutoComplete("off"), h.MaxLength(fmt.Sprint(runlane.MaxKeyBytes))),
		h.Label(h.For("delay"), g.Text("Delay before it starts, like 90s or 2d")), form.wrong("delay"),
		h.Input(h.ID("delay"), h.Name("delay"), h.Value(form.or("delay", "")), h.AutoComplete("off")),
		h.Div(h.Button(g.Text("Trigger"))),
	}
}

// trigger creates a run as the API would from the same task, payload and keys.
func (v *visitor) trigger() (*page, error) {
	id := runlane.TaskID(v.r.PostFormValue("task"))
	made, err := v.makeRun(id)
	to, of := "", slog.String("task", string(id))
	if err == nil {
		to, of = v.madePath(made), slog.String("made_run_id", string(made.Run.ID))
	}
	if !isWrong(err) {
		return v.changed("trigger", of, to, err)
	}
	v.audit(v.r.Context(), "trigger", of, err)
	tasks, listErr := v.triggerable()
	if listErr != nil {
		return nil, listErr
	}
	as := "json"
	if v.r.PostFormValue("as") == "fields" {
		as = ""
	}
	return nil, &keptForm{err, v.triggerPage(tasks, string(id), as, v.typed(err))}
}

func isWrong(err error) bool {
	code := runlane.CodeOf(err)
	return code == runlane.ErrValidationFailed || code == runlane.ErrPayloadUnreadable
}

func (v *visitor) makeRun(id runlane.TaskID) (*runlane.TriggerResult, error) {
	ctx := v.r.Context()
	tasks, err := v.rt.Tasks().List(ctx)
	if err != nil {
		return nil, err
	}
	var schema json.RawMessage
	for i := range tasks {
		if tasks[i].Definition().ID == id {
			schema = tasks[i].Schema
		}
	}
	payload, err := v.payload(schema)
	if err != nil {
		return nil, err
	}
	delay, err := v.delay()
	if err != nil {
		return nil, err
	}
	options := &runlane.TriggerOptions{Actor: v.Actor, IdempotencyKey: v.r.PostFormValue("key"), Delay: delay}
	book := taskbook.Book{
		Runtime: v.rt,
		Tasks:   func(context.Context) ([]core.TaskState, error) { return tasks, nil },
		Doubt:   func(taskbook.Doubt) {}, // the list of tasks shows it
		Now:     func() time.Time { return v.now },
	}
	call, err := book.Call(ctx, id, payload, options, runlane.TaskKeys{Idempotency: options.IdempotencyKey != ""})
	if err != nil {
		return nil, wordedForForms(err)
	}
	return v.rt.Trigger(ctx, call, options)
}

// delay reads the time before a run starts; an empty field is none.
func (v *visitor) delay() (time.Duration, error) {
	text := strings.TrimSpace(v.r.PostFormValue("delay"))
	if text == "" {
		return 0, nil
	}
	d, err := runlane.ParseDuration(text)
	if err != nil {
		return 0, &wrongField{name: "delay", error: err}
	}
	return d, nil
}

// madePath returns the page of a created run, or of an existing one with a note.
func (v *visitor) madePath(made *runlane.TriggerResult) string {
	to := "/runs/" + pathEscape(string(made.Run.ID))
	if made.Outcome == runlane.TriggerReturnedExisting {
		to += "?there=already"
		if made.PayloadDiffers && !v.HidePayloads {
			to += "&payload=differs"
		}
	}
	return to
}

// triggerable returns the tasks that people may trigger, without the server's own.
func (v *visitor) triggerable() ([]core.TaskState, error) {
	tasks, err := v.rt.Tasks().List(v.r.Context())
	return slices.DeleteFunc(tasks, func(t core.TaskState) bool {
		return strings.HasPrefix(string(t.Definition().ID), server.OwnTasks)
	}), err
}

// wordedForForms adds hints in terms of the page to errors of the book.
func wordedForForms(err error) error {
	if unknown, ok := errors.AsType[*taskbook.UnknownTaskError](err); ok {
		return &runlane.Error{
			Code:    runlane.ErrTaskNotFound,
			Message: unknown.Error(),
			Hint:    "start its worker: it registers its tasks when it ticks",
		}
	}
	missing, ok := errors.AsType[*taskbook.MissingKeysError](err)
	if !ok {
		return err
	}
	flags := make([]string, len(missing.Kinds))
	for i, kind := range missing.Kinds {
		flags[i] = "--" + kind + "-key"
	}
	return &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		Message: missing.Error(),
		Hint:    `give an idempotency key in the form; "runlane trigger" takes every key: ` + strings.Join(flags, ", "),
	}
}

func (v *visitor) payload(schema json.RawMessage) (json.RawMessage, error) {
	if v.r.PostFormValue("as") == "fields" {
		return v.payloadFromFields(fieldsOf(schema))
	}
	return given("payload", cmp.Or(strings.TrimSpace(v.r.PostFormValue("payload")), "null"))
}
