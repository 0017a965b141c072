package memlane

import (
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// A checker that finds nothing proves nothing: each invariant is broken once.
func TestCheck_FindsEachBrokenInvariant(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		breaks func(env *environment, e *entry)
		rule   string
	}{
		"due nowhere":              {func(_ *environment, e *entry) { e.due.move(e, place{}) }, ruleDue},
		"due too late":             {func(_ *environment, e *entry) { e.due.move(e, place{e.due.set, e.due.at + 1}) }, ruleDue},
		"due twice":                {func(env *environment, e *entry) { env.indexes.leased.insert(item{e.due.at, e}) }, ruleIndexes},
		"lost from its index":      {func(_ *environment, e *entry) { e.due.set.remove(item{e.due.at, e}) }, ruleDue},
		"delivery lost":            {func(_ *environment, e *entry) { e.delivery.move(e, place{}) }, ruleDelivery},
		"finished, still due":      {func(_ *environment, e *entry) { e.state.status = runlane.StatusSucceeded }, ruleDue},
		"running, still delivered": {func(_ *environment, e *entry) { e.state.status = runlane.StatusRunning }, ruleDelivery},
		"idempotency key unowned":  {func(env *environment, _ *entry) { clear(env.idempotency) }, ruleOwners},
		"singleton key unowned":    {func(env *environment, _ *entry) { clear(env.singletons) }, ruleOwners},
		"a key of somebody else": {func(env *environment, e *entry) {
			env.singletons[scopedKey{"task", "another"}] = e
		}, ruleOwners},
		"an event too few":    {func(_ *environment, e *entry) { e.events = e.events[:1] }, ruleHistory},
		"not created first":   {func(_ *environment, e *entry) { slices.Reverse(e.events) }, ruleHistory},
		"an index miscounted": {func(env *environment, _ *entry) { env.indexes.queued.size++ }, ruleIndexes},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, at := NewStorage(nil), time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
			created := &runlane.RunCreated{TaskID: "task", Queue: "q", IdempotencyKey: "i", SingletonKey: "s"}
			delivery := &runlane.RunDeliveryRequested{Delivery: runlane.Delivery{RunID: "run_1", Queue: "q", AvailableAt: at, RequestedAt: at}}
			_, err := s.AppendRunEvents(t.Context(), &lane.AppendCommand{Transition: lane.Transition{
				Events: []runlane.Event{{RunID: "run_1", OccurredAt: at, Body: created}, {RunID: "run_1", OccurredAt: at, Body: delivery}},
				Projected: &runlane.Run{
					ID: "run_1", TaskID: "task", Queue: "q", Status: runlane.StatusQueued, EventSequence: 2, IdempotencyKey: "i",
					SingletonKey: "s", CreatedAt: at, UpdatedAt: at, RunAt: at,
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
