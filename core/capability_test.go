package core_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

// limitedStorage promises less than it can.
type limitedStorage struct {
	lane.Storage
	capabilities lane.StorageCapabilities
}

func (s limitedStorage) Capabilities() lane.StorageCapabilities { return s.capabilities }

// missingAbility is what is refused where a storage lacks one ability.
type missingAbility struct {
	take   func(c *lane.StorageCapabilities)
	opens  []core.Options                                               // that open no runtime
	calls  map[string]func(ctx context.Context, rt *core.Runtime) error // that one without handlers refuses
	unused string                                                       // or why nothing stands behind it
}

func missingAbilities() map[string]missingAbility {
	bounded := runlane.Queue{Name: "bounded", Concurrency: 1}
	rated := runlane.Queue{Name: "rated", Rate: runlane.PerSecond(1)}
	task := runlane.NewTask[payload]("any", nil)
	single := runlane.NewTask("single", &runlane.TaskOptions[payload]{SingletonKey: func(payload) string { return "key" }})
	scheduled := func(call runlane.Call) core.Options {
		return core.Options{Schedules: []runlane.Schedule{{ID: "daily", When: runlane.Cron("@daily"), Call: call}}}
	}
	executing := core.Options{Handlers: []runlane.Handler{handle("any", nil)}}
	all := &core.BulkOptions{AllRuns: true}
	type calls = map[string]func(ctx context.Context, rt *core.Runtime) error
	triggering := func(o runlane.TriggerOptions) func(ctx context.Context, rt *core.Runtime) error {
		return func(ctx context.Context, rt *core.Runtime) error {
			return errOf(rt.Trigger(ctx, task.With(payload{}), &o))
		}
	}
	schedules := calls{
		"List":  func(ctx context.Context, rt *core.Runtime) error { return errIn(rt.Schedules().List(ctx)) },
		"Get":   func(ctx context.Context, rt *core.Runtime) error { return errOf(rt.Schedules().Get(ctx, "daily")) },
		"Pause": func(ctx context.Context, rt *core.Runtime) error { return rt.Schedules().Pause(ctx, "daily", nil) },
		"Occurrences": func(ctx context.Context, rt *core.Runtime) error {
			return errIn(rt.Schedules().Occurrences(ctx, "daily", false))
		},
	}
	return map[string]missingAbility{
		"ClaimsScheduleOccurrences": {
			take: func(c *lane.StorageCapabilities) { c.ClaimsScheduleOccurrences = false }, opens: []core.Options{scheduled(task.With(payload{}))},
		},
		"KeepsSchedules": {
			take: func(c *lane.StorageCapabilities) { c.KeepsSchedules = false }, opens: []core.Options{scheduled(task.With(payload{}))}, calls: schedules,
		},
		"SuspendsRuns": {take: func(c *lane.StorageCapabilities) { c.SuspendsRuns = false }, calls: calls{
			"Steps": func(ctx context.Context, rt *core.Runtime) error { return errOf(rt.Runs().Steps(ctx, "run_1")) },
			"Signal": func(ctx context.Context, rt *core.Runtime) error {
				return rt.Signal(ctx, "run_1", runlane.NewSignal[int]("approved").With(1), nil)
			},
			"Tree":      func(ctx context.Context, rt *core.Runtime) error { return errOf(rt.Runs().Tree(ctx, "run_1", nil)) },
			"Snapshots": func(ctx context.Context, rt *core.Runtime) error { return errOf(rt.Runs().Snapshots(ctx, "run_1")) },
		}},
		"CommitsWrites": {
			take:  func(c *lane.StorageCapabilities) { c.CommitsWrites = false },
			calls: calls{"Trigger": triggering(runlane.TriggerOptions{Writes: writes{}})},
		},
		"EnforcesSingleton": {
			take:  func(c *lane.StorageCapabilities) { c.EnforcesSingleton = false },
			opens: []core.Options{scheduled(single.With(payload{}))},
			calls: calls{
				"Trigger": triggering(runlane.TriggerOptions{SingletonKey: "key"}),
				"of a task": func(ctx context.Context, rt *core.Runtime) error {
					return errOf(rt.Trigger(ctx, single.With(payload{}), nil))
				},
				"FindActive": func(ctx context.Context, rt *core.Runtime) error { return errOf(rt.Runs().FindActive(ctx, "t", "k")) },
			},
		},
		"EnforcesIdempotency": {
			take: func(c *lane.StorageCapabilities) { c.EnforcesIdempotency = false },
			calls: calls{
				"Trigger":     triggering(runlane.TriggerOptions{IdempotencyKey: "key"}),
				"FindCurrent": func(ctx context.Context, rt *core.Runtime) error { return errOf(rt.Runs().FindCurrent(ctx, "t", "k")) },
				"Reset":       func(ctx context.Context, rt *core.Runtime) error { return rt.IdempotencyKeys().Reset(ctx, "t", "k") },
			},
		},
		"EnforcesQueueConcurrency": {
			take:  func(c *lane.StorageCapabilities) { c.EnforcesQueueConcurrency = false },
			opens: []core.Options{{Queues: []runlane.Queue{bounded}}},
			calls: calls{"Trigger": triggering(runlane.TriggerOptions{Queue: bounded})},
		},
		"EnforcesQueueRate": {
			take:  func(c *lane.StorageCapabilities) { c.EnforcesQueueRate = false },
			opens: []core.Options{{Queues: []runlane.Queue{rated}}},
			calls: calls{"Trigger": triggering(runlane.TriggerOptions{Queue: rated})},
		},
		"LeasesRuns":     {take: func(c *lane.StorageCapabilities) { c.LeasesRuns = false }, opens: []core.Options{executing}},
		"PersistsOutbox": {take: func(c *lane.StorageCapabilities) { c.PersistsOutbox = false }, opens: []core.Options{executing}},
		"PrunesRuns": {
			take:  func(c *lane.StorageCapabilities) { c.PrunesRuns = false },
			opens: []core.Options{{Keep: runlane.KeepAll(time.Hour)}},
			calls: calls{"Prune": func(ctx context.Context, rt *core.Runtime) error {
				return errOf(rt.Runs().Prune(ctx, &core.PruneOptions{OlderThan: time.Hour}))
			}},
		},
		"ReadsRunHistory": {
			take: func(c *lane.StorageCapabilities) { c.ReadsRunHistory = false },
			calls: calls{
				"List":      func(ctx context.Context, rt *core.Runtime) error { return errOf(rt.Runs().List(ctx, nil)) },
				"Attempts":  func(ctx context.Context, rt *core.Runtime) error { return errOf(rt.Runs().Attempts(ctx, "run_1")) },
				"Events":    func(ctx context.Context, rt *core.Runtime) error { return errIn(rt.Runs().Events(ctx, "run_1", nil)) },
				"CancelAll": func(ctx context.Context, rt *core.Runtime) error { return errOf(rt.Runs().CancelAll(ctx, all)) },
				"RerunAll":  func(ctx context.Context, rt *core.Runtime) error { return errOf(rt.Runs().RerunAll(ctx, all)) },
				"Stats":     func(ctx context.Context, rt *core.Runtime) error { return errOf(rt.Queues().Stats(ctx, "default")) },
				"Prune, dry": func(ctx context.Context, rt *core.Runtime) error {
					return errOf(rt.Runs().Prune(ctx, &core.PruneOptions{OlderThan: time.Hour, DryRun: true}))
				},
			},
		},
		"KeepsDeadLetters": {
			take: func(c *lane.StorageCapabilities) { c.KeepsDeadLetters = false },
			calls: calls{
				"List":       func(ctx context.Context, rt *core.Runtime) error { return errOf(rt.DeadLetters().List(ctx, nil)) },
				"Requeue":    func(ctx context.Context, rt *core.Runtime) error { return rt.DeadLetters().Requeue(ctx, "run_1", nil) },
				"RequeueAll": func(ctx context.Context, rt *core.Runtime) error { return errOf(rt.DeadLetters().RequeueAll(ctx, all)) },
			},
		},
		"KeepsProgress": {
			take:  func(c *lane.StorageCapabilities) { c.KeepsProgress = false },
			calls: calls{"Progress": func(ctx context.Context, rt *core.Runtime) error { return errOf(rt.Runs().Progress(ctx, "run_1")) }},
		},
		"FeedsCommits": {
			take:  func(c *lane.StorageCapabilities) { c.FeedsCommits = false },
			calls: calls{"FeedStart": func(ctx context.Context, rt *core.Runtime) error { return errOf(rt.Runs().FeedStart(ctx)) }},
		},
		"KeepsTasks":        {unused: "the tick stores none, and only the runtime's own tasks are listed"},
		"FindsLostWakeups":  {unused: "the tick leaves the stage out, and Explain says that no process asks again"},
		"DurableState":      {unused: "a promise to people, and a condition of lanes that promise the same"},
		"ProcessLocalState": {unused: "where it is missing, other processes take part"},
	}
}

// What a missing ability could not keep is refused: when the runtime opens, or by the call, and then no request was made.
func TestCapabilities_EachMissingOneIsRefusedWhereItIsNeeded(t *testing.T) {
	t.Parallel()
	rules := missingAbilities()
	for _, field := range reflect.VisibleFields(reflect.TypeFor[lane.StorageCapabilities]()) {
		rule, ok := rules[field.Name]
		if !ok || (rule.unused == "") == (len(rule.opens)+len(rule.calls) == 0) {
			t.Errorf("%s: say what is refused without it, or why nothing is", field.Name)
		}
		if rule.take == nil {
			continue
		}
		t.Run(field.Name, func(t *testing.T) {
			t.Parallel()
			plan := lanetest.NewFaultPlan(t, 1, lanetest.FaultRule{Kind: lanetest.FaultBefore, Rate: 1})
			storage := limitedStorage{Storage: lanetest.FaultyStorage(memlane.NewStorage(nil), plan)}
			storage.capabilities = storage.Storage.Capabilities()
			rule.take(&storage.capabilities)
			l := newLane(t, storage, memlane.NewTransport(nil))
			for i := range rule.opens {
				rule.opens[i].Logger = slog.New(slog.DiscardHandler)
				_, err := core.Open(t.Context(), l, &rule.opens[i])
				if runlane.CodeOf(err) != runlane.ErrConfigurationInvalid || !errors.Is(err, runlane.ErrCapabilityUnsupported) {
					t.Errorf("opening returned %v", err)
				}
			}
			rt := openQuiet(t, l, core.Options{})
			for name, call := range rule.calls {
				e, ok := errors.AsType[*runlane.Error](call(t.Context(), rt))
				if !ok || e.Code != runlane.ErrCapabilityUnsupported || e.Hint == "" {
					t.Errorf("%s returned %v", name, e)
				}
			}
			if n := plan.Struck(lanetest.FaultBefore); n != 0 {
				t.Errorf("%d requests were made", n)
			}
		})
	}
	if len(rules) != reflect.TypeFor[lane.StorageCapabilities]().NumField() {
		t.Error("there is a rule for an ability that does not exist")
	}
}

func errOf[T any](_ T, err error) error { return err }

// errIn is what a list begins with.
func errIn[T any](list iter.Seq2[T, error]) (err error) {
	for _, err = range list {
		break
	}
	return err
}

// writes are an application's own.
type writes struct{}

func (writes) Kind() string { return "writes of a test" }
