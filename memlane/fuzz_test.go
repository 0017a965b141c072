package memlane

import (
	"strings"
	"testing"

	"github.com/runlane/runlane-go/lane"
)

// FuzzOutboxIDs gives ids and claim tokens of rows that never were: no row is found by them.
func FuzzOutboxIDs(f *testing.F) {
	f.Add("run_1:2", "claim_1")
	f.Add("run_1:+2", "claim_01")
	f.Add("::-9223372036854775808", "claim_zzzzzzzzzzzzzzzz")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, id, token string) {
		if run, sequence, ok := parseEventID(id); ok {
			if again, n, ok := parseEventID(eventID(run, sequence)); !ok || again != run || n != sequence {
				t.Fatalf("%q is read as %q and %d", id, run, sequence)
			}
		}
		held := row{status: lane.OutboxClaimed, token: 1}
		if held.holds(token) && strings.TrimLeft(strings.TrimPrefix(token, tokenPrefix), "0") != "1" {
			t.Fatalf("%q holds the claim of %q", token, tokenText(1))
		}
	})
}
