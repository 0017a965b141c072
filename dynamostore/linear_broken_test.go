//go:build proof

package dynamostore_test

import (
	"testing"

	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/linear"
	"github.com/runlane/runlane-go/internal/proof/mutation/protection"
)

const complete = "no condition is missing"

// removals are the conditions that the subjects rest upon, each with the subjects whose history shows that it is gone, or why
// the history cannot show it.
var removals = map[string]struct {
	removed func(protection.Condition) bool
	shownBy []linear.Subject
	unseen  map[linear.Subject]string
}{
	"none": {
		removed: func(protection.Condition) bool { return false },
		unseen: map[linear.Subject]string{
			linear.Singleton: complete, linear.Idempotency: complete, linear.Lease: complete, linear.Slots: complete,
			linear.Outbox: complete,
		},
	},
	"a new owner finds the key free": {
		removed: func(c protection.Condition) bool { return c.Owner() && c.Absent() },
		shownBy: []linear.Subject{linear.Singleton, linear.Idempotency},
	},
	"a new owner replaces the one that was found dead": {
		removed: func(c protection.Condition) bool { return c.Owner() && c.Doing == "put" && !c.Absent() },
		shownBy: []linear.Subject{linear.Singleton, linear.Idempotency},
	},
	"a reset clears the owner that it saw": {
		removed: func(c protection.Condition) bool { return c.Owner() && c.Doing == "remove" },
		shownBy: []linear.Subject{linear.Idempotency},
	},
	"a commit stands on its sequence": {
		removed: func(c protection.Condition) bool { return c.Run() && c.About("sq") },
		unseen:  map[linear.Subject]string{linear.Lease: "no log item may stand at the sequence either"},
	},
	"no log item stands at the sequence": {
		removed: func(c protection.Condition) bool { return c.Log() && c.Absent() },
		unseen:  map[linear.Subject]string{linear.Lease: "the run's sequence says the same"},
	},
	"an owner's commit carries the token": {
		removed: func(c protection.Condition) bool { return c.Run() && c.About("lt") },
		unseen:  map[linear.Subject]string{linear.Lease: "the token was read with the sequence, and changes with it"},
	},
	"a commit finds the run as it was read": {
		removed: func(c protection.Condition) bool { return c.Run() && !c.Absent() || c.Log() && c.Absent() },
		shownBy: []linear.Subject{linear.Lease},
	},
	"a slot that is taken was free": {
		removed: func(c protection.Condition) bool { return c.Slot() && c.Absent() },
		shownBy: []linear.Subject{linear.Slots},
	},
	"a slot that is taken is its old holder's": {
		removed: func(c protection.Condition) bool { return c.Slot() && !c.Frees() && c.About("ru") },
		unseen:  map[linear.Subject]string{linear.Slots: "another holder's reservation ends at another time"},
	},
	"a slot that is taken was reserved until then": {
		removed: func(c protection.Condition) bool { return c.Slot() && c.About("un") },
		unseen:  map[linear.Subject]string{linear.Slots: "a run holds a slot of one reservation at a time"},
	},
	"a slot that is taken is as it was read": {
		removed: func(c protection.Condition) bool { return c.Slot() && !c.Frees() && !c.Absent() },
		shownBy: []linear.Subject{linear.Slots},
	},
	"a slot that is freed is the run's own": {
		removed: func(c protection.Condition) bool { return c.Slot() && c.Frees() },
		shownBy: []linear.Subject{linear.Slots},
	},
	"a row that is claimed has its old status": {
		removed: func(c protection.Condition) bool { return c.Row() && c.About("st") && !c.Marks() },
		shownBy: []linear.Subject{linear.Outbox},
	},
	"a row that is claimed has its old token": {
		removed: func(c protection.Condition) bool { return c.Row() && c.About("ct") && !c.Marks() },
		shownBy: []linear.Subject{linear.Outbox},
	},
	"a row is marked under its claim": {
		removed: func(c protection.Condition) bool { return c.Row() && c.Marks() },
		shownBy: []linear.Subject{linear.Outbox},
	},
}

func TestStore_Linearizability_ShowsEachMissingCondition(t *testing.T) {
	t.Parallel()
	client := awstest.DynamoDB(t)
	table := awstest.Table(t, client)
	judge := func(t *testing.T, removed func(protection.Condition) bool, subject linear.Subject) *linear.Verdict {
		t.Helper()
		stores := processes(t, protection.Unguarded(client, removed), table)
		return linear.Check(t, stores, subject, &linear.Options{Clients: 16, Operations: 9, Keys: 3})
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
