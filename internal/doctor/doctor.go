// Package doctor checks whether a runtime's environment works, for the command line, the API and the console.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/causes"
	"github.com/runlane/runlane-go/internal/shown"
	"github.com/runlane/runlane-go/lane"
)

type Check struct {
	Name string
	// Run returns a text if all is well, or an error with the problem as its message and the fix as its hint. It writes
	// nothing and ends with the context.
	Run func(ctx context.Context, rt *core.Runtime) (detail string, err error)
}

// Warning is a problem that does not prevent anything from working.
type Warning struct{ Message, Fix string }

func (w *Warning) Error() string { return w.Message }

const (
	OK      = "ok"
	Warned  = "warning"
	Failing = "failed"
)

// CheckTime limits each check, except of every run.
const CheckTime = 20 * time.Second

// sampled is the default number of histories to check.
const sampled = 20

func FindingOf(check, detail string, err error) shown.Finding {
	if mild, ok := errors.AsType[*Warning](err); ok {
		return shown.Finding{Check: check, Status: Warned, Detail: mild.Message, Fix: mild.Fix}
	}
	f := shown.Finding{Check: check, Status: OK, Detail: detail}
	if err == nil {
		return f
	}
	f.Status, f.Detail, f.Code = Failing, err.Error(), "failed"
	if e, ok := errors.AsType[*runlane.Error](err); ok {
		f.Detail, f.Code, f.Fix = e.Message, string(e.Code), e.Hint
		f.Cause = strings.Join(causes.Omitted(e.Message, e.Cause), "; ")
	}
	return f
}

// Look runs all checks, on runs by a sample, in the order of the command line. It only returns the error of ctx.
func Look(ctx context.Context, rt *core.Runtime) (findings []shown.Finding, err error) {
	try := func(checks []Check) error {
		for _, check := range checks {
			bounded, cancel := context.WithTimeout(ctx, CheckTime)
			detail, err := check.Run(bounded, rt)
			cancel()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			findings = append(findings, FindingOf(check.Name, detail, err))
		}
		return nil
	}
	if err := try(Standard(rt, false)); err != nil {
		return nil, err
	}
	places, err := Examine(ctx, rt)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		places = append(places, FindingOf("file", "", err))
	}
	findings = append(findings, places...)
	findings = append(findings, Bodies(ctx, rt, false)...)
	if err := try(Invariants(sampled, false, func(int) {})); err != nil {
		return nil, err
	}
	return findings, nil
}

// Examine returns the storage's findings about the place of its state, which may take long. It returns none if the
// storage cannot examine it.
func Examine(ctx context.Context, rt *core.Runtime) (findings []shown.Finding, err error) {
	examiner, ok := lane.As[stateExaminer](rt.Lane().Storage)
	if !ok {
		return nil, nil
	}
	found, err := examiner.Examine(ctx)
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		finding := shown.Finding{Check: f.Check, Status: OK, Detail: f.Detail, Fix: f.Fix}
		switch {
		case f.Broken:
			finding.Status, finding.Code = Failing, string(runlane.ErrStorageUnavailable)
		case f.Fix != "":
			finding.Status = Warned
		}
		findings = append(findings, finding)
	}
	return findings, nil
}

// FunctionTimeouts are the timeouts in seconds for which the template has a visibility timeout.
var FunctionTimeouts = []int{30, 60, 120, 300, 600, 900}

// QueuesInUse returns the queues in use; with an error, those known without a request.
func QueuesInUse(ctx context.Context, rt *core.Runtime) ([]core.QueueState, error) {
	states, err := rt.Queues().InUse(ctx)
	if err != nil {
		return rt.Queues().List(), err
	}
	return states, nil
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func instant(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05Z") }
