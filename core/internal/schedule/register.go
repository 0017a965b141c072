package schedule

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/fail"
)

// Definition is a schedule of this runtime, with everything about its runs that does not depend on the occurrence.
type Definition struct {
	runlane.Schedule

	Prepared runlane.Prepared
	hash     string // of everything that determines when and which run is made

	recorded atomic.Bool  // a tick of this process has seen or written these times in the record
	settled  atomic.Int64 // Unix milliseconds up to which the ticks of this process have settled all occurrences
}

// Add checks a definition when the runtime opens, so that faults do not wait for a fire time. queue accepts the queue
// of its task; safe cleans errors of application code.
func (s *Scheduler) Add(own runlane.Schedule, queue func(runlane.Queue) error, safe func(error) error) error {
	fault := func(option string, err error) error {
		message := fmt.Sprintf("Options.Schedules: schedule %q: %s%s", own.ID, option, fail.Message(err))
		return &runlane.Error{Code: runlane.ErrConfigurationInvalid, Message: message, Hint: fail.Hint(err), Cause: err}
	}
	if err := own.ID.Validate(); err != nil {
		return fault("ID: ", err)
	}
	if _, twice := s.Find(own.ID); twice {
		return fail.Option("give each a different ID", "Options.Schedules: two schedules have the id %q", own.ID)
	}
	if err := own.When.Validate(); err != nil {
		return fault("When: ", err)
	}
	if err := fail.First(checkMisfire(own.Misfire), checkOverlap(own.Overlap)); err != nil {
		return fault("", err)
	}
	prepared, err := own.Call.Prepare()
	if err != nil {
		return fault("Call: ", safe(err))
	}
	if err := queue(own.Call.Task.Queue); err != nil {
		return fault("Call: ", err)
	}
	c := s.Host.Storage().Capabilities()
	if !c.KeepsSchedules || !c.ClaimsScheduleOccurrences {
		return fail.Unsupported(fmt.Sprintf("schedule %q: the storage keeps no schedules", own.ID))
	}
	if prepared.SingletonKey != "" && !c.EnforcesSingleton {
		return fail.Unsupported(fmt.Sprintf("schedule %q: the storage does not enforce singleton keys", own.ID))
	}
	at, _ := slices.BinarySearchFunc(s.definitions, own.ID, compareID)
	s.definitions = slices.Insert(s.definitions, at, &Definition{
		Schedule: own,
		Prepared: prepared,
		hash:     s.definitionHash(&own, &prepared),
	})
	return nil
}

// definitionHash returns the stored hash, followed by a dot and a hash of only the times. With a codec it excludes the
// payload, which could be guessed from the hash and does not affect the times.
func (s *Scheduler) definitionHash(d *runlane.Schedule, p *runlane.Prepared) string {
	payload := p.Payload
	if s.Coded {
		payload = nil
	}
	sum := sha256.Sum256(
		fmt.Appendf(
			nil, "%q %q %q %q %+v %q %q %q",
			d.When.String(), d.Call.Task.ID, d.Call.Task.Queue.Name, payload, d.Misfire, d.Overlap, p.ConcurrencyKey,
			p.SingletonKey,
		),
	)
	times := sha256.Sum256([]byte(d.When.String()))
	return hex.EncodeToString(sum[:8]) + "." + hex.EncodeToString(times[:4])
}

// sameTimes reports whether the stored definition fires at the same times, or its times are unknown.
func (d *Definition) sameTimes(stored string) bool {
	_, theirs, known := strings.Cut(stored, ".")
	_, ours, _ := strings.Cut(d.hash, ".")
	return !known || theirs == ours
}

func checkMisfire(m runlane.Misfire) error {
	switch m.Policy {
	case "", runlane.MisfireLatest, runlane.MisfireSkip, runlane.MisfireCatchUp:
	default:
		return fail.Input("use one of the runlane.Misfire… policies", "Misfire.Policy is the unknown %q", m.Policy)
	}
	switch {
	case m.Tolerance < 0 || m.Tolerance > 0 && m.Policy != runlane.MisfireSkip:
		return fail.Input(
			"a tolerance is for runlane.MisfireSkip, and not negative",
			"Misfire.Tolerance is %s",
			m.Tolerance,
		)
	case m.Limit < 0 || m.Limit > runlane.MaxPageLimit || m.Limit > 0 && m.Policy != runlane.MisfireCatchUp:
		return fail.Input(
			fmt.Sprintf("a limit is for runlane.MisfireCatchUp, and at most %d", runlane.MaxPageLimit),
			"Misfire.Limit is %d",
			m.Limit,
		)
	case m.Window < 0 || m.Window > 0 && m.Policy != runlane.MisfireCatchUp:
		return fail.Input(
			"a window is for runlane.MisfireCatchUp, and not negative",
			"Misfire.Window is %s",
			m.Window,
		)
	}
	return nil
}

func checkOverlap(o runlane.Overlap) error {
	switch o {
	case "", runlane.OverlapAllow, runlane.OverlapForbid, runlane.OverlapReplace, runlane.OverlapQueueLatest:
		return nil
	default:
		return fail.Input("use one of the runlane.Overlap… policies", "Overlap is the unknown %q", o)
	}
}
