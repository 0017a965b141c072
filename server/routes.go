package server

import (
	"context"
	"net/http"
	"reflect"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

// operations is the table of routes. Each route is served, described in openapi.json, and tested with each kind of
// fault.
func operations() []operation {
	all := append(runOperations(), bodyOperations()...)
	all = append(all, waitOperations()...)
	all = append(all, flowOperations()...)
	all = append(all, workOperations()...)
	all = append(all, changeOperations()...)
	all = append(all, bulkOperations()...)
	all = append(all, scheduleOperations()...)
	return append(append(all, environmentOperations()...), fixedOperations()...)
}

func ok[T any](kind string) []answer {
	return []answer{{status: http.StatusOK, kind: kind, of: reflect.TypeFor[T]()}}
}

func many[T any](kind string) []answer {
	return []answer{{status: http.StatusOK, kind: kind, of: reflect.TypeFor[T](), list: true}}
}

// madeOrFound are the answers of an operation that creates a run or finds an existing one.
func madeOrFound[T any](kind string) []answer {
	return []answer{
		{status: http.StatusCreated, kind: kind, of: reflect.TypeFor[T](), text: "the run was made"},
		{status: http.StatusOK, kind: kind, of: reflect.TypeFor[T](), text: "an earlier call made the run"},
	}
}

func asBytes() []answer {
	return []answer{{status: http.StatusOK, text: "JSON, byte by byte as it was given"}}
}

func runOperations() []operation {
	return []operation{
		serve(operation{
			method:  "GET",
			path:    "/v1/runs",
			scope:   ScopeRead,
			name:    "listRuns",
			group:   "Runs",
			summary: "List runs",
			text: "Active runs come first, by when they next need attention, then finished ones, the newest " +
				"first. A page may be short or empty and still have next. Lists lag a little behind single " +
				"runs.",
			answers: many[runlane.RunSummary]("run.summary"),
		}, listRuns),
		serve(operation{
			method:  "POST",
			path:    "/v1/runs",
			scope:   ScopeTrigger,
			name:    "triggerRun",
			group:   "Runs",
			summary: "Trigger a run",
			text: "When it answers, the run is durable and will execute. The header Idempotency-Key is the " +
				"field idempotencyKey. Without a key or an id of your own, a call whose answer was lost makes " +
				"a second run when it is repeated.",
			answers:  madeOrFound[shown.Triggered]("triggered"),
			limit:    MaxTriggerBody,
			takesKey: true,
		}, triggerRun),
		serve(operation{
			method:  "POST",
			path:    "/v1/batch",
			scope:   ScopeTrigger,
			name:    "triggerBatch",
			group:   "Runs",
			summary: "Trigger many runs",
			text: "Each run is a separate commit: an invalid one fails alone, with its error at its place. Give each a " +
				"key or an id, so that a batch can be repeated.",
			answers: ok[batchResult]("batch"),
			limit:   MaxBatchBody,
		}, triggerBatch),
		serve(operation{
			method:  "GET",
			path:    "/v1/runs/{run}",
			scope:   ScopeRead,
			name:    "getRun",
			group:   "Runs",
			summary: "Get a run, exactly as it is now",
			text: "The ETag is the number of the last event. With wait the answer comes when the run has ended. " +
				"Callers without the scope payloads get it without payload and output.",
			answers: ok[runlane.Run]("run"),
			tagged:  true,
		}, getRun),
		serve(operation{
			method:  "GET",
			path:    "/v1/runs/{run}/events",
			scope:   ScopeRead,
			name:    "listEvents",
			group:   "Runs",
			summary: "List what happened to a run",
			text:    "Every event has a cursor, which is also a value for after. /events streams them.",
			answers: many[shown.Event]("event"),
		}, listEvents),
		serve(operation{
			method:  "GET",
			path:    "/v1/runs/{run}/logs",
			scope:   ScopeRead,
			name:    "listLogs",
			group:   "Runs",
			summary: "List what the attempts of a run logged",
			text: "Only tasks with KeepLogs keep it. Callers without the scope payloads get the lines without their text. " +
				"Behind the last line, ask again with its cursor as after.",
			answers: many[core.LogLine]("log"),
		}, listLogs),
		serve(operation{
			method:  "GET",
			path:    "/v1/runs/{run}/attempts",
			scope:   ScopeRead,
			name:    "listAttempts",
			group:   "Runs",
			summary: "List the attempts of a run",
			answers: many[core.AttemptSummary]("attempt"),
		}, listAttempts),
		serve(operation{
			method:  "GET",
			path:    "/v1/runs/{run}/explanation",
			scope:   ScopeRead,
			name:    "explainRun",
			group:   "Runs",
			summary: "Explain the state of a run, and what happens next",
			answers: ok[core.Explanation]("explanation"),
		}, explainRun),
		serve(operation{
			method:  "GET",
			path:    "/v1/runs/{run}/progress",
			scope:   ScopeRead,
			name:    "getProgress",
			group:   "Runs",
			summary: "Get the last note that an attempt of a run left",
			answers: ok[runlane.Progress]("progress"),
		}, getProgress),
	}
}

func changeRoute(verb, name, summary, text string, repeats bool, one changeOne) operation {
	answers := ok[shown.Change]("change")
	if repeats {
		answers = madeOrFound[shown.Change]("change")
	}
	return serve(operation{
		method:  "POST",
		path:    "/v1/runs/{run}/" + verb,
		scope:   ScopeOperate,
		name:    name,
		group:   "Changes",
		summary: summary,
		text:    text,
		answers: answers,
	}, changeHandler(one))
}

const askTwice = " Asking twice makes one run: to repeat once more, repeat the run that was made."

func changeOperations() []operation {
	return []operation{
		changeRoute("cancel", "cancelRun", "Stop a run",
			"A waiting run ends at once. A running one is asked to stop: its worker ends the handler's "+
				"context.", false, cancelRun),
		changeRoute("resume", "resumeRun", "Let a waiting run go on now",
			"What is left of a delay, of the backoff of a retry, or of a release is skipped.", false, resumeRun),
		changeRoute("retry", "retryRun", "Repeat a failed run, as a new run",
			"The new run has the task's whole retry budget, takes over the idempotency key, and names the old one as "+
				"its source."+askTwice, true, repeatRun(runlane.SourceManualRetry)),
		changeRoute("rerun", "rerunRun", "Repeat a finished run, as a new run",
			"The new run has the payload of the old one and names it as its source."+
				askTwice, true, repeatRun(runlane.SourceRerun)),
		serve(operation{
			method:  "GET",
			path:    "/v1/deadletters",
			scope:   ScopeRead,
			name:    "listDeadLetters",
			group:   "Dead letters",
			summary: "List wakeups that were given up, the oldest first",
			text:    "Their runs wait until the wakeup is requeued or the run is cancelled.",
			answers: many[runlane.DeadLetter]("deadletter"),
		}, listDeadLetters),
		serve(operation{
			method:  "POST",
			path:    "/v1/deadletters/{run}/requeue",
			scope:   ScopeOperate,
			name:    "requeueRun",
			group:   "Dead letters",
			summary: "Ask for a fresh wakeup of a run",
			text:    "Correct the cause first: the list shows it.",
			answers: ok[shown.Change]("change"),
		}, changeHandler(requeueRun)),
		serve(operation{
			method:  "POST",
			path:    "/v1/keys/find",
			scope:   ScopeRead,
			name:    "findKey",
			group:   "Keys",
			summary: "Get the run that owns a key",
			text:    "The key is in the body, since proxies log URLs.",
			answers: ok[runlane.Run]("run"),
		}, findKey),
		serve(operation{
			method:  "POST",
			path:    "/v1/keys/reset",
			scope:   ScopeOperate,
			name:    "resetKey",
			group:   "Keys",
			summary: "Free an idempotency key that a finished run still retains",
			text: "The next trigger with the key makes a new run. A key of an active run stays: cancel the run " +
				"first.",
			answers: ok[shown.KeyReset]("key.reset"),
		}, resetKey),
	}
}

func bulkRoute(
	verb, name, summary string, all func(context.Context, *core.Runtime, *core.BulkOptions) (*core.BulkResult, error),
) operation {
	return serve(operation{
		method:  "POST",
		path:    "/v1/bulk/" + verb,
		scope:   ScopeOperate,
		name:    name,
		group:   "Bulk",
		summary: summary,
		text: "A filter is required, or all. Count with dryRun first. Call again with the same body and after = " +
			"next until there is no next: nothing is done twice.",
		answers: ok[bulkOutcome]("bulk"),
	}, bulkHandler(verb, all))
}

func bulkOperations() []operation {
	return []operation{
		bulkRoute("cancel", "cancelAll", "Stop runs", cancelAll),
		bulkRoute("resume", "resumeAll", "Let waiting runs go on now", resumeAll),
		bulkRoute("retry", "retryAll", "Repeat failed runs, as new runs", retryAll),
		bulkRoute("rerun", "rerunAll", "Repeat finished runs, as new runs", rerunAll),
		bulkRoute("requeue", "requeueAll", "Ask for fresh wakeups of runs whose wakeups were given up", requeueAll),
		serve(operation{
			method:  "POST",
			path:    "/v1/bulk/prune",
			scope:   ScopeOperate,
			name:    "pruneRuns",
			group:   "Bulk",
			summary: "Remove runs that ended long enough ago, with their histories",
			text: "The oldest go first. Removed runs are gone. Call again with the same body and after = next until " +
				"there is no next.",
			answers: ok[bulkOutcome]("bulk"),
		}, pruneRuns),
	}
}

func scheduleOperations() []operation {
	return []operation{
		serve(operation{
			method:  "GET",
			path:    "/v1/schedules",
			scope:   ScopeRead,
			name:    "listSchedules",
			group:   "Schedules",
			summary: "List schedules",
			answers: many[core.ScheduleState]("schedule"),
		}, listSchedules),
		serve(operation{
			method:  "GET",
			path:    "/v1/schedules/{schedule}",
			scope:   ScopeRead,
			name:    "getSchedule",
			group:   "Schedules",
			summary: "Get a schedule",
			answers: ok[core.ScheduleState]("schedule"),
		}, getSchedule),
		serve(operation{
			method:  "GET",
			path:    "/v1/schedules/{schedule}/next",
			scope:   ScopeRead,
			name:    "nextFires",
			group:   "Schedules",
			summary: "Show when a schedule fires next",
			text:    "The program that serves needs its definition.",
			answers: many[shown.Fire]("fire"),
		}, nextFires),
		serve(operation{
			method:  "GET",
			path:    "/v1/schedules/{schedule}/occurrences",
			scope:   ScopeRead,
			name:    "listOccurrences",
			group:   "Schedules",
			summary: "List the times at which a schedule fired or was skipped, the newest first",
			answers: many[runlane.Occurrence]("occurrence"),
		}, listOccurrences),
		serve(operation{
			method:  "POST",
			path:    "/v1/schedules/{schedule}/pause",
			scope:   ScopeOperate,
			name:    "pauseSchedule",
			group:   "Schedules",
			summary: "Stop a schedule from firing, in every process",
			answers: ok[core.ScheduleState]("schedule"),
		}, switchHandler((*core.Schedules).Pause)),
		serve(operation{
			method:  "POST",
			path:    "/v1/schedules/{schedule}/resume",
			scope:   ScopeOperate,
			name:    "resumeSchedule",
			group:   "Schedules",
			summary: "Let a paused schedule fire again",
			text:    "What came due meanwhile is skipped.",
			answers: ok[core.ScheduleState]("schedule"),
		}, switchHandler((*core.Schedules).Resume)),
		serve(operation{
			method:  "POST",
			path:    "/v1/schedules/{schedule}/trigger",
			scope:   ScopeOperate,
			name:    "triggerSchedule",
			group:   "Schedules",
			summary: "Make a run of a schedule at once",
			text:    "Each call makes a run. The program that serves needs the definition.",
			answers: []answer{{status: http.StatusCreated, kind: "triggered", of: reflect.TypeFor[shown.Triggered]()}},
		}, triggerSchedule),
	}
}

// fixedOperations are the routes outside /v1.
func fixedOperations() []operation {
	return []operation{
		serve(operation{
			method:  "GET",
			path:    "/events",
			scope:   ScopeRead,
			name:    "streamEvents",
			group:   "Events",
			summary: "Stream the events of a run, or of all runs, as Server-Sent Events",
			text: "Each has the event's type as its name, the object event as its data, and an id that resumes after " +
				"it, as Last-Event-ID. The stream of a run ends after the event that ends the run; a caller that " +
				"connects again after it gets 204. The stream of all runs has what is committed from now on, in " +
				"order, and does not end; it needs a lane in memory or in a file, and is 501 elsewhere. It begins " +
				"with an event begin, whose id resumes at its beginning.",
			answers: []answer{
				{status: http.StatusOK, media: eventStream, text: "the events"},
				{status: http.StatusNoContent, text: "the run has ended and everything was seen"},
			},
			streams: true,
		}, streamEvents),
		serve(operation{
			method:  "GET",
			path:    "/metrics",
			scope:   ScopeRead,
			name:    "metrics",
			group:   "Metrics",
			summary: "Metrics for Prometheus",
			text: "Counts and durations of this process, its requests, and the state of the queues, which is read at " +
				"most every 15 seconds.",
			answers: []answer{{status: http.StatusOK, media: "text/plain", text: "Prometheus' text format"}},
		}, showMetrics),
		serve(operation{
			method:  "GET",
			path:    "/openapi.json",
			name:    "openapi",
			group:   "Description",
			summary: "This description",
			answers: []answer{{status: http.StatusOK, text: "OpenAPI 3.1"}},
		}, func(_ context.Context, c *call, _ *nothing) (*reply, error) { return &reply{raw: c.openAPI}, nil }),
		serve(operation{
			method:  "GET",
			path:    "/docs",
			name:    "docs",
			group:   "Description",
			summary: "This description, for people",
			answers: []answer{{status: http.StatusOK, media: "text/html", text: "a page without scripts"}},
		}, showPage),
	}
}
