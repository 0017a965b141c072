package lanetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Pauses.
func pauseCases() []storageCase {
	return []storageCase{
		{"PausesComeBackAsTheyWerePut", nil, pausesRoundTrip},
		{"OfPutsAtOneVersionOneIsKept", nil, pausesRace},
		{"MalformedPausesAreContractViolationsAndWriteNothing", nil, pausesMalformed},
		{"ChangingACommandOrAResultChangesNoPauses", nil, pausesCopies},
	}
}

func pauseOf(queue runlane.QueueName) lane.Pause {
	return lane.Pause{Queue: queue, Since: noon, Actor: runlane.OperatorActor, Reason: "why – " + string(queue)}
}

// putPauses reports whether the storage keeps pauses.
func (b *bundle) putPauses(p lane.Pauses) bool {
	b.t.Helper()
	version, err := b.storage.PutPauses(b.ctx(), &lane.PutPausesCommand{Environment: b.env, Pauses: p})
	if errors.Is(err, runlane.ErrCapabilityUnsupported) {
		return false
	}
	equal(b.t, "version", p.Version+1, must(version, err)(b.t))
	return true
}

func (b *bundle) pauses() lane.Pauses {
	b.t.Helper()
	exact := must(b.storage.GetPauses(b.ctx(), lane.PausesQuery{Environment: b.env, Exact: true}))(b.t)
	late := must(b.storage.GetPauses(b.ctx(), lane.PausesQuery{Environment: b.env}))(b.t)
	equal(b.t, "pauses of the process that put them", exact, late)
	return exact
}

func pausesRoundTrip(t *testing.T, b *bundle) {
	full := lane.Pause{
		Task: "a task", Since: noon.Add(time.Microsecond), Until: noon.Add(time.Hour),
		Actor:     runlane.Actor{Type: runlane.ActorOperator, ID: "jo"},
		Reason:    strings.Repeat("x", lane.MaxPauseReasonBytes),
		ResumedAt: noon.Add(time.Minute), After: "cursor", WokenAt: noon.Add(2 * time.Minute),
	}
	if !b.putPauses(lane.Pauses{Entries: []lane.Pause{pauseOf("a queue"), full}}) {
		return
	}
	full.Since = noon // cut off at the millisecond
	equal(t, "pauses", lane.Pauses{Version: 1, Entries: []lane.Pause{pauseOf("a queue"), full}}, b.pauses())
	many := lane.Pauses{Version: 1}
	for i := range lane.MaxPauses {
		p := pauseOf(runlane.QueueName("queue-" + strings.Repeat("q", i)[:i%20] + string(rune('A'+i/20))))
		p.Reason = strings.Repeat("x", lane.MaxPauseReasonBytes)
		many.Entries = append(many.Entries, p)
	}
	b.putPauses(many)
	many.Version = 2
	equal(t, "pauses", many, b.pauses())
	b.putPauses(lane.Pauses{Version: 2})
	equal(t, "pauses after the last one", lane.Pauses{Version: 3}, b.pauses())
}

func pausesRace(t *testing.T, b *bundle) {
	put := func(p lane.Pauses) error {
		_, err := b.storage.PutPauses(b.ctx(), &lane.PutPausesCommand{Environment: b.env, Pauses: p})
		return err
	}
	if errors.Is(put(lane.Pauses{Version: 7}), runlane.ErrCapabilityUnsupported) {
		return
	}
	wantConflict(t, put(lane.Pauses{Version: 7}), runlane.ConflictPauses, "")
	for version := range int64(2) {
		won, lost := race(callers, func(i int) (lane.Pauses, error) {
			p := lane.Pauses{Version: version, Entries: []lane.Pause{pauseOf(runlane.QueueName("q" + string(rune('A'+i))))}}
			return p, put(p)
		})
		if len(won) != 1 || len(lost) != callers-1 {
			t.Fatalf("%d of %d puts were kept", len(won), callers)
		}
		for _, err := range lost {
			wantConflict(t, err, runlane.ConflictPauses, "")
		}
		won[0].Version++
		equal(t, "pauses", won[0], b.pauses())
	}
}

func pausesMalformed(t *testing.T, b *bundle) {
	before := lane.Pauses{Entries: []lane.Pause{pauseOf("a queue")}}
	if !b.putPauses(before) {
		return
	}
	before.Version = 1
	changed := func(change func(*lane.Pause)) []lane.Pause {
		p := pauseOf("queue")
		change(&p)
		return []lane.Pause{p}
	}
	tooMany := make([]lane.Pause, lane.MaxPauses+1)
	for i := range tooMany {
		tooMany[i] = pauseOf(runlane.QueueName(strings.Repeat("q", 1+i%20) + string(rune('A'+i/20))))
	}
	for name, entries := range map[string][]lane.Pause{
		"of nothing":    changed(func(p *lane.Pause) { p.Queue = "" }),
		"of both":       changed(func(p *lane.Pause) { p.Task = "task" }),
		"no begin":      changed(func(p *lane.Pause) { p.Since = time.Time{} }),
		"a long reason": changed(func(p *lane.Pause) { p.Reason = strings.Repeat("x", lane.MaxPauseReasonBytes+1) }),
		"a bad task":    changed(func(p *lane.Pause) { p.Queue, p.Task = "", "a:b" }),
		"twice":         {pauseOf("queue"), pauseOf("queue")},
		"too many":      tooMany,
	} {
		_, err := b.storage.PutPauses(b.ctx(), &lane.PutPausesCommand{
			Environment: b.env, Pauses: lane.Pauses{Version: 1, Entries: entries},
		})
		if runlane.CodeOf(err) != runlane.ErrContractViolation {
			t.Errorf("%s: %v, want %q", name, err, runlane.ErrContractViolation)
		}
	}
	equal(t, "pauses", before, b.pauses())
}

func pausesCopies(t *testing.T, b *bundle) {
	put := lane.Pauses{Entries: []lane.Pause{pauseOf("a queue")}}
	if !b.putPauses(put) {
		return
	}
	put.Entries[0].Queue = "scribbled"
	b.pauses().Entries[0].Queue = "scribbled"
	must(b.storage.GetPauses(b.ctx(), lane.PausesQuery{Environment: b.env}))(t).Entries[0].Queue = "scribbled"
	equal(t, "pauses", lane.Pauses{Version: 1, Entries: []lane.Pause{pauseOf("a queue")}}, b.pauses())
}
