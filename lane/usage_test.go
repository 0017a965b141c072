package lane_test

import (
	"testing"

	"github.com/runlane/runlane-go/lane"
)

func TestCountUsage_AddsWhatIsUsedUnderItsContext(t *testing.T) {
	t.Parallel()
	lane.AddUsage(t.Context(), lane.Usage{Requests: 1}) // uncounted
	ctx, count := lane.CountUsage(t.Context())
	lane.AddUsage(ctx, lane.Usage{Requests: 1, ReadUnits: 0.5})
	lane.AddUsage(ctx, lane.Usage{Requests: 2, WriteUnits: 3, ReadUnits: 1})
	lane.AddUsage(t.Context(), lane.Usage{Requests: 1})
	if got, want := count.Usage(), (lane.Usage{Requests: 3, WriteUnits: 3, ReadUnits: 1.5}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
