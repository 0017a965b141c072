package dynamostore

import (
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/lane"
)

// consumption adds up what the emulator says of plain writes and of reads.
type consumption struct {
	seam

	mutex                 sync.Mutex
	readUnits, writeUnits float64
}

func consuming(api API) *consumption {
	c := &consumption{}
	c.seam = seam{api, c.counted}
	return c
}

func (c *consumption) reads() float64 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.readUnits
}

func (c *consumption) counted(in any, send func() (any, error)) (any, error) {
	const asked = types.ReturnConsumedCapacityIndexes
	consistent := false
	switch in := in.(type) {
	case *dynamodb.BatchGetItemInput:
		in.ReturnConsumedCapacity = asked
	case *dynamodb.DeleteItemInput:
		in.ReturnConsumedCapacity = asked
	case *dynamodb.GetItemInput:
		in.ReturnConsumedCapacity = asked
	case *dynamodb.QueryInput:
		in.ReturnConsumedCapacity, consistent = asked, aws.ToBool(in.ConsistentRead)
	case *dynamodb.UpdateItemInput:
		in.ReturnConsumedCapacity = asked
	}
	out, err := send()
	if err != nil {
		return nil, err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch out := out.(type) {
	case *dynamodb.BatchGetItemOutput:
		for _, of := range out.ConsumedCapacity {
			c.readUnits += *of.CapacityUnits
		}
	case *dynamodb.DeleteItemOutput:
		c.writeUnits += *out.ConsumedCapacity.CapacityUnits
	case *dynamodb.GetItemOutput:
		c.readUnits += *out.ConsumedCapacity.CapacityUnits
	case *dynamodb.QueryOutput:
		if out.ScannedCount == 0 { // DynamoDB bills the smallest read for finding nothing, the emulator forgets it
			c.readUnits += ddb.ReadUnits(0, consistent)
		} else {
			c.readUnits += *out.ConsumedCapacity.CapacityUnits
		}
	case *dynamodb.UpdateItemOutput:
		c.writeUnits += *out.ConsumedCapacity.CapacityUnits
	}
	return out, nil
}

// The meter's arithmetic is checked where DynamoDB Local is right: plain writes with their index changes, and reads. Of transactions
// it doubles index entries too, which DynamoDB puts at the ordinary price. Every other kind of request that the store sends is among
// these steps.
func TestMeter_AgreesWithTheEmulatorOnPlainRequests(t *testing.T) {
	t.Parallel()
	large := func() *runlane.RunCreated { return &runlane.RunCreated{Payload: bulky(9)} }
	parked := func(w *world) { w.create(eager, 0, nil).ack().pass(2 * time.Minute).inspect() }
	for name, row := range map[string]struct{ before, after func(w *world) }{
		"acknowledge":              {func(w *world) { w.create(eager, 0, nil) }, func(w *world) { w.ack() }},
		"publishing failed":        {func(w *world) { w.create(eager, 0, nil) }, func(w *world) { w.fail(time.Second) }},
		"an inspection that moves": {func(w *world) { w.create(eager, 0, nil).ack().pass(2 * time.Minute) }, func(w *world) { w.inspect() }},
		"an empty inspection":      {parked, func(w *world) { w.inspect() }},
		"flush":                    {func(w *world) { w.create(deferred, 0, nil) }, func(w *world) { w.flush() }},
		"a schedule's record":      {func(*world) {}, func(w *world) { w.registered() }},
		"an occurrence":            {func(w *world) { w.registered() }, func(w *world) { w.occurrence(w.now) }},
		"pruning":                  {func(w *world) { w.finished(owned("a", bulky(3)), bulky(2)) }, func(w *world) { w.prune(w.pruning()) }},
		"one run":                  {func(w *world) { w.create(eager, 0, large()) }, func(w *world) { w.get(1) }},
		"many runs":                {func(w *world) { w.create(eager, 0, large()) }, func(w *world) { w.get(50) }},
		"a list": {func(w *world) { w.finished(large(), nil).create(eager, 0, nil) }, func(w *world) {
			if ids, _ := w.list(&lane.RunQuery{}); len(ids) != 2 {
				w.Errorf("%d runs", len(ids))
			}
		}},
		"a walk over waiting partitions": {func(w *world) { w.must(w.bounded(1).enter(0)) }, func(w *world) { w.dispatch() }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			row.before(w)
			counting := consuming(w.store.db.Client)
			w.store.db.Client = counting
			before := w.store.Stats()
			row.after(w)
			used := w.store.Stats().Usage.Minus(before.Usage)
			if used.Requests == 0 || counting.writeUnits != used.WriteUnits || counting.readUnits != used.ReadUnits {
				t.Errorf("the emulator counted %v write and %v read units, the meter %+v", counting.writeUnits, counting.readUnits, used)
			}
		})
	}
}

// get reads the run, once or as often in one call.
func (w *world) get(times int) {
	w.Helper()
	if times == 1 {
		if _, err := w.store.GetRun(w.step(), w.key()); err != nil {
			w.Fatal(err)
		}
		return
	}
	q := &lane.RunsQuery{Environment: "test"}
	for range times {
		q.IDs = append(q.IDs, w.run.ID)
	}
	if runs, err := w.store.GetRuns(w.step(), q); err != nil || len(runs) != times {
		w.Fatal(len(runs), err)
	}
}
