package crash_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/crash"
)

// broken are protections that are off in a child, by name: what is done to its requests.
var broken = map[string]func(in any){
	"marker": func(in any) { // no tick ever finds the run
		each(in, func(c *types.TransactWriteItem) bool {
			if c.Put != nil {
				delete(c.Put.Item, "dp")
				delete(c.Put.Item, "da")
			}
			return true
		})
	},
	"slot": func(in any) { // none is given back
		each(in, func(c *types.TransactWriteItem) bool {
			return c.Delete == nil || !strings.Contains(textOf(c.Delete.Key["pk"]), ":slot:")
		})
	},
	"owner": func(in any) { // no run owns a key
		each(in, func(c *types.TransactWriteItem) bool { return c.Put == nil || textOf(c.Put.Item["sk"]) != "owner" })
	},
}

// each changes the members of a transaction, and leaves out those of which it is false.
func each(in any, keep func(*types.TransactWriteItem) bool) {
	c, ok := in.(*dynamodb.TransactWriteItemsInput)
	if !ok {
		return
	}
	var kept []types.TransactWriteItem
	for i := range c.TransactItems {
		if keep(&c.TransactItems[i]) {
			kept = append(kept, c.TransactItems[i])
		}
	}
	c.TransactItems = kept
}

// What finds nothing proves nothing: with a protection off, the account finds what comes of it.
func TestCrash_WithoutAProtection_TheAccountFindsIt(t *testing.T) {
	t.Parallel()
	awstest.Config(t)
	q := newQueues()
	t.Cleanup(q.server.Close)
	for _, c := range []struct {
		protection, scenario string
		dies                 bool // after its first effect
		want                 string
	}{
		{"marker", "trigger", true, "waits for"},
		{"slot", "delivery with a successor", false, "a slot is held by"},
		{"owner", "trigger with keys", true, "there are 3 runs"},
	} {
		t.Run(c.protection, func(t *testing.T) {
			t.Parallel()
			b := newBench(q)
			s, open := crash.Find(b.Scenarios, c.scenario), lanes(t, q)
			lived, lines := b.Try(t, open(t), s, nil)
			for _, fault := range lived.Faults() {
				t.Error(fault)
			}
			var target *crash.Point
			if c.dies {
				all := crash.Points(lines, true)
				target = &all[slices.IndexFunc(all, func(p crash.Point) bool { return p.After() })]
			}
			l := open(t).(*awsLane)
			l.broken = c.protection
			found, _ := b.Try(t, l, s, target)
			if !strings.Contains(strings.Join(found.Faults(), "\n"), c.want) {
				t.Errorf("%q was not found: %q", c.want, found.Faults())
			}
			if c.protection == "marker" && found.Lost == 0 {
				t.Error("no run counts as lost")
			}
		})
	}
}
