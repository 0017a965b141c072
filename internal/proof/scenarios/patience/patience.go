// Package patience holds how long tests wait for what has to happen. Such a limit only ends what hangs: a test never
// judges by it how fast something is, so it is the same everywhere, and far longer than anything takes.
package patience

import (
	"context"
	"testing"
	"time"
)

// Limit is more than ten times what the slowest wait of any test takes on a quiet machine.
const Limit = 5 * time.Minute

// Context ends with its cancel function, with the test, or after [Limit].
func Context(t testing.TB) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Limit)
	t.Cleanup(cancel)
	return ctx, cancel
}
