package core_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// A run that waits with a slot is written without it, whatever else has to be written first. It gets another.
func TestImport_ReservedRun_LeavesItsSlot(t *testing.T) {
	t.Parallel()
	from := newMover(t, memlane.New())
	id := from.trigger(moveSlow.With("x"), nil)
	from.keep(id, "charge", "1")
	file := from.export()
	to := newMover(t, memlane.New())
	other := to.trigger(moveSlow.With("has the only slot"), nil)
	if _, err := to.Import(t.Context(), bytes.NewReader(file)); err != nil {
		t.Fatal(err)
	}
	want := from.moved()
	want[other] = to.histories()[other]
	if diff := cmp.Diff(want, to.histories()); diff != "" {
		t.Error(diff)
	}
	to.sound()
	if again, err := from.Import(t.Context(), bytes.NewReader(file)); err != nil || again.Written != 0 {
		t.Errorf("an import to where the file is from: %+v, %v", again, err)
	}
	tick(t, to)
	to.drain()
	for _, id := range []runlane.RunID{id, other} {
		if run, err := to.Runs().Get(t.Context(), id); err != nil || run.Status != runlane.StatusSucceeded {
			t.Errorf("%s: %v, %v", id, run, err)
		}
	}
	to.sound()
}

// at makes a mover whose clock is the caller's.
func at(t *testing.T, now *time.Time) *mover {
	t.Helper()
	clock := func() time.Time { return *now }
	l := memlane.New()
	l.Storage = memlane.NewStorage(&memlane.StorageOptions{Now: clock})
	rt := openQuiet(t, l, core.Options{
		World: &core.World{Now: clock},
		Handlers: []runlane.Handler{
			moveGood.Handle(func(context.Context, *runlane.Attempt, string) error { return nil }),
			moveSlow.Handle(func(context.Context, *runlane.Attempt, string) error { return nil }),
		},
	})
	return &mover{Runtime: rt, t: t}
}

// Where a clock was set back, the run that has a key is older by its creation than the one that had it before.
func TestImport_KeysThatWereUsedAgain_AfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC().Truncate(time.Millisecond)
	from := at(t, &now)
	single, key := from.trigger(moveSlow.With("k"), nil), from.trigger(moveGood.With("k"), nil)
	for _, id := range []runlane.RunID{single, key} {
		if _, err := from.Runs().Cancel(t.Context(), id, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := from.IdempotencyKeys().Reset(t.Context(), "move.good", "k"); err != nil {
		t.Fatal(err)
	}
	now = now.Add(-time.Hour)
	again := from.trigger(moveGood.With("k"), nil)
	from.trigger(moveSlow.With("k"), nil)
	to := at(t, &now)
	if _, err := to.Import(t.Context(), bytes.NewReader(from.export())); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(from.moved(), to.histories()); diff != "" {
		t.Error(diff)
	}
	if made, err := to.Trigger(t.Context(), moveGood.With("k"), nil); err != nil || made.Run.ID != again {
		t.Errorf("the key's owner is %+v, want %s: %v", made, again, err)
	}
	to.sound()
}

// The first run was reset while it had its key, the second has lost it to time since: neither owns it where they go.
func TestImport_KeyThatWasReset_AndIsOver(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC().Truncate(time.Millisecond)
	from := at(t, &now)
	from.trigger(moveGood.With("k"), nil)
	from.drain()
	if err := from.IdempotencyKeys().Reset(t.Context(), "move.good", "k"); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	from.trigger(moveGood.With("k"), nil)
	from.drain()
	now = now.Add(48 * time.Hour)
	file := from.export()
	to := at(t, &now)
	for range 2 {
		if _, err := to.Import(t.Context(), bytes.NewReader(file)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(from.moved(), to.histories()); diff != "" {
		t.Error(diff)
	}
	to.sound()
}

// A conflict names the run of the file, and the one that has its key.
func TestImport_AConflict_NamesTheRuns(t *testing.T) {
	t.Parallel()
	from, to := newMover(t, memlane.New()), newMover(t, memlane.New())
	from.trigger(moveSlow.With("k"), &runlane.TriggerOptions{RunID: "of-the-file"})
	to.trigger(moveSlow.With("k"), &runlane.TriggerOptions{RunID: "owner"})
	_, err := to.Import(t.Context(), bytes.NewReader(from.export()))
	if !errors.Is(err, runlane.ConflictSingletonKey) || !strings.Contains(err.Error(), `"of-the-file"`) ||
		!strings.Contains(err.Error(), `"owner"`) {
		t.Error(err)
	}
	to.trigger(moveBad.With("x"), &runlane.TriggerOptions{RunID: "of-the-file"})
	_, err = to.Import(t.Context(), bytes.NewReader(from.export()))
	if !errors.Is(err, runlane.ConflictEventSequence) || !strings.Contains(err.Error(), `"of-the-file"`) {
		t.Error(err)
	}
}

// resummed makes the last line right for lines that were changed.
func resummed(lines []string) string {
	text := strings.Join(lines[:len(lines)-1], "\n") + "\n"
	count := func(kind string) (n int) {
		for _, line := range lines {
			if strings.HasPrefix(line, `{"`+kind+`"`) {
				n++
			}
		}
		return n
	}
	return text + fmt.Sprintf(`{"end":{"runs":%d,"schedules":%d,"tasks":%d,"flows":%d,"sha256":"%x"}}`+"\n",
		count("run"), count("schedule"), count("task"), count("flow"), sha256.Sum256([]byte(text)))
}

// hostile is a file of three runs, whose lines are changed.
type hostile struct{ lines []string }

func (h *hostile) find(part string) int {
	return slices.IndexFunc(h.lines, func(line string) bool { return strings.Contains(line, part) })
}

func (h *hostile) with(line int, from, to string) []string {
	out := slices.Clone(h.lines)
	out[line] = strings.ReplaceAll(out[line], from, to)
	return out
}

func (h *hostile) insert(at int, line string) []string {
	return slices.Insert(slices.Clone(h.lines), at, line)
}

// cases are files, and whether they can be imported.
func (h *hostile) cases() (refused, taken map[string][]string) {
	a, b, c := h.find(`"runId":"run-a"`), h.find(`"runId":"run-b"`), h.find(`"runId":"run-c"`)
	schedule, task, last := h.find(`{"schedule"`), h.find(`{"task"`), len(h.lines)-1
	_, rest, _ := strings.Cut(h.lines[a], `"occurredAt":"`)
	at, _, _ := strings.Cut(rest, `"`)
	named := func(line int, id string) string { return strings.ReplaceAll(h.lines[line], h.lines[line][17:22], id) }
	return map[string][]string{
			"a run twice":                  h.insert(a, h.lines[a]),
			"a run twice, with a change":   h.insert(last, strings.ReplaceAll(h.lines[a], at, "2020-01-01T00:00:00Z")),
			"two owners of a singleton":    h.insert(last, named(c, "run-d")),
			"two owners of a key":          h.insert(last, named(b, "run-d")),
			"an active run without key":    h.with(b, `"ownsIdempotencyKey":true,`, ``),
			"no run id":                    h.with(a, "run-a", "run a\\u0000:"),
			"no queue":                     h.with(a, `"queue":"default"`, `"queue":""`),
			"no queue's name":              h.with(a, `"queue":"default"`, `"queue":"a:b"`),
			"no task's name":               h.with(a, `"taskId":"move.bad"`, `"taskId":"wo\nrk"`),
			"no key":                       h.with(b, `"idempotencyKey":"b"`, `"idempotencyKey":"\u0000"`),
			"no schedule's name":           h.with(schedule, `"scheduleId":"daily"`, `"scheduleId":"da:ily\u0000"`),
			"a schedule twice":             h.insert(schedule, h.lines[schedule]),
			"no task's name in its record": h.with(task, `"ID":"move.bad"`, `"ID":"\u0000:"`),
			"a task twice":                 h.insert(task, h.lines[task]),
			"an unknown event":             h.with(a, "run.delivery_requested", "run.something"),
			"a delivery to another queue":  h.with(b, `"queue":"default","availableAt"`, `"queue":"other","availableAt"`),
			"two things on a line":         h.insert(1, strings.TrimSuffix(h.lines[task], "}")+","+named(a, "run-z")[1:]),
			"deep":                         h.insert(1, `{"x":`+strings.Repeat("[", 20000)),
			"the zero time":                h.with(a, at, "0001-01-01T00:00:00Z"),
		}, map[string][]string{
			"as it was":              h.lines,
			"before 1970":            h.with(a, at, "1969-01-01T00:00:00Z"),
			"a payload that is none": h.with(a, `"payload":"`, `"payload":"AAAA`),
			"a schedule's version":   h.with(schedule, `"version":1`, `"version":-1`),
		}
}

// A file whose sums are right, and whose lines are not, writes nothing. What is imported can be exported again.
func TestImport_HostileFiles(t *testing.T) {
	t.Parallel()
	from := newMover(t, memlane.New())
	from.trigger(moveBad.With("a"), &runlane.TriggerOptions{RunID: "run-a", Delay: time.Hour})
	from.trigger(moveGood.With("b"), &runlane.TriggerOptions{RunID: "run-b"})
	from.trigger(moveSlow.With("c"), &runlane.TriggerOptions{RunID: "run-c"})
	tick(t, from)
	h := &hostile{strings.Split(strings.TrimSuffix(string(from.export()), "\n"), "\n")}
	original := resummed(h.lines)
	refused, taken := h.cases()
	for name, lines := range refused {
		text := resummed(lines)
		to := newMover(t, memlane.New())
		if _, err := to.Import(t.Context(), strings.NewReader(text)); !errors.Is(err, runlane.ErrValidationFailed) || text == original {
			t.Errorf("%s: %v", name, err)
		}
		schedules, err := to.Lane().Storage.ListSchedules(t.Context(), &lane.PageQuery{Environment: to.Environment()})
		if runs := to.histories(); err != nil || len(runs) > 0 || len(schedules.Items) > 0 {
			t.Errorf("%s: %d runs and schedules %+v were written, %v", name, len(runs), schedules, err)
		}
	}
	for name, lines := range taken {
		text := resummed(lines)
		if name != "as it was" && text == original {
			t.Errorf("%s: nothing is changed", name)
		}
		to := newMover(t, memlane.New())
		for range 2 {
			if _, err := to.Import(t.Context(), strings.NewReader(text)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		to.sound()
		file := to.export()
		for _, line := range lines {
			if strings.HasPrefix(line, `{"run"`) && !bytes.Contains(file, reservation.ReplaceAll([]byte(line), nil)) {
				t.Errorf("%s: a line is lost or changed: %.300s", name, line)
			}
		}
	}
}

// CheckImport needs no lane.
func TestCheckImport(t *testing.T) {
	t.Parallel()
	file := filled(t).export()
	if environment, err := core.CheckImport(bytes.NewReader(file)); err != nil || environment != runlane.DefaultEnvironment {
		t.Errorf("%q, %v", environment, err)
	}
	if _, err := core.CheckImport(bytes.NewReader(file[:len(file)/2])); !errors.Is(err, runlane.ErrValidationFailed) {
		t.Error(err)
	}
	if _, err := core.CheckImport(failing{}); err == nil || errors.Is(err, runlane.ErrValidationFailed) {
		t.Errorf("a file that cannot be read: %v", err)
	}
}

// failing cannot be read.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

// cramped is a storage with little room, as a table's item has.
type cramped struct{ lane.Storage }

func (cramped) CheckPayload(run runlane.RunID, payload []byte) error {
	if len(payload) > 100 {
		return &runlane.Error{Code: runlane.ErrValidationFailed, Message: "the payload is too large", RunID: run}
	}
	return nil
}

func (s cramped) CheckOutput(run runlane.RunID, output []byte) error {
	return s.CheckPayload(run, output)
}

// What only this storage refuses is found out before the first run is written: each would be active on both lanes.
func TestImport_WhatTheStorageHasNoRoomFor_WritesNothing(t *testing.T) {
	t.Parallel()
	task := runlane.NewTask[string]("work", nil)
	from := openStranger(t, memlane.New(), task.Handle(func(context.Context, *runlane.Attempt, string) error { return nil }))
	for _, payload := range []string{"small", strings.Repeat("large", 100), "small"} {
		trigger(t, from, task.With(payload))
	}
	var file bytes.Buffer
	if _, err := from.Export(t.Context(), &file, nil); err != nil {
		t.Fatal(err)
	}
	l := memlane.New()
	l.Storage = cramped{l.Storage}
	to := openStranger(t, l)
	_, err := to.Import(t.Context(), bytes.NewReader(file.Bytes()))
	if !errors.Is(err, runlane.ErrValidationFailed) || !strings.Contains(err.Error(), "the payload is too large; nothing was written") {
		t.Errorf("%v", err)
	}
	for run, err := range to.Runs().All(t.Context(), nil) {
		t.Errorf("%v was written, %v", run, err)
	}
}
