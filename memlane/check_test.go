package memlane

import (
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
)

// The same for slots: a reserved run beside one that waits.
func TestCheck_FindsEachBrokenSlot(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(env *environment, reserved, waiting *entry){
		"a slot of a run that waits":     func(_ *environment, reserved, waiting *entry) { hold(reserved.slot, waiting) },
		"a slot of a run that is gone":   func(env *environment, reserved, _ *entry) { delete(reserved.shard.runs, reserved.id) },
		"two slots of one run":           func(_ *environment, reserved, _ *entry) { hold(reserved.slot, reserved) },
		"a slot that its run forgot":     func(_ *environment, reserved, _ *entry) { reserved.slot = nil },
		"a slot that its run made up":    func(_ *environment, reserved, waiting *entry) { waiting.slot = reserved.slot },
		"a slot of another partition":    func(env *environment, reserved, _ *entry) { hold(env.partition(partitionKey{"q", "x"}), reserved) },
		"a partition that no run uses":   func(env *environment, _, _ *entry) { env.partition(partitionKey{"q", "x"}) },
		"it is unknown that a run waits": func(_ *environment, _, waiting *entry) { waiting.wants.move(waiting, place{}) },
		"a run waits where it is not":    func(_ *environment, _, waiting *entry) { waiting.wants.set.remove(item{waiting.wants.at, waiting}) },
		"a run waits for the wrong time": func(_ *environment, _, waiting *entry) { waiting.wants.move(waiting, place{waiting.wants.set, 7}) },
		"its partition is gone": func(env *environment, _, waiting *entry) {
			delete(env.partitions, waiting.partitionKey())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, at := NewStorage(nil), time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
			for _, id := range []runlane.RunID{"run_reserved", "run_waiting"} {
				event := runlane.Event{RunID: id, OccurredAt: at, Body: &runlane.RunCreated{TaskID: "task", Queue: "q"}}
				run := &runlane.Run{ID: id, TaskID: "task", Queue: "q", Status: runlane.StatusQueued, EventSequence: 1, CreatedAt: at, UpdatedAt: at}
				if id == "run_reserved" {
					run.DispatchedAt, run.DispatchExpiresAt = at, at.Add(time.Minute)
				}
				_, err := s.AppendRunEvents(t.Context(), &lane.AppendCommand{Transition: lane.Transition{
					Events: []runlane.Event{event}, Projected: run, Queue: runlane.Queue{Name: "q", Concurrency: 1},
				}})
				if err != nil {
					t.Fatal(err)
				}
			}
			slots := func() bool {
				page, err := s.Check(t.Context(), &lane.PageQuery{})
				if err != nil {
					t.Fatal(err)
				}
				return slices.ContainsFunc(page.Items, func(v lane.Violation) bool { return v.Rule == embedded.RuleSlots })
			}
			if slots() {
				t.Fatal("before anything was broken")
			}
			env := s.find("")
			breaks(env, env.run("run_reserved"), env.run("run_waiting"))
			if !slots() {
				t.Error("not found")
			}
		})
	}
}

func hold(p *partition, e *entry) { p.holders = append(p.holders, e) }

// A checker that finds nothing proves nothing: each invariant is broken once.
func TestCheck_FindsEachBrokenInvariant(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		breaks func(env *environment, e *entry)
		rule   string
	}{
		"due nowhere":              {func(_ *environment, e *entry) { e.due.move(e, place{}) }, embedded.RuleDue},
		"due too late":             {func(_ *environment, e *entry) { e.due.move(e, place{e.due.set, e.due.at + 1}) }, embedded.RuleDue},
		"due twice":                {func(_ *environment, e *entry) { e.shard.indexes.group(e).of(kind{1, 1}).insert(item{e.due.at, e}) }, ruleIndexes},
		"lost from its index":      {func(_ *environment, e *entry) { e.due.set.remove(item{e.due.at, e}) }, embedded.RuleDue},
		"lost from its schedule":   {func(_ *environment, e *entry) { clear(e.shard.indexes.schedules) }, embedded.RuleDue},
		"lost from its source":     {func(_ *environment, e *entry) { clear(e.shard.indexes.sources) }, embedded.RuleDue},
		"delivery lost":            {func(_ *environment, e *entry) { e.delivery.move(e, place{}) }, embedded.RuleDelivery},
		"finished, still due":      {func(_ *environment, e *entry) { e.state.Status = runlane.StatusSucceeded }, embedded.RuleDue},
		"running, still delivered": {func(_ *environment, e *entry) { e.state.Status = runlane.StatusRunning }, embedded.RuleDelivery},
		"idempotency key unowned":  {func(env *environment, _ *entry) { clear(env.idempotency) }, embedded.RuleOwners},
		"singleton key unowned":    {func(env *environment, _ *entry) { clear(env.singletons) }, embedded.RuleOwners},
		"a key of another run": {func(env *environment, e *entry) {
			env.singletons[scopedKey{"task", "another"}] = e
		}, embedded.RuleOwners},
		"an idempotency key of another run": {func(env *environment, e *entry) {
			env.idempotency[scopedKey{"task", "another"}] = e
		}, embedded.RuleOwners},
		"a singleton of a finished run": {func(_ *environment, e *entry) { e.state.Status = runlane.StatusFailed }, embedded.RuleOwners},
		"two deliveries looked after":   {func(env *environment, e *entry) { e.shard.indexes.dead.insert(item{e.delivery.at, e}) }, ruleIndexes},
		"a run that is gone":            {func(env *environment, e *entry) { delete(e.shard.runs, e.id) }, ruleIndexes},
		"an event too few":              {func(_ *environment, e *entry) { e.events = e.events[:1] }, embedded.RuleHistory},
		"not created first":             {func(_ *environment, e *entry) { slices.Reverse(e.events) }, embedded.RuleHistory},
		"an index miscounted":           {func(_ *environment, e *entry) { e.due.set.size++ }, ruleIndexes},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, at := NewStorage(nil), time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
			source := runlane.Source{Type: runlane.SourceSchedule, ScheduleID: "nightly", RunID: "before", FireTime: at}
			created := &runlane.RunCreated{TaskID: "task", Queue: "q", IdempotencyKey: "i", SingletonKey: "s", Source: source}
			delivery := &runlane.RunDeliveryRequested{Delivery: runlane.Delivery{RunID: "run_1", Queue: "q", AvailableAt: at, RequestedAt: at}}
			_, err := s.AppendRunEvents(t.Context(), &lane.AppendCommand{Transition: lane.Transition{
				Events: []runlane.Event{{RunID: "run_1", OccurredAt: at, Body: created}, {RunID: "run_1", OccurredAt: at, Body: delivery}},
				Projected: &runlane.Run{
					ID: "run_1", TaskID: "task", Queue: "q", Status: runlane.StatusQueued, EventSequence: 2, IdempotencyKey: "i",
					Source: source, SingletonKey: "s", CreatedAt: at, UpdatedAt: at, RunAt: at,
				},
			}})
			if err != nil {
				t.Fatal(err)
			}
			check := func() []string {
				page, err := s.Check(t.Context(), &lane.PageQuery{})
				if err != nil {
					t.Fatal(err)
				}
				var rules []string
				for _, v := range page.Items {
					rules = append(rules, v.Rule)
				}
				return rules
			}
			if rules := check(); len(rules) != 0 {
				t.Fatalf("before anything was broken: %q", rules)
			}
			env := s.find("")
			c.breaks(env, env.run("run_1"))
			if rules := check(); !slices.Contains(rules, c.rule) {
				t.Errorf("found %q, want %q", rules, c.rule)
			}
		})
	}
}

// The fold is no business of the storage's own check: the suite compares each run with its history.
func TestCheckFold_FindsWhatTheHistoryDoesNotSay(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(e *entry){
		"another status":      func(e *entry) { e.state.Status = runlane.StatusScheduled },
		"an attempt too many": func(e *entry) { e.state.counters.Attempts++ },
		"another time":        func(e *entry) { e.state.UpdatedAt++ },
		"an event is gone":    func(e *entry) { e.events = e.events[:1] },
		"a sequence ahead":    func(e *entry) { e.state.Sequence++ },
		"another queue at its creation": func(e *entry) {
			other := *e.created
			other.Queue = "another"
			e.events[0].body = &other
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := NewStorage(nil)
			c := lanetest.NewFactory("test").Creation(t, time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC), lanetest.RunOptions{})
			if _, err := s.AppendRunEvents(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			check := func() []lane.Violation {
				found, err := lanetest.CheckFold(t.Context(), s, c.Key())
				if err != nil {
					t.Fatal(err)
				}
				return found
			}
			if found := check(); len(found) != 0 {
				t.Fatalf("before anything was broken: %+v", found)
			}
			breaks(s.find("test").run(c.Key().RunID))
			if found := check(); len(found) != 1 || found[0].Rule != lanetest.RuleFold || found[0].RunID != c.Projected.ID {
				t.Errorf("found %+v", found)
			}
		})
	}
}
