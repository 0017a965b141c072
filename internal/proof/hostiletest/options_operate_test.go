package hostiletest_test

import (
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// listing is a refusal by both lists.
func listing(what string, o core.ListOptions) refusal {
	return failed(what, func(w *world) []error {
		var walked error
		for _, walked = range w.rt.Runs().All(w.ctx(), &o) {
			break
		}
		return []error{errorOf(w.rt.Runs().List(w.ctx(), &o)), errorOf(w.rt.DeadLetters().List(w.ctx(), &o)), walked}
	})
}

// changing is a refusal by every call that changes one thing.
func changing(what string, o core.ChangeOptions) refusal {
	return failed(what, func(w *world) []error {
		runs, schedules := w.rt.Runs(), w.rt.Schedules()
		return []error{
			errorOf(runs.Cancel(w.ctx(), "run_1", &o)), errorOf(runs.Rerun(w.ctx(), "run_1", &o)), errorOf(runs.Retry(w.ctx(), "run_1", &o)),
			w.rt.DeadLetters().Requeue(w.ctx(), "run_1", &o),
			schedules.Pause(w.ctx(), "schedule", &o), schedules.Resume(w.ctx(), "schedule", &o),
			errorOf(schedules.TriggerNow(w.ctx(), "schedule", &o)),
		}
	})
}

// pausing is a refusal to pause a queue, and a task.
func pausing(what string, o core.PauseOptions) refusal {
	return failed(what, func(w *world) []error {
		return []error{errorOf(w.rt.Queues().Pause(w.ctx(), "queue", &o)), errorOf(w.rt.Tasks().Pause(w.ctx(), "task", &o))}
	})
}

// all is a refusal by every bulk call. Without a filter it means all runs.
func all(what string, o core.BulkOptions) refusal {
	return failed(what, func(w *world) []error {
		return []error{
			errorOf(w.rt.Runs().CancelAll(w.ctx(), &o)), errorOf(w.rt.Runs().RerunAll(w.ctx(), &o)), errorOf(w.rt.Runs().RetryAll(w.ctx(), &o)),
			errorOf(w.rt.DeadLetters().RequeueAll(w.ctx(), &o)),
		}
	})
}

func pruning(what string, o *core.PruneOptions) refusal {
	return failed(what, func(w *world) []error { return []error{errorOf(w.rt.Runs().Prune(w.ctx(), o))} })
}

func following(what string, o core.EventOptions) refusal {
	return failed(what, func(w *world) []error {
		var err error
		for _, err = range w.rt.Runs().Events(w.ctx(), "run_1", &o) {
			break
		}
		return []error{err}
	})
}

func logging(what string, o core.LogOptions) refusal {
	return failed(what, func(w *world) []error {
		var err error
		for _, err = range w.rt.Runs().Logs(w.ctx(), "run_1", &o) {
			break
		}
		return []error{err}
	})
}

// claiming is a refusal by Claim.
func claiming(what string, options core.ClaimOptions) refusal {
	return failed(what, func(w *world) []error {
		return []error{errorOf(w.rt.Claim(w.ctx(), &options))}
	})
}

func operateRules() map[string]rule {
	const madeUp = "made up"
	longReason := strings.Repeat("r", runlane.MaxReasonBytes+1)
	robot, untyped := runlane.Actor{Type: "robot"}, runlane.Actor{ID: "me"}
	odd := runlane.Actor{Type: runlane.ActorOperator, ID: unprintable}
	statuses := func(s ...runlane.Status) core.RunFilter { return core.RunFilter{Statuses: s} }
	everything := func(o core.BulkOptions) core.BulkOptions { o.AllRuns = true; return o }
	changed := func(o core.ChangeOptions) core.BulkOptions { return core.BulkOptions{ChangeOptions: o, AllRuns: true} }
	reversed := core.RunFilter{Since: time.UnixMilli(2), Until: time.UnixMilli(1)}
	filtered := func(f core.RunFilter) core.BulkOptions { return core.BulkOptions{RunFilter: f} }
	return map[string]rule{
		"core.ListOptions.Queue":       refuses(listing("a colon", core.ListOptions{RunFilter: core.RunFilter{Queue: colon}})),
		"core.ListOptions.ScheduleID":  refuses(listing("a colon", core.ListOptions{RunFilter: core.RunFilter{ScheduleID: colon}})),
		"core.ListOptions.SourceRunID": refuses(listing("a colon", core.ListOptions{RunFilter: core.RunFilter{SourceRunID: colon}})),
		"core.ListOptions.TaskID":      refuses(listing("a colon", core.ListOptions{RunFilter: core.RunFilter{TaskID: colon}})),
		"core.ListOptions.Statuses":    refuses(listing("unknown", core.ListOptions{RunFilter: statuses("odd")})),
		"core.ListOptions.Waiting":     refuses(listing("unknown", core.ListOptions{RunFilter: core.RunFilter{Waiting: "odd"}})),
		"core.ListOptions.FailureCode": legal("applications have codes of their own"),
		"core.ListOptions.Since":       refuses(listing("after Until", core.ListOptions{RunFilter: reversed})),
		"core.ListOptions.Until":       legal("refused with Since"),
		"core.ListOptions.After":       refuses(listing("made up", core.ListOptions{After: madeUp})),
		"core.ListOptions.Limit": refuses(
			listing("negative", core.ListOptions{Limit: -1}), listing("too many", core.ListOptions{Limit: runlane.MaxPageLimit + 1}),
		),

		"core.ChangeOptions.Actor": refuses(
			changing("an unknown type", core.ChangeOptions{Actor: robot}), changing("no type", core.ChangeOptions{Actor: untyped}),
			changing("an unprintable id", core.ChangeOptions{Actor: odd}),
		),
		"core.ChangeOptions.Reason": refuses(
			changing("too long", core.ChangeOptions{Reason: longReason}), changing("no text", core.ChangeOptions{Reason: notUTF8}),
		),

		"core.PauseOptions.Actor": refuses(
			pausing("an unknown type", core.PauseOptions{ChangeOptions: core.ChangeOptions{Actor: robot}}),
		),
		"core.PauseOptions.Reason": refuses(
			pausing("no text", core.PauseOptions{ChangeOptions: core.ChangeOptions{Reason: notUTF8}}),
		),
		"core.PauseOptions.Until": refuses(pausing("over", core.PauseOptions{Until: time.Unix(1, 0)})),

		"core.BulkOptions.Actor": refuses(
			all("an unknown type", changed(core.ChangeOptions{Actor: robot})), all("no type", changed(core.ChangeOptions{Actor: untyped})),
		),
		"core.BulkOptions.Reason": refuses(
			all("too long", changed(core.ChangeOptions{Reason: longReason})), all("no text", changed(core.ChangeOptions{Reason: notUTF8})),
		),
		"core.BulkOptions.Queue":       refuses(all("a colon", filtered(core.RunFilter{Queue: colon}))),
		"core.BulkOptions.ScheduleID":  refuses(all("a colon", filtered(core.RunFilter{ScheduleID: colon}))),
		"core.BulkOptions.SourceRunID": refuses(all("a colon", filtered(core.RunFilter{SourceRunID: colon}))),
		"core.BulkOptions.TaskID":      refuses(all("a colon", filtered(core.RunFilter{TaskID: colon}))),
		"core.BulkOptions.Waiting":     refuses(all("unknown", filtered(core.RunFilter{Waiting: "odd"}))),
		"core.BulkOptions.FailureCode": legal("applications have codes of their own"),
		"core.BulkOptions.Since":       refuses(all("after Until", filtered(reversed))),
		"core.BulkOptions.Until":       legal("refused with Since"),
		"core.BulkOptions.Statuses": refuses(
			all("unknown", filtered(statuses("odd"))),
			failed("not what the call is about", func(w *world) []error {
				ended, active := filtered(statuses(runlane.StatusFailed)), filtered(statuses(runlane.StatusQueued))
				cancelled := filtered(statuses(runlane.StatusCancelled))
				return []error{
					errorOf(w.rt.Runs().CancelAll(w.ctx(), &ended)), errorOf(w.rt.Runs().RerunAll(w.ctx(), &active)),
					errorOf(w.rt.Runs().RetryAll(w.ctx(), &cancelled)), errorOf(w.rt.DeadLetters().RequeueAll(w.ctx(), &ended)),
				}
			}),
		),
		"core.BulkOptions.AllRuns": refuses(
			all("without a filter", core.BulkOptions{}).as("BulkOptions has no filter"),
			all("beside a filter", everything(filtered(core.RunFilter{Queue: "default"}))),
		),
		"core.BulkOptions.After":  refuses(all("made up", everything(core.BulkOptions{After: madeUp}))),
		"core.BulkOptions.Cap":    refuses(all("negative", everything(core.BulkOptions{Cap: -1}))),
		"core.BulkOptions.DryRun": legal("both are meant"),

		"core.PruneOptions.OlderThan": refuses(
			pruning("no options", nil), pruning("not set", &core.PruneOptions{}), pruning("negative", &core.PruneOptions{OlderThan: -time.Hour}),
		),
		"core.PruneOptions.Statuses": refuses(
			pruning("active", &core.PruneOptions{OlderThan: 1, Statuses: []runlane.Status{runlane.StatusFailed, runlane.StatusQueued}}),
			pruning("unknown", &core.PruneOptions{OlderThan: 1, Statuses: []runlane.Status{"odd"}}),
		),
		"core.PruneOptions.After": refuses(pruning("made up", &core.PruneOptions{OlderThan: 1, After: madeUp})),
		"core.PruneOptions.Limit": refuses(
			pruning("negative", &core.PruneOptions{OlderThan: 1, Limit: -1}),
			pruning("too many", &core.PruneOptions{OlderThan: 1, Limit: runlane.MaxPageLimit + 1}),
		),
		"core.OrphanOptions.Limit": refuses(failed("negative", func(w *world) []error {
			return []error{errorOf(w.rt.Runs().OrphanedBodies(w.ctx(), &core.OrphanOptions{Limit: -1}))}
		})),
		"core.OrphanOptions.Remove":       legal("both are meant"),
		"core.ExportOptions.Wait":         legal("both are meant"),
		"core.ExportOptions.LeaveSignals": legal("both are meant"),
		"core.PruneOptions.DryRun":        legal("both are meant"),
		"core.PruneOptions.ReleaseOwners": legal("both are meant"),

		"core.ClaimOptions.ClaimID": refuses(
			claiming("too short", core.ClaimOptions{ClaimID: strings.Repeat("x", core.MinClaimID-1)}),
			claiming("too long", core.ClaimOptions{ClaimID: strings.Repeat("x", core.MaxClaimID+1)}),
		),
		"core.ClaimOptions.Lease": refuses(
			claiming("too short", core.ClaimOptions{Lease: core.MinLease - 1}),
			claiming("too long", core.ClaimOptions{Lease: core.MaxClaimLease + 1}),
		),
		"core.ClaimOptions.Queues": refuses(invalid("none, or no binding", func(w *world) (errs []error) {
			for _, names := range [][]runlane.QueueName{{}, {"elsewhere"}} {
				errs = append(errs, errorOf(w.rt.Claim(w.ctx(), &core.ClaimOptions{Queues: names})))
			}
			return errs
		})),
		"core.ClaimOptions.RunID": refuses(claiming("unprintable", core.ClaimOptions{RunID: unprintable}).as("run id")),
		"core.ClaimOptions.Tasks": refuses(refusal{
			what:  "unknown",
			code:  runlane.ErrTaskNotFound,
			names: "task",
			calls: func(w *world) []error {
				return []error{errorOf(w.rt.Claim(w.ctx(), &core.ClaimOptions{Tasks: []runlane.TaskID{"odd"}, Wait: 1}))}
			},
		}),
		"core.ClaimOptions.Wait":     legal("less than 0 does not wait"),
		"core.ClaimOptions.WorkerID": refuses(claiming("unprintable", core.ClaimOptions{WorkerID: unprintable}).as("worker")),

		"core.FeedOptions.After": refuses(failed("made up", func(w *world) []error {
			for _, err := range w.rt.Runs().Feed(w.ctx(), &core.FeedOptions{After: madeUp}) {
				return []error{err}
			}
			return []error{nil}
		})),
		"core.FeedOptions.Follow": legal("both are meant"),

		"core.LogOptions.Attempt": refuses(logging("negative", core.LogOptions{Attempt: -1})),
		"core.LogOptions.After":   refuses(logging("made up", core.LogOptions{After: madeUp})),
		"core.LogOptions.Follow":  legal("both are meant"),

		"core.TreeOptions.Each": refuses(failed("negative", func(w *world) []error {
			return []error{errorOf(w.rt.Runs().Tree(w.ctx(), "run_1", &core.TreeOptions{Each: -1}))}
		})),
		"core.TreeOptions.Read": refuses(failed("above the most", func(w *world) []error {
			return []error{errorOf(w.rt.Runs().Tree(w.ctx(), "run_1", &core.TreeOptions{Read: core.MaxTreeRead + 1}))}
		})),
		"core.EventOptions.After":      refuses(following("made up", core.EventOptions{After: madeUp})),
		"core.EventOptions.Descending": refuses(following("with Follow", core.EventOptions{Descending: true, Follow: true})),
		"core.EventOptions.Follow":     refuses(following("with Descending", core.EventOptions{Descending: true, Follow: true})),
	}
}
