package console

import (
	"net/url"
	"slices"

	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
	"github.com/runlane/runlane-go/server"
)

// overview is what needs a person, what waits longest, and how full the queues are.
func (v *visitor) overview() (*page, error) {
	ctx := v.r.Context()
	list := func(filter core.RunFilter) ([]runlane.RunSummary, error) {
		found, err := v.rt.Runs().List(ctx, &core.ListOptions{RunFilter: filter, Limit: 10})
		if err != nil {
			return nil, err
		}
		return found.Items, nil
	}
	active, _ := shown.Statuses("active")
	asked, err := list(core.RunFilter{Waiting: runlane.WaitingInput})
	if err != nil {
		return nil, err
	}
	blocked, err := list(core.RunFilter{Waiting: runlane.WaitingBlocked})
	if err != nil {
		return nil, err
	}
	failed, err := list(core.RunFilter{Statuses: []runlane.Status{runlane.StatusFailed}})
	if err != nil {
		return nil, err
	}
	waits, err := list(core.RunFilter{Statuses: active})
	if err != nil {
		return nil, err
	}
	dead, err := v.rt.DeadLetters().List(ctx, &core.ListOptions{Limit: 10})
	if err != nil {
		return nil, err
	}
	queues, err := v.queueTable()
	if err != nil {
		return nil, err
	}
	needs := g.Group{}
	if people := slices.Concat(asked, blocked); len(people) > 0 {
		needs = append(needs, section("Waits for people", v.runTable("Waits for people", people, g.Text(""))))
	}
	if len(dead.Items) > 0 {
		needs = append(needs, section("Dead letters", v.deadTable(dead.Items)))
	}
	return &page{title: "Overview", nav: "Overview", live: "list", body: g.Group{
		needs,
		section("Failed last", g.Group{
			v.runTable("Failed last", failed, g.Text("No run has failed.")),
			g.If(len(failed) > 0, h.P(h.A(h.Href(v.listed("status", "failed")), g.Text("All that failed")))),
		}),
		section("Needs attention first", v.runTable("Needs attention first", waits, g.Group{
			g.Text("Nothing is active. "), h.A(h.Href(v.Prefix+"/trigger"), g.Text("Trigger a run")), g.Text("."),
		})),
		section("Queues", queues),
	}}, nil
}

// queueMost bounds how many queues a page counts: each costs a list of its runs.
const queueMost = 20

func (v *visitor) queueTable() (g.Node, error) {
	states, err := v.rt.Queues().InUse(v.r.Context())
	if err != nil {
		return nil, err
	}
	var rows g.Group
	for i, state := range states {
		name := state.Queue.Name
		link := h.A(h.Href(v.listed("queue", string(name), "status", "active")), g.Text(visible(string(name))))
		if i >= queueMost {
			rows = append(rows, h.Tr(h.Td(link), h.Td(h.ColSpan("6"), v.command("queues", "stats", string(name)))))
			continue
		}
		stats, err := v.rt.Queues().Stats(v.r.Context(), name)
		if stats == nil {
			return nil, err
		}
		limit := g.Text("none")
		if n := state.Queue.Concurrency; n > 0 {
			limit = g.Textf("%d", n)
		}
		rows = append(rows, h.Tr(
			h.Td(link), h.Td(counted(stats.Waiting, stats.AtLeast)), h.Td(v.ago(stats.OldestWaiting)),
			h.Td(counted(stats.Running, stats.AtLeast)), h.Td(counted(stats.Delayed, stats.AtLeast)),
			h.Td(v.ago(stats.NextDue)), h.Td(limit),
		))
	}
	columns := []string{"Queue", "Waiting", "Oldest", "Running", "Delayed", "Next due", "Limit"}
	return table("Queues", columns, rows, g.Text("No queue is known yet.")), nil
}

func counted(n int, atLeast bool) g.Node {
	if atLeast {
		return g.Textf("%d or more", n)
	}
	return g.Textf("%d", n)
}

func (v *visitor) queues() (*page, error) {
	body, err := v.queueTable()
	if err != nil {
		return nil, err
	}
	return &page{title: "Queues", nav: "Queues", live: "list", body: g.Group{body}}, nil
}

func (v *visitor) schedules() (*page, error) {
	var rows g.Group
	for state, err := range v.rt.Schedules().List(v.r.Context()) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, v.scheduleRow(&state))
	}
	return &page{title: "Schedules", nav: "Schedules", live: "list", body: g.Group{
		table("Schedules", []string{"Schedule", "State", "Next", "Last", "Last run", "Change"}, rows,
			g.Text("No schedule is known: a worker tells of its schedules when it ticks.")),
	}}, nil
}

func (v *visitor) scheduleRow(s *core.ScheduleState) g.Node {
	id := string(s.ID)
	state, next := g.Text("active"), v.ago(s.Next)
	if s.Paused {
		state, next = g.Text(visible("paused: "+s.PauseReason)), g.Text("–")
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
			if change == "trigger" && !s.Known {
				continue
			}
			forms = append(forms, h.Form(h.Method("post"), h.Class("inline"),
				h.Action(v.Prefix+"/schedules/"+pathEscape(id)+"/"+change),
				h.Button(h.Aria("label", change+" "+id), g.Text(change)), v.command("schedules", change, id)))
		}
	}
	return h.Tr(
		h.Td(h.A(h.Href(v.listed("schedule", id)), g.Text(visible(id)))), h.Td(state), h.Td(next),
		h.Td(v.ago(s.LastFire)), h.Td(last), h.Td(forms),
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
			h.Td(h.A(h.Href(v.listed("task", string(d.ID))), g.Text(visible(string(d.ID))))),
			h.Td(g.Text(visible(string(d.Queue.Name)))), h.Td(g.Textf("%d", d.Retry.MaxAttempts)),
			h.Td(g.Text(short(d.Timeout))), h.Td(seen, g.If(state.Gone(v.now), g.Text(" (gone)"))),
			h.Td(g.Iff(v.Has(server.ScopeTrigger), func() g.Node {
				return h.A(h.Href(v.Prefix+"/trigger?task="+pathEscape(string(d.ID))), g.Text("Trigger"))
			})),
		)
	})
	return &page{title: "Tasks", nav: "Tasks", body: g.Group{
		table("Tasks", []string{"Task", "Queue", "Attempts at most", "Timeout", "Seen", "Run"}, rows,
			g.Text("No task is known yet: a worker tells of its tasks when it ticks.")),
	}}, nil
}
