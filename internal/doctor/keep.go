package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

// keepLooked is the time within which a ticking program has looked for runs to remove.
const keepLooked = 24 * time.Hour

// checkKeep says how long finished runs are kept, and warns of old ones that no tick removes.
func checkKeep(ctx context.Context, rt *core.Runtime) (string, error) {
	keeping, err := rt.Runs().Keeping(ctx, 0)
	if err != nil {
		return "", err
	}
	rule := "kept " + shown.KeepOf(keeping.Rule).String()
	if n := len(keeping.Tasks); n > 0 {
		rule += fmt.Sprintf("; tasks with other times: %d", n)
	}
	overdue := 0
	for _, of := range keeping.Overdue {
		overdue += of.Runs
	}
	if overdue == 0 {
		return rule, nil
	}
	atLeast := ""
	if keeping.More {
		atLeast = "at least "
	}
	found := fmt.Sprintf("%s; %s%d are past their time", rule, atLeast, overdue)
	if time.Since(keeping.LookedAt) < keepLooked {
		return found + " and go with the next ticks", nil
	}
	return "", &Warning{Message: found, Fix: `let a program tick, or use "runlane runs prune"`}
}
