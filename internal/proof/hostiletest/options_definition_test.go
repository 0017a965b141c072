package hostiletest_test

import (
	"math"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

type taskOptions = runlane.TaskOptions[payload]

// defining is a refusal of a task's definition: by opening a runtime that executes it, and by triggering it.
func defining(what string, o taskOptions) refusal {
	return invalid(what, func(w *world) []error {
		task := runlane.NewTask("defined", &o)
		opened := w.open(core.Options{Handlers: []runlane.Handler{{Task: task.Definition(), Execute: w.handler().Execute}}})
		return append(opened, task.Definition().Err(), errorOf(w.rt.Trigger(w.ctx(), task.With(payload{}), nil)))
	})
}

// keyed is a refusal of what a key function returns.
func keyed(option func(o *taskOptions, key func(payload) string)) refusal {
	return failed("no printable text, or too much", func(w *world) []error {
		var errs []error
		for _, key := range []string{unprintable, tooLong, notUTF8} {
			options := taskOptions{}
			option(&options, func(payload) string { return key })
			task := runlane.NewTask("keyed", &options)
			errs = append(errs, errorOf(w.rt.Trigger(w.ctx(), task.With(payload{}), nil)))
			errs = append(errs, errorOf(w.rt.RunNow(w.ctx(), task.With(payload{}), nil)))
		}
		return errs
	})
}

// queueing is a refusal of a queue, wherever it is named.
func queueing(what string, q runlane.Queue) refusal {
	return invalid(what, func(w *world) []error {
		task := runlane.NewTask("queued", &runlane.TaskOptions[payload]{Queue: q})
		errs := append(w.open(core.Options{Queues: []runlane.Queue{q}}), q.Validate(), errorOf(w.rt.Trigger(w.ctx(), task.With(payload{}), nil)))
		return append(errs, errorOf(w.rt.Trigger(w.ctx(), w.task.With(payload{}), &runlane.TriggerOptions{Queue: q})))
	})
}

func retrying(what string, r runlane.Retry) refusal {
	return defining(what, taskOptions{Retry: r})
}

// scheduling is a refusal of a schedule that is otherwise right.
func scheduling(what string, change func(s *runlane.Schedule)) refusal {
	return opening(what, func(w *world, o *core.Options) {
		s := w.schedule()
		change(&s)
		o.Schedules = []runlane.Schedule{s}
	})
}

func missing(what string, m runlane.Misfire) refusal {
	return scheduling(what, func(s *runlane.Schedule) { s.Misfire = m })
}

func definitionRules() map[string]rule {
	backoff := func(b runlane.Backoff) runlane.Retry { return runlane.Retry{MaxAttempts: 3, Backoff: b} }
	return map[string]rule{
		"runlane.TaskOptions.ConcurrencyKey": refuses(keyed(func(o *taskOptions, key func(payload) string) { o.ConcurrencyKey = key })),
		"runlane.TaskOptions.IdempotencyKey": refuses(keyed(func(o *taskOptions, key func(payload) string) { o.IdempotencyKey = key })),
		"runlane.TaskOptions.SingletonKey":   refuses(keyed(func(o *taskOptions, key func(payload) string) { o.SingletonKey = key })),
		"runlane.TaskOptions.ErrorMessages":  legal("both are meant"),
		"runlane.TaskOptions.Keep": refuses(
			defining("less than an hour", taskOptions{Keep: runlane.Keep{Failed: time.Minute}}),
			defining("negative, not KeepForever", taskOptions{Keep: runlane.KeepAll(-time.Hour)}),
		),
		"runlane.TaskOptions.KeepLogs":       legal("both are meant"),
		"runlane.TaskOptions.IdempotencyTTL": refuses(defining("negative, not WhileActive", taskOptions{IdempotencyTTL: -5 * time.Second})),
		"runlane.TaskOptions.Queue":          refuses(defining("without a name", taskOptions{Queue: runlane.Queue{Concurrency: 1}})),
		"runlane.TaskOptions.Retry":          refuses(retrying("see runlane.Retry", runlane.Retry{MaxAttempts: -1})),
		"runlane.TaskOptions.Version":        refuses(defining("negative", taskOptions{Version: -1})),
		"runlane.TaskOptions.Timeout":        refuses(defining("negative", taskOptions{Timeout: -1})),

		"runlane.Queue.Name": refuses(
			queueing("empty", runlane.Queue{Concurrency: 1}), queueing("a colon", runlane.Queue{Name: colon}),
		),
		"runlane.Queue.Concurrency": refuses(
			queueing("negative", runlane.Queue{Name: "bound", Concurrency: -1}),
			queueing("above the largest", runlane.Queue{Name: "bound", Concurrency: runlane.MaxQueueConcurrency + 1}),
		),
		"runlane.Queue.DispatchTimeout": refuses(
			queueing("negative", runlane.Queue{Name: "bound", Concurrency: 1, DispatchTimeout: -1}),
			queueing("without a limit", runlane.Queue{Name: "bound", DispatchTimeout: time.Minute}),
		),
		"runlane.Queue.Rate": refuses(
			queueing("negative", runlane.Queue{Name: "bound", Rate: runlane.PerSecond(-1)}),
			queueing("without a period", runlane.Queue{Name: "bound", Rate: runlane.Rate{Count: 1}}),
			queueing("above the largest", runlane.Queue{Name: "bound", Rate: runlane.PerSecond(runlane.MaxQueueRate + 1)}),
			queueing("too long a period", runlane.Queue{Name: "bound", Rate: runlane.Rate{Count: 1, Period: math.MaxInt64}}),
			queueing("too many", runlane.Queue{Name: "bound", Rate: runlane.PerHour(math.MaxInt)}),
		),
		"runlane.Queue.Burst": refuses(
			queueing("negative", runlane.Queue{Name: "bound", Rate: runlane.PerSecond(1), Burst: -1}),
			queueing("above the largest", runlane.Queue{Name: "bound", Rate: runlane.PerSecond(1), Burst: runlane.MaxQueueBurst + 1}),
			queueing("without a rate", runlane.Queue{Name: "bound", Burst: 1}),
		),

		"runlane.Retry.MaxAttempts": refuses(retrying("negative", runlane.Retry{MaxAttempts: -1})),
		"runlane.Retry.Backoff": refuses(
			retrying("without a retry", runlane.Retry{MaxAttempts: 1, Backoff: runlane.Fixed(time.Second)}),
			retrying("fixed and negative", backoff(runlane.Fixed(-1))), retrying("no function", backoff(runlane.BackoffFunc(nil))),
		),
		"runlane.Retry.NoJitter": legal("both are meant"),

		"runlane.Exponential.Base": refuses(retrying("negative", backoff(runlane.Exponential{Base: -1})).as("exponential")),
		"runlane.Exponential.Max":  refuses(retrying("negative", backoff(runlane.Exponential{Max: -1})).as("exponential")),

		"runlane.Schedule.ID": refuses(
			scheduling("empty", func(s *runlane.Schedule) { s.ID = "" }), scheduling("a colon", func(s *runlane.Schedule) { s.ID = colon }),
		),
		"runlane.Schedule.When": refuses(
			scheduling("none", func(s *runlane.Schedule) { s.When = runlane.When{} }),
			scheduling("an interval below a second", func(s *runlane.Schedule) { s.When = runlane.Every(time.Millisecond) }),
			scheduling("an expression that never fires", func(s *runlane.Schedule) { s.When = runlane.Cron("0 0 30 2 *") }),
			scheduling("an unknown zone", func(s *runlane.Schedule) { s.When = runlane.Cron("@daily").In("Mars/Olympus") }),
			scheduling("an instant beyond every storage", func(s *runlane.Schedule) { s.When = runlane.Once(time.Now().Add(270 * aYear)) }),
		),
		"runlane.Schedule.Call": refuses(
			scheduling("empty", func(s *runlane.Schedule) { s.Call = runlane.Call{} }),
			scheduling("a bad definition", func(s *runlane.Schedule) { s.Call = runlane.NewTask[payload](colon, nil).With(payload{}) }),
			scheduling("a queue without a binding", func(s *runlane.Schedule) {
				task := runlane.NewTask("elsewhere", &runlane.TaskOptions[payload]{Queue: runlane.Queue{Name: "elsewhere"}})
				s.Call = task.With(payload{})
			}),
		),
		"runlane.Schedule.Misfire": refuses(missing("see runlane.Misfire", runlane.Misfire{Policy: "odd"})),
		"runlane.Schedule.Overlap": refuses(scheduling("unknown", func(s *runlane.Schedule) { s.Overlap = "odd" })),

		"runlane.Misfire.Policy": refuses(missing("unknown", runlane.Misfire{Policy: "odd"})),
		"runlane.Misfire.Tolerance": refuses(
			missing("negative", runlane.Misfire{Policy: runlane.MisfireSkip, Tolerance: -1}),
			missing("of another policy", runlane.Misfire{Tolerance: time.Minute}),
		),
		"runlane.Misfire.Limit": refuses(
			missing("negative", runlane.Misfire{Policy: runlane.MisfireCatchUp, Limit: -1}),
			missing("too many", runlane.Misfire{Policy: runlane.MisfireCatchUp, Limit: runlane.MaxPageLimit + 1}),
			missing("of another policy", runlane.Misfire{Limit: 1}),
		),
		"runlane.Misfire.Window": refuses(
			missing("negative", runlane.Misfire{Policy: runlane.MisfireCatchUp, Window: -1}),
			missing("of another policy", runlane.Misfire{Policy: runlane.MisfireSkip, Window: time.Minute}),
		),
	}
}
