package lanetest

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// The record of an environment comes back whole, and the last one put is kept.
func keepRoundTrip(t *testing.T, b *bundle) {
	equal(t, "record at first", &lane.KeepRecord{}, must(b.storage.GetKeep(b.ctx(), b.env))(t))
	whole := lane.KeepRecord{
		Rule:   runlane.Keep{Succeeded: runlane.KeepForever, Failed: time.Hour + 1},
		RuleAt: noon,
		At:     noon.Add(time.Second),
		Passes: []lane.KeepPass{
			{Name: "a", At: noon, Whole: noon.Add(-time.Hour), Since: noon.Add(-time.Minute)},
			{Name: "b", Until: noon.Add(time.Minute), After: "cursor"},
		},
	}
	for _, record := range []lane.KeepRecord{whole, {Passes: whole.Passes[:1]}, whole} {
		put := &lane.PutKeepCommand{Environment: b.env, Record: record}
		if err := b.storage.PutKeep(b.ctx(), put); err != nil {
			t.Fatal(err)
		}
		equal(t, "record", &record, must(b.storage.GetKeep(b.ctx(), b.env))(t))
	}
}
