package remote

import (
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
)

// FuzzClaimToken gives anything as the token of a claim: what is read names a usable run, and only the token itself
// leads to its lease.
func FuzzClaimToken(f *testing.F) {
	const secret = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	token := Token("run_1", secret)
	for _, seed := range []string{"", token, token + "A", "rlc1..", "rlc1.YTpi.A", strings.ToUpper(token), Token("run_2", secret)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, given string) {
		id, lease, ok := Parse(given)
		if ok && id.Validate() != nil {
			t.Fatalf("%q names %q", given, id)
		}
		if (ok && id == "run_1" && lease == LeaseOf(secret)) != (given == token) {
			t.Fatalf("%q: %q, %q, %t", given, id, lease, ok)
		}
		if ok && lease == leaseMark+secret {
			t.Fatal("the lease has the secret")
		}
		if n := len(Token(runlane.RunID(strings.Repeat("r", runlane.MaxIDBytes)), secret)); n > maxClaimToken {
			t.Fatalf("a token has %d bytes", n)
		}
	})
}
