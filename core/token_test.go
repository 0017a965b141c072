package core

import (
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
)

// A token that a runtime makes is one that it takes, however long its ids and names are and whatever JSON makes of
// them.
func TestToken_OfTheLongestNames_IsTaken(t *testing.T) {
	t.Parallel()
	key := []byte("0123456789abcdef0123456789abcdef")
	for _, letter := range []string{"a", "&", "<", "\"", "\\"} {
		id := strings.Repeat(letter, runlane.MaxIDBytes)
		claims := tokenClaims{
			Environment: id,
			RunID:       runlane.RunID(id),
			CreatedAt:   1 << 45,
			Name:        strings.Repeat(letter, runlane.MaxSignalNameBytes),
			ExpiresAt:   1 << 45,
			Flow:        runlane.FlowID(id),
			FlowFrom:    1 << 45,
			Node:        strings.Repeat(letter, runlane.MaxNodeNameBytes),
		}
		token, err := claims.sign(key)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := parseToken([][]byte{key}, token)
		if !ok || *got != claims {
			t.Errorf("of %q, %d bytes: %v, %+v", letter, len(token), ok, got)
		}
	}
}
