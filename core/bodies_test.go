package core_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/apart"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// brokenBodies is a store whose calls fail, or whose bodies are others, as a test wants.
type brokenBodies struct {
	lane.BodyStore

	fault  error // of each call
	change func([]byte) []byte
	stays  bool // bodies are not removed
}

func (s *brokenBodies) Delete(ctx context.Context, keys ...string) error {
	if s.stays {
		return errors.New("no network")
	}
	return s.BodyStore.Delete(ctx, keys...)
}

func (s *brokenBodies) Put(ctx context.Context, key string, body []byte) error {
	if s.fault != nil {
		return s.fault
	}
	return s.BodyStore.Put(ctx, key, body)
}

func (s *brokenBodies) Get(ctx context.Context, key string) ([]byte, error) {
	body, err := s.BodyStore.Get(ctx, key)
	if s.change != nil {
		body = s.change(body)
	}
	return body, errors.Join(s.fault, err)
}

// largeTask echoes a text that is kept apart.
var (
	largeTask = runlane.NewTask[string]("large", nil)
	largeText = strings.Repeat("x", 5<<10)
)

type largeWorld struct {
	*core.Runtime

	t       *testing.T
	storage *memlane.Storage
	bodies  *brokenBodies
	ahead   time.Duration
}

func newLargeWorld(t *testing.T, options core.Options) *largeWorld {
	t.Helper()
	w := &largeWorld{t: t, storage: memlane.NewStorage(nil), bodies: &brokenBodies{BodyStore: memlane.NewBodyStore()}}
	l, err := lane.New(w.storage, scenarios.NewScriptedTransport(), &lane.Options{
		Bodies: &lane.Bodies{Store: w.bodies, Above: 1 << 10},
	})
	if err != nil {
		t.Fatal(err)
	}
	options.Handlers = append(options.Handlers, largeTask.Handle(
		func(_ context.Context, a *runlane.Attempt, text string) error { return a.SetOutput(text) }))
	options.World = &core.World{Now: func() time.Time { return time.Now().Add(w.ahead) }}
	w.Runtime = openQuiet(t, l, options)
	return w
}

// listed returns the keys of all bodies.
func (w *largeWorld) listed() (keys []string) {
	w.t.Helper()
	page, err := w.bodies.List(w.t.Context(), "", "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, body := range page {
		keys = append(keys, body.Key)
	}
	return keys
}

func (w *largeWorld) trigger(text string) runlane.RunID {
	w.t.Helper()
	result, err := w.Trigger(w.t.Context(), largeTask.With(text), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return result.Run.ID
}

func (w *largeWorld) deliver(id runlane.RunID) (*core.DeliveryResult, error) {
	return w.ExecuteDelivery(w.t.Context(), lane.Wakeup{RunKey: lane.RunKey{Environment: "default", RunID: id}}, nil)
}

func (w *largeWorld) finish(text string) runlane.RunID {
	w.t.Helper()
	id := w.trigger(text)
	if result, err := w.deliver(id); err != nil || result.Run.Status != runlane.StatusSucceeded {
		w.t.Fatalf("%+v, %v", result, err)
	}
	return id
}

func TestBodies_ReaderGetsThemWhole_OrTheirSizeAndHash(t *testing.T) {
	t.Parallel()
	w := newLargeWorld(t, core.Options{})
	id := w.finish(largeText)
	want, err := json.Marshal(largeText)
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Runs().Get(t.Context(), id)
	if err != nil || !bytes.Equal(run.Payload, want) || !bytes.Equal(run.Output, want) {
		t.Fatalf("%+v, %v", run, err)
	}
	about := runlane.BodyApart{Bytes: int64(len(want)), SHA256: lane.NewReference(time.Now(), want).SHA256}
	if *run.Sealed != (runlane.Sealed{PayloadApart: about, OutputApart: about}) {
		t.Errorf("sealed: %+v", run.Sealed)
	}
	left, err := w.Runs().Get(apart.Leave(t.Context()), id)
	if err != nil || left.Payload != nil || left.Output != nil || *left.Sealed != *run.Sealed || left.PayloadError() != nil {
		t.Errorf("%+v, %v", left, err)
	}
	raw, err := w.storage.GetRun(t.Context(), lane.RunKey{Environment: "default", RunID: id})
	if err != nil || len(raw.Payload) > 200 || !lane.IsReference(raw.Payload) || !lane.IsReference(raw.Output) {
		t.Errorf("stored %d bytes, %v", len(raw.Payload), err)
	}
	if keys := w.listed(); len(keys) != 1 { // of one run and one content
		t.Errorf("bodies: %v", keys)
	}
}

func TestBodies_LeaveWithTheirRun_AndOrphansAreFound(t *testing.T) {
	t.Parallel()
	w := newLargeWorld(t, core.Options{})
	for n := range 5 {
		w.finish(fmt.Sprint(n, largeText))
	}
	w.finish("small")
	w.ahead = 48 * time.Hour
	stays := w.trigger("stays" + largeText)
	orphan := lane.NewReference(time.UnixMilli(1), []byte(largeText))
	for _, id := range []runlane.RunID{"run_absent", stays} { // the latter of an earlier creation
		if err := w.bodies.Put(t.Context(), orphan.Key(lane.RunKey{Environment: "default", RunID: id}), []byte(largeText)); err != nil {
			t.Fatal(err)
		}
	}
	pruned, err := w.Runs().Prune(t.Context(), &core.PruneOptions{OlderThan: time.Hour})
	if err != nil || pruned.Changed != 6 {
		t.Fatalf("%+v, %v", pruned, err)
	}
	if keys := w.listed(); len(keys) != 3 {
		t.Fatalf("left: %v", keys)
	}
	found, err := w.Runs().OrphanedBodies(t.Context(), nil)
	if want := (core.OrphanedBodies{Seen: 3, Orphans: 2, Bytes: 2 * int64(len(largeText))}); err != nil || *found != want {
		t.Fatalf("%+v, %v", found, err)
	}
	found, err = w.Runs().OrphanedBodies(t.Context(), &core.OrphanOptions{Remove: true})
	if err != nil || found.Removed != 2 || len(w.listed()) != 1 {
		t.Fatalf("%+v, %v, %v", found, err, w.listed())
	}
	if run, err := w.Runs().Get(t.Context(), stays); err != nil || run.PayloadError() != nil {
		t.Errorf("%+v, %v", run, err)
	}
}

func TestBodies_YoungOrphan_MayStillGetItsRun(t *testing.T) {
	t.Parallel()
	w := newLargeWorld(t, core.Options{})
	key := lane.NewReference(time.Now(), []byte(largeText)).Key(lane.RunKey{Environment: "default", RunID: "run_soon"})
	if err := w.bodies.Put(t.Context(), key, []byte(largeText)); err != nil {
		t.Fatal(err)
	}
	if found, err := w.Runs().OrphanedBodies(t.Context(), nil); err != nil || found.Seen != 1 || found.Orphans != 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestBodies_StoreThatFails_CommitsNothing(t *testing.T) {
	t.Parallel()
	w := newLargeWorld(t, core.Options{})
	w.bodies.fault = errors.New("no network")
	_, err := w.Trigger(t.Context(), largeTask.With(largeText), &runlane.TriggerOptions{RunID: "run_1"})
	if !errors.Is(err, runlane.ErrStorageUnavailable) {
		t.Fatal(err)
	}
	if _, err := w.Runs().Get(t.Context(), "run_1"); !errors.Is(err, runlane.ErrRunNotFound) {
		t.Fatal(err)
	}
	w.bodies.fault = nil
	id := w.trigger(largeText)
	w.bodies.fault = errors.New("no network")
	if result, err := w.deliver(id); !errors.Is(err, runlane.ErrStorageUnavailable) {
		t.Errorf("%+v, %v", result, err)
	}
}

// dyingStorage makes no commits. It tells of the moment before each write.
type dyingStorage struct {
	lane.Storage

	before func(method string)
}

func (s *dyingStorage) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	s.before("append")
	return nil, &runlane.Error{Code: runlane.ErrStorageUnavailable, Message: "the process dies here"}
}

func (s *dyingStorage) PruneRuns(ctx context.Context, c *lane.PruneCommand) (*lane.PruneProgress, error) {
	s.before("prune")
	return s.Storage.PruneRuns(ctx, c)
}

// A death between the two writes leaves a body without a run, and never a run without its body.
func TestBodies_DeathInBetween_LeavesOrphans(t *testing.T) {
	t.Parallel()
	w := newLargeWorld(t, core.Options{})
	w.finish(largeText)
	dies := &dyingStorage{Storage: w.storage}
	l, err := lane.New(dies, scenarios.NewScriptedTransport(), &lane.Options{Bodies: &lane.Bodies{Store: w.bodies, Above: 1 << 10}})
	if err != nil {
		t.Fatal(err)
	}
	rt := openQuiet(t, l, core.Options{World: &core.World{Now: func() time.Time { return time.Now().Add(48 * time.Hour) }}})
	met := map[string]int{}
	dies.before = func(method string) { met[method] = len(w.listed()) }
	_, err = rt.Trigger(t.Context(), largeTask.With("another"+largeText), &runlane.TriggerOptions{RunID: "run_never"})
	if !errors.Is(err, runlane.ErrStorageUnavailable) {
		t.Fatal(err)
	}
	w.bodies.stays = true // a death before they are removed
	if pruned, err := rt.Runs().Prune(t.Context(), &core.PruneOptions{OlderThan: time.Hour}); err != nil || pruned.Changed != 1 {
		t.Fatalf("%+v, %v", pruned, err)
	}
	if met["append"] != 2 || met["prune"] != 2 {
		t.Errorf("bodies at the writes of the storage: %v", met)
	}
	if found, err := rt.Runs().OrphanedBodies(t.Context(), nil); err != nil || found.Orphans != 2 {
		t.Errorf("%+v, %v", found, err)
	}
}

// A body that is lost or changed is no reason to lose the run: it is handed back, and can be cancelled.
func TestBodies_MissingOrChanged_HandTheRunBack(t *testing.T) {
	t.Parallel()
	w := newLargeWorld(t, core.Options{})
	id := w.trigger(largeText)
	wants := func(what string) {
		t.Helper()
		if result, err := w.deliver(id); !errors.Is(err, runlane.ErrPayloadUnreadable) || !strings.Contains(err.Error(), what) {
			t.Errorf("%+v, %v", result, err)
		}
	}
	w.bodies.change = func(body []byte) []byte { return body[1:] }
	wants("other bytes")
	w.bodies.change = nil
	if err := w.bodies.Delete(t.Context(), w.listed()...); err != nil {
		t.Fatal(err)
	}
	wants("missing")
	bare := openOn(t, w.storage, scenarios.NewScriptedTransport())
	if run, err := bare.Runs().Get(t.Context(), id); err != nil ||
		!strings.Contains(fmt.Sprint(run.PayloadError()), "no store of bodies") || run.Sealed.PayloadApart.Bytes == 0 {
		t.Errorf("%+v, %v", run, err)
	}
	if _, err := w.Runs().Cancel(t.Context(), id, nil); err != nil {
		t.Fatal(err)
	}
	if run, err := w.Runs().Get(t.Context(), id); err != nil || run.Status != runlane.StatusCancelled {
		t.Errorf("%+v, %v", run, err)
	}
}

// Bodies above runlane.MaxPayloadBytes need a lane that keeps them apart and a runtime that allows them.
func TestBodies_Bound(t *testing.T) {
	t.Parallel()
	ctx, beyond := t.Context(), strings.Repeat("x", runlane.MaxPayloadBytes)
	var step, output, call, checkpoint error
	every := runlane.NewTask[string]("every", nil)
	handler := every.Handle(func(ctx context.Context, a *runlane.Attempt, _ string) error {
		_, step = runlane.Step(ctx, a, "s", func(context.Context) (string, error) { return beyond, nil })
		output = a.SetOutput(beyond)
		_, call = a.Trigger(ctx, largeTask.With(beyond), nil)
		checkpoint = a.Checkpoint(ctx, "c", beyond)
		return nil
	})
	for most, want := range map[int]error{0: runlane.ErrValidationFailed, 8 << 20: nil} {
		w := newLargeWorld(t, core.Options{MaxBodyBytes: most, Handlers: []runlane.Handler{handler}})
		if _, err := w.RunNow(ctx, every.With(""), nil); err != nil {
			t.Fatal(err)
		}
		_, trigger := w.Trigger(ctx, largeTask.With(beyond), nil)
		signal := w.Signal(ctx, w.trigger("waits"), runlane.NewRawSignal("n", json.RawMessage(`"`+beyond+`"`)), nil)
		for what, err := range map[string]error{
			"step": step, "output": output, "call": call, "checkpoint": checkpoint, "trigger": trigger, "signal": signal,
		} {
			if !errors.Is(err, want) {
				t.Errorf("%s of %d bytes with MaxBodyBytes %d: %v", what, len(beyond)+2, most, err)
			}
		}
	}
	for _, o := range []core.Options{{MaxBodyBytes: -1}, {MaxBodyBytes: runlane.MaxBodyBytes + 1}, {MaxBodyBytes: 8 << 20}} {
		_, err := core.Open(ctx, newLane(t, memlane.NewStorage(nil), scenarios.NewScriptedTransport()), &o)
		if !errors.Is(err, runlane.ErrConfigurationInvalid) {
			t.Errorf("%d without a store of bodies: %v", o.MaxBodyBytes, err)
		}
	}
}

// An export has whole bodies, and an import puts them into the other lane's store, encoded or not.
func TestBodies_MoveWithTheirRuns(t *testing.T) {
	t.Parallel()
	for name, codec := range map[string]runlane.Codec{"plain": nil, "encoded": &scriptedCodec{key: "k"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := newLargeWorld(t, core.Options{Codec: codec}), newLargeWorld(t, core.Options{Codec: codec})
			ended, waits := from.finish(largeText), from.trigger("waits"+largeText)
			var file bytes.Buffer
			if _, err := from.Export(t.Context(), &file, nil); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := to.Import(t.Context(), bytes.NewReader(file.Bytes())); err != nil {
					t.Fatal(err)
				}
			}
			if got := to.listed(); len(got) < 2 {
				t.Errorf("bodies: %v", got)
			}
			for _, id := range []runlane.RunID{ended, waits} {
				was, wasErr := from.Runs().Get(t.Context(), id)
				is, isErr := to.Runs().Get(t.Context(), id)
				if err := errors.Join(wasErr, isErr, is.PayloadError()); err != nil || !bytes.Equal(was.Payload, is.Payload) ||
					!bytes.Equal(was.Output, is.Output) {
					t.Errorf("%s: %v, %v", id, is, err)
				}
			}
		})
	}
}
