package memlane

import (
	"strings"
	"testing"

	"github.com/runlane/runlane-go/lane"
)

// FuzzOutboxIDs gives claim tokens of rows that never were: no row is held by them.
func FuzzOutboxIDs(f *testing.F) {
	for _, token := range []string{"claim_1", "claim_01", "claim_zzzzzzzzzzzzzzzz", ""} {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		held := row{Status: lane.OutboxClaimed, Token: 1}
		if holds(&held, token) && strings.TrimLeft(strings.TrimPrefix(token, tokenPrefix), "0") != "1" {
			t.Fatalf("%q holds the claim of %q", token, tokenText(1))
		}
	})
}
