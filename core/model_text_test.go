package core_test

import (
	"fmt"
	"strings"
)

// What a failed sequence says of its steps.

func (c *modelCall) String() string {
	o := &c.options
	text := []string{string(c.task.id), fmt.Sprintf("%+v", c.payload)}
	add := func(set bool, format string, args ...any) {
		if set {
			text = append(text, fmt.Sprintf(format, args...))
		}
	}
	add(o.RunID != "", "as %s", o.RunID)
	add(o.Delay > 0, "in %s", o.Delay)
	add(!o.RunAt.IsZero(), "at %s", o.RunAt)
	add(o.Deferred, "deferred")
	add(o.IdempotencyKey != "", "idempotency key %s for %s, strict %t", o.IdempotencyKey, o.IdempotencyTTL, o.StrictPayload)
	add(o.SingletonKey != "", "singleton key %s, return active %t", o.SingletonKey, o.ReturnActive)
	return strings.Join(text, ", ")
}

func (o modelOutcome) String() string {
	if o.delay == 0 {
		return o.kind
	}
	return fmt.Sprintf("%s %s", o.kind, o.delay)
}

func (x *modelAttempt) String() string {
	switch {
	case !x.waits:
		return x.outcome.String()
	case x.stubborn && x.muted:
		return "waits, stubborn and muted"
	case x.stubborn:
		return "waits, stubborn"
	case x.muted:
		return "waits, muted"
	default:
		return "waits"
	}
}
