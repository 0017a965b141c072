package dynamostore

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
)

// addPruningCases adds the rows about pruning to TestBudget.
func addPruningCases(cases map[string]budgetCase) {
	pruned := func(w *world) *world {
		if progress := w.prune(w.pruning()); progress.Pruned != 1 {
			w.Fatalf("%+v", progress)
		}
		return w
	}
	finished := func(created *runlane.RunCreated) func(w *world) *world {
		return func(w *world) *world { return w.finished(created, nil) }
	}
	cases["pruning a simple run"] = budgetCase{finished(nil), pruned, nil}
	cases["pruning a run with ten steps"] = budgetCase{func(w *world) *world { return w.finished(nil, nil).keepTen() }, pruned, nil}
	cases["pruning a run with both owners"] = budgetCase{finished(owned("a", []byte(`{}`))), pruned, nil}
	cases["pruning a run with a payload of 3 KB"] = budgetCase{finished(&runlane.RunCreated{Payload: bulky(3)}), pruned, nil}
}

// docs/internals/layout.md, Budget: what pruning costs beyond a simple run, by the meter and by the emulator, which is right about plain writes.
func TestPrune_Budget(t *testing.T) {
	t.Parallel()
	run := budget(t)["pruning a simple run"].WriteUnits
	simple := func() *runlane.RunCreated { return &runlane.RunCreated{Payload: []byte(`{}`)} }
	idempotent := simple()
	idempotent.IdempotencyKey, idempotent.Retention = "a", runlane.KeyRetention{TTL: time.Hour}
	for name, row := range map[string]struct {
		created *runlane.RunCreated
		output  []byte
		keep    bool
		units   float64
	}{
		"a simple run":                            {simple(), nil, false, run},
		"with an idempotency owner":               {idempotent, nil, false, run + 1},
		"with both owners":                        {owned("a", []byte(`{}`)), nil, false, run + 2},
		"with a payload of 3 KB in an item":       {&runlane.RunCreated{Payload: bulky(3)}, nil, false, run + 1 + 3},
		"with payload and output in items":        {&runlane.RunCreated{Payload: bulky(3)}, bulky(2), false, run + 1 + 3 + 2},
		"passed over, because it retains its key": {owned("a", bulky(3)), nil, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.finished(row.created, row.output)
			counting := &prunedUnits{API: w.store.db.Client}
			w.store.db.Client = counting
			c := w.pruning()
			c.ReleaseOwners = !row.keep
			progress := w.prune(c)
			if got := w.meter.Stats(); got.WriteUnits != row.units {
				t.Errorf("%v write units, want %v: %v", got.WriteUnits, row.units, got.Operations)
			}
			if counting.units() != row.units {
				t.Errorf("the emulator says %v units, want %v", counting.units(), row.units)
			}
			if row.keep != (progress.Skipped == 1) || row.keep != (progress.Pruned == 0) || progress.Next != "" {
				t.Errorf("%+v", progress)
			}
			if got := w.meter.Stats().ReadUnits; row.keep && got > 12+1+2 { // the shards of the index, the run, its owners
				t.Errorf("passing over a run took %v read units", got)
			}
		})
	}
}

// prunedUnits adds up what the emulator reports for plain writes.
type prunedUnits struct {
	API
	halves atomic.Int64
}

func (c *prunedUnits) units() float64 { return float64(c.halves.Load()) / 2 }

func (c *prunedUnits) add(capacity *types.ConsumedCapacity) {
	c.halves.Add(int64(2 * aws.ToFloat64(capacity.CapacityUnits)))
}

func (c *prunedUnits) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityIndexes
	out, err := c.API.DeleteItem(ctx, in, o...)
	if err == nil {
		c.add(out.ConsumedCapacity)
	}
	return out, err
}

func (c *prunedUnits) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityIndexes
	out, err := c.API.UpdateItem(ctx, in, o...)
	if err == nil {
		c.add(out.ConsumedCapacity)
	}
	return out, err
}
