// Package protection turns off, one at a time, what keeps runs from being lost or executed twice, at the seam of the
// AWS SDK, so that tests can be shown to miss it. The product has no such switch. Set [Variable] to a [Protection] and
// run any test that has its DynamoDB from internal/proof/awstest or its faults from internal/proof/fault/ddbfault: internal/tools/mutation
// does, and names the tests that fail.
package protection

import (
	"crypto/rand"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Protection is what can be turned off.
type Protection string

// The protections (docs/internals/layout.md, Commit).
const (
	// Fencing: a commit finds the run as it was read: its sequence, the token of its lease, and no log item at the
	// sequence.
	Fencing Protection = "fencing"
	// TokenReuse: a transaction that is sent again carries the token of its first sending.
	TokenReuse Protection = "token reuse"
	// ConflictRetry: a write that meets another transaction is repeated.
	ConflictRetry Protection = "conflict retry"
	// MarkerMove: a run's marker in the index moves with what the run waits for.
	MarkerMove Protection = "marker move"
	// SlotCondition: a slot is taken and freed only as it was read.
	SlotCondition Protection = "slot condition"
	// OwnerDedup: a key whose owner is another run makes no new one.
	OwnerDedup Protection = "dedup by owner"
)

// All protections.
func All() []Protection {
	return []Protection{Fencing, TokenReuse, ConflictRetry, MarkerMove, SlotCondition, OwnerDedup}
}

// Variable names the protection that the tests of this process do without.
const Variable = "RUNLANE_TEST_WITHOUT"

// Off is the protection that is turned off here; "" is none. It panics at a name that is none: a test must not pass for
// a typing error.
func Off() Protection {
	p := Protection(os.Getenv(Variable))
	if p != "" && !slices.Contains(All(), p) {
		panic(fmt.Sprintf("%s is %q: use one of %q", Variable, p, All()))
	}
	return p
}

// Without is an option of a client that does without the protection. ConflictRetry is not its business: emulators have
// no conflicts, internal/proof/fault/ddbfault makes them.
func Without(p Protection) func(*dynamodb.Options) {
	switch p {
	case Fencing:
		return unguarded(p, func(c Condition) bool {
			return c.Run() && !c.Absent() && (c.About("sq") || c.About("lt")) || c.Log() && c.Absent()
		})
	case SlotCondition:
		return unguarded(p, Condition.Slot)
	case OwnerDedup:
		return unguarded(p, Condition.Owner)
	case MarkerMove:
		return rewriting(string(p), func(w *write) { w.keepMarker() })
	case TokenReuse:
		return rewritingBodies(string(p), func(body []byte) []byte {
			return requestToken.ReplaceAll(body, []byte(`"ClientRequestToken":"`+rand.Text()+`"`))
		})
	default:
		return func(*dynamodb.Options) {}
	}
}

var requestToken = regexp.MustCompile(`"ClientRequestToken":"[^"]*"`)

func unguarded(p Protection, removed func(Condition) bool) func(*dynamodb.Options) {
	return rewriting(string(p), func(w *write) { w.weaken(removed) })
}

// keepMarker makes an update of a run leave its place in the index as it is. The names and values stay in use.
func (w *write) keepMarker() {
	if w.sk != "run" || w.update == nil {
		return
	}
	text := *w.update
	for _, attribute := range []string{"dp", "da"} {
		text = strings.Replace(
			text,
			"#"+attribute+" = :to_"+attribute,
			"#"+attribute+" = if_not_exists(#"+attribute+", :to_"+attribute+")",
			1,
		)
	}
	w.update = &text
}
