package dynamostore

import (
	"testing"

	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/lane"
)

// What a request uses is in the store's sums, and in the count of its context.
func TestUsage_OfAContextIsCountedBesideTheStoresSums(t *testing.T) {
	t.Parallel()
	all := &meter{}
	of := tableMeter{all}
	ctx, count := lane.CountUsage(t.Context())
	of.Used(ctx, "read run", ddb.Usage{Requests: 1, ReadUnits: 2})
	of.Used(t.Context(), "read run", ddb.Usage{Requests: 1, ReadUnits: 1})
	if got, want := count.Usage(), (Usage{Requests: 1, ReadUnits: 2}); got != want {
		t.Errorf("the context has %+v, want %+v", got, want)
	}
	if got, want := all.Stats().Usage, (Usage{Requests: 2, ReadUnits: 3}); got != want {
		t.Errorf("the store has %+v, want %+v", got, want)
	}
}
