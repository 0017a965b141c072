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
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/server"
)

// overview shows what needs a person, what waits longest, and how full the queues are.
func (v *visitor) overview() (*page, error) {
	ctx := v.r.Context()
	list := func(filter core.RunFilter) (*runlane.Page[runlane.RunSummary], error) {
		return v.list(core.ListOptions{RunFilter: filter, Limit: 10})
	}
	byStatus := func(words string) (*runlane.Page[runlane.RunSummary], error) {
		statuses, _ := shown.Statuses(words)
		return v.list(core.ListOptions{RunFilter: core.RunFilter{Statuses: statuses}, Limit: chartRead})
	}
	asked, err := list(core.RunFilter{Waiting: runlane.WaitingInput})
	if err != nil {
		return nil, err
	}
	blocked, err := list(core.RunFilter{Waiting: runlane.WaitingBlocked})
	if err != nil {
		return nil, err
	}
	failed, err := byStatus("failed")
	if err != nil {
		return nil, err
	}
	active, err := byStatus("active")
	if err != nil {
		return nil, err
	}
	ended, err := byStatus("finished")
	if err != nil {
		return nil, err
	}
	waits := active.Items[:min(len(active.Items), 10)]
	dead, err := v.rt.DeadLetters().List(ctx, &core.ListOptions{Limit: 10})
	if err != nil {
		return nil, err
	}
	queues, _, err := v.queueTable()
	if err != nil {
		return nil, err
	}
	return &page{title: "Overview", nav: "Overview", live: "list", body: g.Group{
		v.statusCounts(active, ended),
		v.needs(asked, blocked, dead.Items),
		section("Failed last", g.Group{
			v.failures(failed),
			g.If(len(failed.Items) > 0 || failed.Next != "",
				h.P(h.A(h.Href(v.listed("status", "failed")), g.Text("All that failed")))),
		}),
		v.chart(ended, active),
		section("Active", v.runTable("Active", waits, g.Group{
			g.Text("Nothing is active. "), h.A(h.Href(v.Prefix+"/trigger"), g.Text("Trigger a run")), g.Text("."),
		})),
		section("Queues", queues),
	}}, nil
}

// needs shows what goes on only when a person does something: runs that ask or are blocked, and dead letters.
func (v *visitor) needs(asked, blocked *runlane.Page[runlane.RunSummary], dead []runlane.DeadLetter) g.Node {
	first := asked
	if first.Next == "" {
		first = blocked
	}
	runs := slices.Concat(asked.Items, blocked.Items)
	if len(runs) == 0 && len(dead) > 0 && first.Next == "" {
		return section("Needs attention", v.deadTable(dead))
	}
	return section("Needs attention", g.Group{
		v.runTable("Waits for people", runs, none(first, g.Text("No run waits for a person, and no wakeup was given up."))),
		g.Iff(len(dead) > 0, func() g.Node { return v.deadTable(dead) }),
	})
}

// statusCounts counts the runs of both pages by status, each with a link to its list.
func (v *visitor) statusCounts(active, ended *runlane.Page[runlane.RunSummary]) g.Node {
	count := map[runlane.Status]int{}
	for _, run := range slices.Concat(active.Items, ended.Items) {
		count[run.Status]++
	}
	var items g.Group
	for _, status := range runlane.Statuses() {
		more := active.Next != ""
		if status.Terminal() {
			more = ended.Next != ""
		}
		if n := count[status]; n > 0 {
			items = append(items, h.Li(h.A(h.Href(v.listed("status", string(status))), badge(status), g.Text(" "), counted(n, more))))
		}
	}
	if len(items) == 0 {
		return g.Group{}
	}
	return h.Ul(h.Class("counts"), h.Aria("label", "Runs by status"), items)
}

// groupsShown limits the kinds of failures of the overview: each costs the read of a run.
const groupsShown = 5

// failures shows the last failed runs by task and code, with the last message of each.
func (v *visitor) failures(failed *runlane.Page[runlane.RunSummary]) g.Node {
	type kind struct {
		task runlane.TaskID
		code runlane.ErrorCode
	}
	count, last, kinds := map[kind]int{}, map[kind]runlane.RunSummary{}, []kind{}
	for _, run := range failed.Items {
		k := kind{run.TaskID, run.FailureCode}
		if count[k]++; count[k] == 1 {
			kinds, last[k] = append(kinds, k), run
		}
	}
	var rows g.Group
	for _, k := range kinds[:min(len(kinds), groupsShown)] {
		message := ""
		if run, err := v.rt.Runs().Get(v.r.Context(), last[k].ID); err == nil { // pruned since: without one
			message = run.Failure.Message
		}
		rows = append(rows, h.Tr(
			h.Td(h.Class("name"), h.A(h.Href(v.listed("status", "failed", "task", string(k.task))), g.Text(visible(string(k.task))))),
			h.Td(counted(count[k], failed.Next != "")),
			h.Td(h.Span(h.Class("badge failed"), g.Text(visible(string(k.code)))), g.Text(" "+visible(clip(message, 200)))),
			h.Td(v.shortRun(last[k].ID)), h.Td(v.ago(last[k].FinishedAt)),
		))
	}
	if more := len(kinds) - groupsShown; more > 0 {
		rows = append(rows, h.Tr(h.Td(h.ColSpan("5"), g.Textf("%d more kinds of failures", more))))
	}
	return table("Failed last", []string{"Task", "Failed", "Why", "Last run", "Ended"}, rows, none(failed, g.Text("No run has failed.")))
}

// queueMost limits the queues that a page counts: each costs a list of its runs.
const queueMost = 20

// queueTable returns a table of all queues, and a table of slots by concurrency key.
func (v *visitor) queueTable() (queues, slots g.Node, err error) {
	states, err := v.rt.Queues().InUse(v.r.Context())
	if err != nil {
		return nil, nil, err
	}
	var rows, keys g.Group
	for i, state := range states {
		name := state.Queue.Name
		link := h.A(h.Href(v.listed("queue", string(name), "status", "active")), g.Text(visible(string(name))))
		if i >= queueMost {
			rows = append(rows, h.Tr(h.Td(link, v.pauseNote(state.Pause)), h.Td(h.ColSpan("6"), v.command("queues", "stats", string(name)))))
			continue
		}
		stats, err := v.rt.Queues().Stats(v.r.Context(), name)
		if stats == nil {
			return nil, nil, err
		}
		keys = append(keys, v.keyRows(&state.Queue, stats)...)
		limit := g.Text("no limit")
		switch n := state.Queue.Concurrency; {
		case n > 0 && len(stats.Keys) > 0:
			limit = g.Textf("%d for each key", n)
		case n > 0:
			limit = slotsOf(stats.Running, stats.Reserved, n, stats.AtLeast)
		}
		if state.Queue.Rated() {
			limit = g.Group{limit, g.Textf(", %s", state.Queue.Rate)}
		}
		rows = append(rows, h.Tr(
			h.Td(link, v.pauseOf(name, state.Pause)), h.Td(counted(stats.Waiting, stats.AtLeast)), h.Td(v.ago(stats.OldestWaiting)),
			h.Td(counted(stats.Running, stats.AtLeast)), h.Td(counted(stats.Delayed, stats.AtLeast)),
			h.Td(v.ago(stats.NextDue)), h.Td(limit),
		))
	}
	columns := []string{"Queue", "Waiting", "Oldest", "Running", "Delayed", "Next due", "Slots"}
	queues = table("Queues", columns, rows, g.Text("No queue is known yet."))
	columns = []string{"Queue", "Key", "Slots", "Waiting", "Running", "Delayed"}
	return queues, table("Slots by key", columns, keys, g.Text("No active run has a concurrency key.")), nil
}

// pauseOf says who paused a queue, and has the form to pause or resume it.
func (v *visitor) pauseOf(name runlane.QueueName, pause *lane.Pause) g.Node {
	shown := g.Group{v.pauseNote(pause)}
	if !v.Has(server.ScopeOperate) {
		return shown
	}
	change := "pause"
	if pause != nil && pause.Active(v.now) {
		change = "resume"
	}
	return append(shown, v.pauseForm("queues", string(name), change))
}

// pauseForm pauses, with a reason, or resumes.
func (v *visitor) pauseForm(what, id, change string) g.Node {
	return h.Form(h.Method("post"), h.Class("inline"), h.Action(v.Prefix+"/"+what+"/"+pathEscape(id)+"/"+change),
		g.Iff(change == "pause", func() g.Node {
			field := "reason-" + id
			return g.Group{
				h.Label(h.Class("sr"), h.For(field), g.Text("Reason to pause "+visible(id))),
				reasonField(field, ""),
			}
		}),
		h.Button(h.Aria("label", change+" "+id), g.Text(change)), v.command(what, change, id))
}

// pauseNote says below a queue's or a task's name who paused it, why, since and until when.
func (v *visitor) pauseNote(p *lane.Pause) g.Node {
	if p == nil || !p.Active(v.now) {
		return g.Group{}
	}
	text := "paused"
	if p.Actor.ID != "" {
		text += " by " + p.Actor.ID
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	note := g.Group{g.Text(visible(text) + ", since "), v.ago(p.Since)}
	if !p.Until.IsZero() {
		note = append(note, g.Text(", until "), v.ago(p.Until))
	}
	return h.P(h.Class("note"), note)
}

const keysShown = 20

// keyRows shows the concurrency keys of a queue, those with the most waiting runs first.
func (v *visitor) keyRows(queue *runlane.Queue, stats *core.QueueStats) g.Group {
	var rows g.Group
	name, atLeast := g.Text(visible(string(queue.Name))), stats.AtLeast || stats.KeysAtLeast
	for i := range stats.Keys[:min(len(stats.Keys), keysShown)] {
		k := &stats.Keys[i]
		key := h.Code(g.Text(visible(clip(k.Key, 80))))
		if k.Key == "" {
			key = g.Text("none")
		}
		slots := g.Text("no limit")
		if queue.Concurrency > 0 {
			slots = slotsOf(k.Running, k.Reserved, queue.Concurrency, atLeast)
		}
		rows = append(rows, h.Tr(
			h.Td(name), h.Td(key), h.Td(slots), h.Td(counted(k.Waiting, atLeast)),
			h.Td(counted(k.Running, atLeast)), h.Td(counted(k.Delayed, atLeast)),
		))
	}
	if more := len(stats.Keys) - keysShown + stats.MoreKeys; more > 0 {
		rows = append(rows, h.Tr(h.Td(name), h.Td(h.ColSpan("5"), g.Textf("%d more: ", more),
			v.command("queues", "stats", string(queue.Name)))))
	}
	return rows
}

func slotsOf(running, reserved, limit int, atLeast bool) g.Node {
	said := fmt.Sprintf("%d of %d", running+reserved, limit)
	if reserved > 0 {
		said += fmt.Sprintf(", %d reserved", reserved)
	}
	if atLeast {
		said = "at least " + said
	}
	return g.Group{
		h.El("meter", h.Attr("min", "0"), h.Attr("max", fmt.Sprint(limit)), h.Value(fmt.Sprint(min(running+reserved, limit))), h.Aria("hidden", "true")),
		g.Text(" " + said),
	}
}

func counted(n int, atLeast bool) g.Node {
	if atLeast {
		return g.Textf("%d or more", n)
	}
	return g.Textf("%d", n)
}

func (v *visitor) queues() (*page, error) {
	body, keys, err := v.queueTable()
	if err != nil {
		return nil, err
	}
	return &page{title: "Queues", nav: "Queues", live: "list", body: g.Group{body, section("Slots by key", keys)}}, nil
}

func (v *visitor) schedules() (*page, error) {
	var rows g.Group
	for state, err := range v.rt.Schedules().List(v.r.Context()) {
		if err != nil {
			return nil, err
		}
		skipped := g.Text("not read")
		if len(rows) < skippedMost {
			if skipped, err = v.skipped(state.ID); err != nil {
				return nil, err
			}
		}
		rows = append(rows, v.scheduleRow(&state, skipped))
	}
	return &page{title: "Schedules", nav: "Schedules", live: "list", body: g.Group{
		table("Schedules", []string{"Schedule", "State", "Next", "Last", "Last run", "Skipped", "Change"}, rows,
			g.Text("No schedule is known: workers register their schedules when they tick.")),
	}}, nil
}

// Limits of skipped times: of how many schedules they are read, and how many are shown of each.
const (
	skippedMost  = 20
	skippedShown = 5
)

// skipped shows the last times of a schedule that created no run, with the reason.
func (v *visitor) skipped(id runlane.ScheduleID) (g.Node, error) {
	var times g.Group
	first := g.Text("–")
	for at, err := range v.rt.Schedules().Occurrences(v.r.Context(), id, true) {
		if err != nil {
			return nil, err
		}
		if len(times) == skippedShown {
			times = append(times, h.Li(g.Text("older ones")))
			break
		}
		why := skippedWord(at.Skipped)
		if at.Count > 1 {
			why = fmt.Sprintf("%s, %d times", why, at.Count)
		}
		said := g.Group{v.ago(at.FireTime), g.Text(": " + why)}
		if len(times) == 0 {
			first = said
		}
		times = append(times, h.Li(said))
	}
	if len(times) < 2 {
		return first, nil
	}
	return h.Details(h.Summary(first), h.Ul(times)), nil
}

func skippedWord(why runlane.SkipReason) string {
	switch why {
	case runlane.SkippedMisfire:
		return "missed"
	case runlane.SkippedOverlap:
		return "the run before was active"
	case runlane.SkippedSingleton:
		return "another run had its singleton key"
	case runlane.SkippedPaused:
		return "paused"
	case runlane.SkippedIDTaken:
		return "a run of another origin has the id of its run"
	default:
		return visible(string(why))
	}
}

func (v *visitor) scheduleRow(s *core.ScheduleState, skipped g.Node) g.Node {
	id := string(s.ID)
	state, next := g.Text("active"), v.ago(s.Next)
	if s.Paused {
		state, next = g.Text("paused"), g.Text("–")
		if s.PauseReason != "" {
			state = g.Text(visible("paused: " + s.PauseReason))
		}
	}
	var upcoming g.Group
	if times, err := v.rt.Schedules().Preview(s.ID, 5); err == nil && !s.Paused {
		for _, at := range times {
			upcoming = append(upcoming, h.Li(v.ago(at)))
		}
		next = h.Details(h.Summary(next), h.Ul(upcoming))
	}
	last := g.Text("–")
	if s.LastRunID != "" {
		last = v.runLink(s.LastRunID)
	}
	var forms g.Group
	if v.Has(server.ScopeOperate) {
		changes := []string{"pause", "trigger"}
		if s.Paused {
			changes = []string{"resume", "trigger"}
		}
		for _, change := range changes {
			if change != "pause" && !s.Known {
				continue
			}
			forms = append(forms, v.pauseForm("schedules", id, change))
		}
	}
	if v.Has(server.ScopeOperate) && !s.Known {
		forms = append(forms, h.P(h.Class("note"), g.Text("This server does not have its definition: the program that "+
			"has it resumes and triggers it, by its worker or its own serve.")))
	}
	return h.Tr(
		h.Td(h.Class("name"), h.A(h.Href(v.listed("schedule", id)), g.Text(visible(id)))), h.Td(state), h.Td(next),
		h.Td(v.ago(s.LastFire)), h.Td(last), h.Td(skipped), h.Td(forms),
	)
}

func (v *visitor) deadLetters() (*page, error) {
	found, err := v.rt.DeadLetters().List(v.r.Context(), &core.ListOptions{
		After: runlane.Cursor(v.r.URL.Query().Get("after")), Limit: 50,
	})
	if err != nil {
		return nil, err
	}
	more := g.Group{}
	if found.Next != "" {
		more = append(more, v.more("/deadletters", url.Values{"after": {string(found.Next)}}))
	}
	return &page{title: "Dead letters", nav: "Dead letters", live: "list", body: g.Group{
		h.P(h.Class("note"),
			g.Text("Wakeups that were given up: their runs wait until they are requeued or cancelled.")),
		v.deadTable(found.Items), more,
	}}, nil
}

func (v *visitor) deadTable(letters []runlane.DeadLetter) g.Node {
	rows := g.Map(letters, func(d runlane.DeadLetter) g.Node {
		var form g.Group
		if v.Has(server.ScopeOperate) {
			form = append(form, h.Form(h.Method("post"), h.Class("inline"),
				h.Action(v.Prefix+"/deadletters/"+pathEscape(string(d.RunID))+"/requeue"),
				h.Button(h.Aria("label", "Requeue "+string(d.RunID)), g.Text("Requeue")),
				v.command("deadletters", "requeue", string(d.RunID))))
		}
		return h.Tr(
			h.Td(v.runLink(d.RunID)), h.Td(g.Text(visible(string(d.Queue)))), h.Td(v.ago(d.Since)),
			h.Td(g.Textf("%d", d.Attempts)), h.Td(g.Text(visible(clip(d.Failure.Message, 200)))), h.Td(form),
		)
	})
	return table("Dead letters", []string{"Run", "Queue", "Since", "Tries", "Why", "Change"}, rows,
		g.Text("There are none: every wakeup was handed over."))
}

func (v *visitor) tasks() (*page, error) {
	states, err := v.rt.Tasks().List(v.r.Context())
	if err != nil {
		return nil, err
	}
	slices.SortFunc(states, func(a, b core.TaskState) int {
		if a.Definition().ID < b.Definition().ID {
			return -1
		}
		return 1
	})
	rows := g.Map(states, func(state core.TaskState) g.Node {
		d := state.Definition()
		seen := g.Text("here")
		if !state.Known {
			seen = v.ago(state.SeenAt)
		}
		return h.Tr(
			h.Td(h.A(h.Href(v.listed("task", string(d.ID))), g.Text(visible(string(d.ID)))), v.pauseNote(state.Pause)),
			h.Td(g.Text(visible(string(d.Queue.Name)))), h.Td(g.Textf("%d", d.Retry.MaxAttempts)),
			h.Td(timeoutText(d.Timeout)), h.Td(seen, g.If(state.Gone(v.now), g.Text(" (gone)"))),
			h.Td(g.Iff(v.Has(server.ScopeTrigger) && !strings.HasPrefix(string(d.ID), server.OwnTasks), func() g.Node {
				return h.A(h.Href(v.Prefix+"/trigger?task="+pathEscape(string(d.ID))), g.Text("Trigger"))
			})),
		)
	})
	return &page{title: "Tasks", nav: "Tasks", body: g.Group{
		table("Tasks", []string{"Task", "Queue", "Attempts", "Timeout", "Seen", "Run"}, rows,
			g.Text("No task is known yet: workers register their tasks when they tick.")),
	}}, nil
}

func timeoutText(d time.Duration) g.Node {
	if d == 0 {
		return g.Text("none")
	}
	return g.Text(short(d))
}
