package runlane

import (
	"fmt"
	"time"
)

const (
	// KeepForever, as a time of [Keep], never removes the runs.
	KeepForever time.Duration = -1
	// DefaultKeep is how long an environment keeps its finished runs when nothing is said.
	DefaultKeep = 30 * 24 * time.Hour
	// MinKeep leaves callers the time to read a result.
	MinKeep = time.Hour
)

// Keep is how long finished runs are kept, by how they ended. Ticks then remove them with their histories, not while
// they hold an idempotency key or something refers to them. 0 means not said: of a task as its environment, of an
// environment [DefaultKeep]. Else KeepForever, or at least [MinKeep].
type Keep struct {
	Succeeded, Failed, Cancelled time.Duration
}

// KeepAll keeps all finished runs for the same time.
func KeepAll(d time.Duration) Keep { return Keep{Succeeded: d, Failed: d, Cancelled: d} }

// Of returns the time of a terminal status.
func (k Keep) Of(status Status) time.Duration {
	switch status {
	case StatusSucceeded:
		return k.Succeeded
	case StatusFailed:
		return k.Failed
	default:
		return k.Cancelled
	}
}

// Or completes what k does not say with another rule.
func (k Keep) Or(other Keep) Keep {
	said := func(d, or time.Duration) time.Duration {
		if d == 0 {
			return or
		}
		return d
	}
	return Keep{
		Succeeded: said(k.Succeeded, other.Succeeded),
		Failed:    said(k.Failed, other.Failed),
		Cancelled: said(k.Cancelled, other.Cancelled),
	}
}

// Validate returns [ErrConfigurationInvalid] for a time that is too short.
func (k Keep) Validate() error {
	for _, status := range TerminalStatuses() {
		if d := k.Of(status); d != 0 && d != KeepForever && d < MinKeep {
			return &Error{
				Code:    ErrConfigurationInvalid,
				Message: fmt.Sprintf("Keep keeps %s runs for %s", status, d),
				Hint:    fmt.Sprintf("use KeepForever, or at least %s", FormatDuration(MinKeep)),
			}
		}
	}
	return nil
}
