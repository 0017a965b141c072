package dynamostore_test

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/awstest"
	"github.com/runlane/runlane-go/lanetest"
)

// guarded is one condition of one write.
type guarded struct {
	pk, sk string
	doing  string // put, delete, check, reset, or the expression of an update
	clause string // one of those that AND joins
}

// unguarded is a client that makes the chosen conditions always true.
type unguarded struct {
	dynamostore.API
	removed func(guarded) bool
}

func (u *unguarded) weaken(key map[string]types.AttributeValue, doing string, condition *string) *string {
	if condition == nil {
		return nil
	}
	clauses := strings.Split(*condition, " AND ")
	for i, clause := range clauses {
		if u.removed(guarded{textAt(key, "pk"), textAt(key, "sk"), doing, clause}) {
			clauses[i] = "(" + clause + " OR (NOT " + clause + "))" // names and values stay in use
		}
	}
	out := strings.Join(clauses, " AND ")
	return &out
}

func textAt(it map[string]types.AttributeValue, name string) string {
	if s, ok := it[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// TransactWriteItems implements dynamostore.API.
func (u *unguarded) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	weak := *in
	weak.TransactItems = nil
	for _, w := range in.TransactItems {
		switch {
		case w.Put != nil:
			put := *w.Put
			put.ConditionExpression = u.weaken(put.Item, "put", put.ConditionExpression)
			w.Put = &put
		case w.Update != nil:
			update := *w.Update
			update.ConditionExpression = u.weaken(update.Key, *update.UpdateExpression, update.ConditionExpression)
			w.Update = &update
		case w.Delete != nil:
			gone := *w.Delete
			gone.ConditionExpression = u.weaken(gone.Key, "delete", gone.ConditionExpression)
			w.Delete = &gone
		case w.ConditionCheck != nil:
			check := *w.ConditionCheck
			check.ConditionExpression = u.weaken(check.Key, "check", check.ConditionExpression)
			w.ConditionCheck = &check
		}
		weak.TransactItems = append(weak.TransactItems, w)
	}
	return u.API.TransactWriteItems(ctx, &weak, o...)
}

// UpdateItem implements dynamostore.API.
func (u *unguarded) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	weak := *in
	weak.ConditionExpression = u.weaken(in.Key, *in.UpdateExpression, in.ConditionExpression)
	return u.API.UpdateItem(ctx, &weak, o...)
}

// DeleteItem implements dynamostore.API.
func (u *unguarded) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	weak := *in
	weak.ConditionExpression = u.weaken(in.Key, "reset", in.ConditionExpression)
	return u.API.DeleteItem(ctx, &weak, o...)
}

// Where conditions stand.
func (g guarded) owner() bool { return g.sk == "owner" }
func (g guarded) run() bool   { return g.sk == "run" }
func (g guarded) log() bool   { return strings.HasPrefix(g.sk, "log:") }
func (g guarded) slot() bool  { return strings.Contains(g.pk, ":slot:") }
func (g guarded) row() bool   { return strings.HasPrefix(g.clause, "#dl[") }
func (g guarded) is(name string) bool {
	return strings.HasPrefix(g.clause, "#"+name+" = ") || strings.HasSuffix(strings.Split(g.clause, " ")[0], ".#"+name)
}
func (g guarded) absent() bool { return g.clause == "attribute_not_exists(#pk)" }
func (g guarded) frees() bool  { return g.doing == "delete" }
func (g guarded) marks() bool  { return strings.Contains(g.doing, "REMOVE") }

const complete = "no condition is missing"

// removals are the conditions that the subjects rest upon, each with the subjects whose history shows that it is gone, or why
// the history cannot show it.
var removals = map[string]struct {
	removed func(guarded) bool
	shownBy []lanetest.LinearSubject
	unseen  map[lanetest.LinearSubject]string
}{
	"none": {
		removed: func(guarded) bool { return false },
		unseen: map[lanetest.LinearSubject]string{
			lanetest.LinearSingleton: complete, lanetest.LinearIdempotency: complete, lanetest.LinearLease: complete, lanetest.LinearSlots: complete,
			lanetest.LinearOutbox: complete,
		},
	},
	"a new owner finds the key free": {
		removed: func(g guarded) bool { return g.owner() && g.absent() },
		shownBy: []lanetest.LinearSubject{lanetest.LinearSingleton, lanetest.LinearIdempotency},
	},
	"a new owner replaces the one that was found dead": {
		removed: func(g guarded) bool { return g.owner() && g.doing == "put" && g.is("ru") },
		shownBy: []lanetest.LinearSubject{lanetest.LinearSingleton, lanetest.LinearIdempotency},
	},
	"a reset clears the owner that it saw": {
		removed: func(g guarded) bool { return g.owner() && g.doing == "reset" },
		shownBy: []lanetest.LinearSubject{lanetest.LinearIdempotency},
	},
	"a commit stands on its sequence": {
		removed: func(g guarded) bool { return g.run() && g.is("sq") },
		unseen:  map[lanetest.LinearSubject]string{lanetest.LinearLease: "no log item may stand at the sequence either"},
	},
	"no log item stands at the sequence": {
		removed: func(g guarded) bool { return g.log() && g.absent() },
		unseen:  map[lanetest.LinearSubject]string{lanetest.LinearLease: "the run's sequence says the same"},
	},
	"an owner's commit carries the token": {
		removed: func(g guarded) bool { return g.run() && g.is("lt") },
		unseen:  map[lanetest.LinearSubject]string{lanetest.LinearLease: "the token was read with the sequence, and changes with it"},
	},
	"a commit finds the run as it was read": {
		removed: func(g guarded) bool { return g.run() && !g.absent() || g.log() && g.absent() },
		shownBy: []lanetest.LinearSubject{lanetest.LinearLease},
	},
	"a slot that is taken was free": {
		removed: func(g guarded) bool { return g.slot() && g.absent() },
		shownBy: []lanetest.LinearSubject{lanetest.LinearSlots},
	},
	"a slot that is taken is its old holder's": {
		removed: func(g guarded) bool { return g.slot() && !g.frees() && g.is("ru") },
		unseen:  map[lanetest.LinearSubject]string{lanetest.LinearSlots: "another holder's reservation ends at another time"},
	},
	"a slot that is taken was reserved until then": {
		removed: func(g guarded) bool { return g.slot() && g.is("un") },
		unseen:  map[lanetest.LinearSubject]string{lanetest.LinearSlots: "a run holds a slot of one reservation at a time"},
	},
	"a slot that is taken is as it was read": {
		removed: func(g guarded) bool { return g.slot() && !g.frees() && !g.absent() },
		shownBy: []lanetest.LinearSubject{lanetest.LinearSlots},
	},
	"a slot that is freed is the run's own": {
		removed: func(g guarded) bool { return g.slot() && g.frees() },
		shownBy: []lanetest.LinearSubject{lanetest.LinearSlots},
	},
	"a row that is claimed has its old status": {
		removed: func(g guarded) bool { return g.row() && g.is("st") && !g.marks() },
		shownBy: []lanetest.LinearSubject{lanetest.LinearOutbox},
	},
	"a row that is claimed has its old token": {
		removed: func(g guarded) bool { return g.row() && g.is("ct") && !g.marks() },
		shownBy: []lanetest.LinearSubject{lanetest.LinearOutbox},
	},
	"a row is marked under its claim": {
		removed: func(g guarded) bool { return g.row() && g.marks() },
		shownBy: []lanetest.LinearSubject{lanetest.LinearOutbox},
	},
}

func TestStore_Linearizability_ShowsEachMissingCondition(t *testing.T) {
	t.Parallel()
	client := awstest.DynamoDB(t)
	table := awstest.Table(t, client)
	judge := func(t *testing.T, removed func(guarded) bool, subject lanetest.LinearSubject) *lanetest.LinearVerdict {
		t.Helper()
		stores := processes(t, &unguarded{client, removed}, table)
		return lanetest.CheckLinearizability(t, stores, subject, &lanetest.LinearOptions{Clients: 16, Operations: 9, Keys: 3})
	}
	for name, c := range removals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, subject := range c.shownBy {
				const histories = 20 // who meets whom is the machine's choice
				for n := 1; ; n++ {
					verdict := judge(t, c.removed, subject)
					if !verdict.Linearizable && !verdict.TimedOut {
						t.Logf("history %d: %s", n, verdict)
						break
					}
					if n == histories {
						t.Fatalf("%d histories did not show it; the last: %s", n, verdict)
					}
				}
			}
			for subject, why := range c.unseen {
				if verdict := judge(t, c.removed, subject); !verdict.Sound() {
					t.Errorf("the history shows it, which cannot be, for %s: %s", why, verdict)
				}
			}
		})
	}
}
