package dynamostore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// broken is one invariant of docs/internals/layout.md, broken by hand: a run that is right, what is done to its items behind the store's
// back, and the rule that has to be named with it.
type broken struct {
	name   string
	sound  func(w *world) *world
	breaks func(w *world)
	rule   string
}

// strip removes attributes of the run item, and alter sets them.
func (w *world) strip(names string) {
	w.Helper()
	w.rewrite(item.Key(rows.RunPK(w.key()), rows.RunSK), "REMOVE "+names, nil)
}

func (w *world) alter(expression string, values item.Item) {
	w.Helper()
	w.rewrite(item.Key(rows.RunPK(w.key()), rows.RunSK), "SET "+expression, values)
}

func (w *world) loses(pk, sk string) {
	w.Helper()
	_, err := w.store.db.Client.DeleteItem(w.Context(), &dynamodb.DeleteItemInput{TableName: &w.store.db.Name, Key: item.Key(pk, sk)})
	if err != nil {
		w.Fatal(err)
	}
}

// move puts the run's marker elsewhere.
func (w *world) move(partition, sort string) {
	w.Helper()
	w.alter("#dp = :dp, #da = :da", item.Item{":dp": item.Text(partition), ":da": item.Text(sort)})
}

func (w *world) later(d time.Duration, queue string) string {
	return fmt.Sprintf("%013d:%s", rows.ToMillis(w.now.Add(d)), queue)
}

func queuedRun(w *world) *world { return w.create(eager, 0, nil).ack() }

func runningRun(w *world) *world { return queuedRun(w).claim(time.Minute, true) }

func finishedRun(w *world) *world {
	return runningRun(w).succeed()
}

// slotted is a run that executes in a slot of a bounded queue.
func slotted(w *world) *world {
	bounded := *w
	bounded.bounded(2).group = fmt.Sprint("group ", runNumber.Load())
	inside := bounded.must(bounded.enter(time.Minute))
	inside.wantOutcome(inside.claimFor(time.Minute, false), lane.Acquired)
	return inside
}

// owner owns both keys. They are new ones each time.
func owner(w *world) *world {
	return w.create(eager, 0, owned(fmt.Sprint("key ", runNumber.Load()), []byte(`{}`)))
}

func (w *world) ownerPK() string {
	return rows.IdempotencyPK(lane.OwnerKey{Environment: "test", TaskID: w.run.TaskID, Key: w.run.IdempotencyKey})
}

func brokenMarkers() []broken {
	return []broken{
		{"active, and not in due", queuedRun, func(w *world) { w.strip("#dp, #da") }, ruleMembership},
		{"active, and in done as well", queuedRun, func(w *world) {
			w.alter("#fp = :fp, #fa = :fa", item.Item{":fp": item.Text("test:succeeded:0"), ":fa": item.Text("0000000000001:x")})
		}, ruleMembership},
		{"finished, and not in done", finishedRun, func(w *world) { w.strip("#fp, #fa") }, ruleMembership},
		{"finished, and still in due", finishedRun, func(w *world) { w.move("test:q:0", w.later(0, "default")) }, ruleMembership},
		{"a marker a millisecond late", func(w *world) *world { return w.create(deferred, 0, nil) }, func(w *world) {
			w.move(w.item().DueP, w.later(time.Millisecond, "default"))
		}, ruleMarker},
		{"a marker after the end of the lease", runningRun, func(w *world) { w.move("test:l:0", w.later(time.Minute+time.Millisecond, "default")) }, ruleMarker},
		{"a marker of another queue", queuedRun, func(w *world) { w.move("test:q:0", w.later(0, "another")) }, ruleMarker},
		{"a marker that says nothing", queuedRun, func(w *world) { w.move("test:q:0", "soon") }, ruleMarker},
		{"a marker of a dead letter that is none", queuedRun, func(w *world) { w.move("test:x:0", w.later(0, "default")) }, ruleMarker},
		{"a dead letter without its marker", func(w *world) *world { return w.create(eager, 0, nil).bury() }, func(w *world) {
			w.move("test:q:0", w.later(0, "default"))
		}, ruleMarker},
		{"a running run that waits for a slot", runningRun, func(w *world) {
			w.move("test:d:0", "default:"+rows.Hash("")+":"+fmt.Sprintf("%013d", rows.ToMillis(w.now)))
		}, ruleMarker},
		{"a run that waits in another partition", func(w *world) *world {
			waits := *w
			return waits.must(waits.bounded(1).enter(0))
		}, func(w *world) {
			w.move("test:d:0", "default:"+rows.Hash("another")+":"+fmt.Sprintf("%013d", rows.ToMillis(w.now)))
		}, ruleMarker},
		{"due in a shard that no reader reads", queuedRun, func(w *world) { w.move("test:q:8", w.item().DueA) }, ruleShard},
		{"done in a shard that no reader reads", finishedRun, func(w *world) { w.alter("#fp = :fp", item.Item{":fp": item.Text("test:succeeded:8")}) }, ruleShard},
	}
}

func brokenItems() []broken {
	return []broken{
		{"a running run with a row to claim", runningRun, func(w *world) { w.alter("#ld = :ld", item.Item{":ld": item.Num(1)}) }, ruleLatest},
		{"a finished run with a row to claim", finishedRun, func(w *world) { w.alter("#ld = :ld", item.Item{":ld": item.Num(1)}) }, ruleLatest},
		{"a row that is not there", queuedRun, func(w *world) { w.alter("#ld = :ld", item.Item{":ld": item.Num(99)}) }, ruleLatest},
		{"queued under a lease", queuedRun, func(w *world) { w.alter("#lt = :lt", item.Item{":lt": item.Text("token")}) }, ruleLease},
		{"running without a lease", runningRun, func(w *world) { w.strip("#lt") }, ruleLease},
		{"no payload", func(w *world) *world { return w.create(eager, 0, &runlane.RunCreated{Payload: bulky(3)}) }, func(w *world) {
			w.loses(rows.RunPK(w.key()), rows.PayloadSK)
		}, ruleBulk},
		{"no output", func(w *world) *world { return w.finished(nil, bulky(2)) }, func(w *world) { w.loses(rows.RunPK(w.key()), rows.OutputSK) }, ruleBulk},
		{"no owner of the idempotency key", owner, func(w *world) { w.loses(w.ownerPK(), rows.OwnerSK) }, ruleOwner},
		{"no owner of the singleton key", owner, func(w *world) {
			w.loses(rows.SingletonPK(lane.OwnerKey{Environment: "test", TaskID: w.run.TaskID, Key: w.run.SingletonKey}), rows.OwnerSK)
		}, ruleOwner},
		{"another owner of the key", owner, func(w *world) {
			w.rewrite(item.Key(w.ownerPK(), rows.OwnerSK), "SET #ru = :ru", item.Item{":ru": item.Text("run_other")})
		}, ruleOwner},
		{"the owner of a key that it never had", queuedRun, func(w *world) {
			w.plant(item.Item{item.PK: item.Text(rows.IdempotencyPK(lane.OwnerKey{Environment: "test", TaskID: "bench.noop", Key: "foreign"})), item.SK: item.Text(rows.OwnerSK), "ru": item.Text(string(w.run.ID))})
		}, ruleOwner},
		{"no slot", slotted, func(w *world) { w.loses(w.item().HeldSlot().PK, w.item().HeldSlot().SK) }, ruleSlot},
		{"another run's slot", slotted, func(w *world) {
			slot := w.item().HeldSlot()
			w.rewrite(item.Key(slot.PK, slot.SK), "SET #ru = :ru", item.Item{":ru": item.Text("run_other")})
		}, ruleSlot},
		{"two slots", slotted, func(w *world) {
			w.plant(item.Item{item.PK: item.Text(w.item().HeldSlot().PK), item.SK: item.Text(rows.SlotSK(1 - w.item().HeldSlot().Number())), "ru": item.Text(string(w.run.ID))})
		}, ruleSlot},
		{"a slot of a finished run", finishedRun, func(w *world) {
			w.plant(item.Item{item.PK: item.Text(w.item().Partition().PK()), item.SK: item.Text(rows.SlotSK(7)), "ru": item.Text(string(w.run.ID))})
		}, ruleSlot},
	}
}

// A checker that finds nothing proves nothing: every invariant is broken by hand, and named.
func TestCheck_FindsEachBrokenInvariant(t *testing.T) {
	w := newWorld(t)
	named := map[string]bool{}
	for _, c := range slices.Concat(brokenMarkers(), brokenItems()) {
		culprit := c.sound(w.fresh())
		if rules := culprit.violated(); len(rules) != 0 {
			t.Fatalf("%s: before anything was broken: %q", c.name, rules)
		}
		c.breaks(culprit)
		if rules := culprit.violated(); !slices.Contains(rules, c.rule) {
			t.Errorf("%s: found %q, want %q", c.name, rules, c.rule)
		}
		named[c.rule] = true
	}
	for _, rule := range []string{ruleMembership, ruleMarker, ruleLatest, ruleLease, ruleBulk, ruleOwner, ruleSlot, ruleShard} {
		if !named[rule] {
			t.Errorf("nothing breaks %q", rule)
		}
	}
}

// fresh is a world of other runs in the same table: what one of them broke is not found with the next.
func (w *world) fresh() *world {
	other := *w
	other.run, other.rows, other.group, other.queue = nil, nil, "", runlane.DefaultQueue
	return &other
}

// violated are the rules that the check names with the run.
func (w *world) violated() (rules []string) {
	w.Helper()
	q := &lane.PageQuery{Environment: "test", Limit: runlane.MaxPageLimit}
	for {
		page, err := w.store.Check(w.Context(), q)
		if err != nil {
			w.Fatal(err)
		}
		for _, v := range page.Items {
			if v.RunID == w.run.ID && v.Environment == "test" {
				rules = append(rules, v.Rule)
			}
		}
		if q.After = page.Next; page.Next == "" {
			return rules
		}
	}
}
