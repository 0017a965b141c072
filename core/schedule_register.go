package core

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/runlane/runlane-go"
)

// schedule is a definition whose runs this runtime makes, with everything about them that does not depend on the
// occurrence.
type schedule struct {
	runlane.Schedule

	prepared runlane.Prepared
	hash     string // of everything that decides when a run is made and which

	recorded atomic.Bool  // a tick of this process found these times in the schedule's record, or put them there
	settled  atomic.Int64 // Unix milliseconds until when the ticks of this process left nothing open
}

// registerSchedule checks a definition, so that a fault is found when the runtime opens and not at a fire time.
func (rt *Runtime) registerSchedule(s runlane.Schedule) error {
	fault := func(option string, err error) error {
		message := fmt.Sprintf("Options.Schedules: schedule %q: %s%s", s.ID, option, messageOf(err))
		return &runlane.Error{Code: runlane.ErrConfigurationInvalid, Message: message, Hint: hintOf(err), Cause: err}
	}
	if err := s.ID.Validate(); err != nil {
		return fault("ID: ", err)
	}
	if _, twice := rt.findSchedule(s.ID); twice {
		return invalidOption("give each a different ID", "Options.Schedules: two schedules have the id %q", s.ID)
	}
	if err := s.When.Validate(); err != nil {
		return fault("When: ", err)
	}
	if err := firstError(checkMisfire(s.Misfire), checkOverlap(s.Overlap)); err != nil {
		return fault("", err)
	}
	prepared, err := s.Call.Prepare()
	if err != nil {
		return fault("Call: ", safeError(err))
	}
	if err := rt.registerQueue(s.Call.Task.Queue); err != nil {
		return fault("Call: ", err)
	}
	c := rt.storage().Capabilities()
	if !c.KeepsSchedules || !c.ClaimsScheduleOccurrences {
		return unsupported(fmt.Sprintf("schedule %q: the storage keeps no schedules", s.ID))
	}
	if prepared.SingletonKey != "" && !c.EnforcesSingleton {
		return unsupported(fmt.Sprintf("schedule %q: the storage does not enforce singleton keys", s.ID))
	}
	at, _ := slices.BinarySearchFunc(rt.schedules, s.ID, compareSchedule)
	rt.schedules = slices.Insert(rt.schedules, at, &schedule{
		Schedule: s,
		prepared: prepared,
		hash:     rt.definitionHash(&s, &prepared),
	})
	return nil
}

// checkScheduledPayloads refuses payloads that the storage cannot hold: each fire would fail. What the codec cannot
// encode now is judged as it is.
func (rt *Runtime) checkScheduledPayloads(ctx context.Context) error {
	if rt.outputs == nil {
		return nil
	}
	for _, s := range rt.schedules {
		stored := s.prepared.Payload
		_, id := occurrenceIDs(rt.environment, s.ID, rt.now())
		if rt.coded {
			of := runlane.BodyRef{Environment: rt.environment, RunID: id, TaskID: s.Call.Task.ID}
			if encoded, _, err := rt.codec.encodeBody(ctx, of, stored); err == nil {
				stored = encoded
			}
		}
		if err := rt.outputs.CheckPayload(id, stored); err != nil {
			return &runlane.Error{
				Code:    runlane.ErrConfigurationInvalid,
				Message: fmt.Sprintf("Options.Schedules: schedule %q: %s", s.ID, messageOf(err)),
				Hint:    hintOf(err),
				Cause:   err,
			}
		}
	}
	return nil
}

func compareSchedule(s *schedule, id runlane.ScheduleID) int { return cmp.Compare(s.ID, id) }

func (rt *Runtime) findSchedule(id runlane.ScheduleID) (*schedule, bool) {
	at, ok := slices.BinarySearchFunc(rt.schedules, id, compareSchedule)
	if !ok {
		return nil, false
	}
	return rt.schedules[at], true
}

// definitionHash is stored, with a hash of the times alone behind a dot. With a codec it leaves out the payload, which
// could be guessed from the hash and does not decide when a run is made.
func (rt *Runtime) definitionHash(s *runlane.Schedule, p *runlane.Prepared) string {
	payload := p.Payload
	if rt.coded {
		payload = nil
	}
	sum := sha256.Sum256(
		fmt.Appendf(
			nil, "%q %q %q %q %+v %q %q %q",
			s.When.String(), s.Call.Task.ID, s.Call.Task.Queue.Name, payload, s.Misfire, s.Overlap, p.ConcurrencyKey,
			p.SingletonKey,
		),
	)
	times := sha256.Sum256([]byte(s.When.String()))
	return hex.EncodeToString(sum[:8]) + "." + hex.EncodeToString(times[:4])
}

// sameTimes reports stored and own definitions that fire at the same times, or of which that is not known.
func (s *schedule) sameTimes(stored string) bool {
	_, theirs, told := strings.Cut(stored, ".")
	_, ours, _ := strings.Cut(s.hash, ".")
	return !told || theirs == ours
}

func checkMisfire(m runlane.Misfire) error {
	switch m.Policy {
	case "", runlane.MisfireLatest, runlane.MisfireSkip, runlane.MisfireCatchUp:
	default:
		return invalidInput("use one of the runlane.Misfire… policies", "Misfire.Policy is the unknown %q", m.Policy)
	}
	switch {
	case m.Tolerance < 0 || m.Tolerance > 0 && m.Policy != runlane.MisfireSkip:
		return invalidInput(
			"a tolerance is for runlane.MisfireSkip, and not negative",
			"Misfire.Tolerance is %s",
			m.Tolerance,
		)
	case m.Limit < 0 || m.Limit > runlane.MaxPageLimit || m.Limit > 0 && m.Policy != runlane.MisfireCatchUp:
		return invalidInput(
			fmt.Sprintf("a limit is for runlane.MisfireCatchUp, and at most %d", runlane.MaxPageLimit),
			"Misfire.Limit is %d",
			m.Limit,
		)
	case m.Window < 0 || m.Window > 0 && m.Policy != runlane.MisfireCatchUp:
		return invalidInput(
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
		return invalidInput("use one of the runlane.Overlap… policies", "Overlap is the unknown %q", o)
	}
}
