package cli

import (
	"strings"
	"testing"

	"github.com/runlane/runlane-go/core"
)

// Rows of keys say, as those of queues do, that there are more runs than were counted.
func TestAddKeys_LowerBounds_HaveThePlus(t *testing.T) {
	t.Parallel()
	keys := &table{}
	stats := &core.QueueStats{Keys: []core.KeyStats{{Key: "a", Waiting: 3, Reserved: 1, Running: 2}}, MoreKeys: 4}
	stats.Queue.Name = "narrow"
	addKeys(keys, stats, "+")
	if got := strings.Join(keys.rows[0], " "); got != `narrow "a" 3+ 1+ 2+ 0+` {
		t.Errorf("the row is %s", got)
	}
	if got := strings.Join(keys.rows[1], " "); got != "narrow 4+ more" {
		t.Errorf("the last row is %s", got)
	}
}
