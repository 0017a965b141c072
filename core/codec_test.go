package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

// scriptedCodec turns bytes around, and does what a test wants.
type scriptedCodec struct {
	key    string
	refs   []runlane.BodyRef // of encodings
	encode func() error
	decode func() error
}

func (c *scriptedCodec) Encode(_ context.Context, of runlane.BodyRef, plain []byte) ([]byte, string, error) {
	c.refs = append(c.refs, of)
	if c.encode != nil {
		if err := c.encode(); err != nil {
			return nil, "", err
		}
	}
	return turned(plain), c.key, nil
}

func (c *scriptedCodec) Decode(_ context.Context, _ runlane.BodyRef, key string, stored []byte) ([]byte, error) {
	if c.decode != nil {
		if err := c.decode(); err != nil {
			return nil, err
		}
	}
	if key == "" {
		return stored, nil
	}
	return turned(stored), nil
}

func turned(b []byte) []byte {
	out := bytes.Clone(b)
	for i := range out {
		out[i] ^= 0xff
	}
	return out
}

func openCoded(t *testing.T, codec runlane.Codec, hooks ...core.Hook) (*core.Runtime, *memlane.Storage) {
	t.Helper()
	storage := memlane.NewStorage(nil)
	l := newLane(t, storage, scenarios.NewScriptedTransport())
	rt := openQuiet(t, l, core.Options{
		Codec: codec, Hooks: hooks,
		Handlers: []runlane.Handler{codedTask.Handle(func(_ context.Context, a *runlane.Attempt, n int) error { return a.SetOutput(n) })},
	})
	return rt, storage
}

var codedTask = runlane.NewTask[int]("coded", nil)

func TestCodec_IsToldWhichBodyItEncodes(t *testing.T) {
	t.Parallel()
	codec := &scriptedCodec{key: "k"}
	rt, storage := openCoded(t, codec)
	result, err := rt.RunNow(t.Context(), codedTask.With(42), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []runlane.BodyRef{
		{Environment: "default", RunID: result.Run.ID, TaskID: "coded"},
		{Environment: "default", RunID: result.Run.ID, Output: true},
	}
	if fmt.Sprint(codec.refs) != fmt.Sprint(want) {
		t.Errorf("encoded %+v, want %+v", codec.refs, want)
	}
	raw, err := storage.GetRun(t.Context(), lane.RunKey{Environment: "default", RunID: result.Run.ID})
	if err != nil || string(raw.Payload) != "\x01\x01k"+string(turned([]byte("42"))) || string(raw.Output) != string(raw.Payload) {
		t.Errorf("stored are %q and %q, %v", raw.Payload, raw.Output, err)
	}
}

// What a caller, a handler and a hook see of a run that is being made is plain.
func TestCodec_WhatCommitsReturn_IsPlain(t *testing.T) {
	t.Parallel()
	var seen atomic.Int32
	rt, _ := openCoded(t, &scriptedCodec{key: "k"}, func(c core.Change) {
		for _, record := range c.Events {
			if body, ok := record.Body.(*runlane.RunCreated); ok && string(body.Payload) == "42" {
				seen.Add(1)
			}
			if body, ok := record.Body.(*runlane.RunSucceeded); ok && string(body.Output) == "42" {
				seen.Add(1)
			}
		}
	})
	result, err := rt.Trigger(t.Context(), codedTask.With(42), nil)
	if err != nil || string(result.Run.Payload) != "42" || result.Run.Sealed.PayloadKey != "k" {
		t.Fatalf("%+v, %v", result, err)
	}
	delivered, err := rt.ExecuteDelivery(t.Context(), lane.Wakeup{RunKey: lane.RunKey{Environment: "default", RunID: result.Run.ID}}, nil)
	if err != nil || string(delivered.Run.Output) != "42" || string(delivered.Run.Payload) != "42" {
		t.Fatalf("%+v, %v", delivered, err)
	}
	if err := rt.Close(t.Context()); err != nil { // hooks have seen everything then
		t.Fatal(err)
	}
	if seen.Load() != 2 {
		t.Errorf("%d events were seen with their bodies", seen.Load())
	}
}

// writesStorage says that it commits the application's writes, and keeps those of the last commit.
type writesStorage struct {
	lane.Storage

	writes runlane.Writes
}

func (s *writesStorage) Capabilities() lane.StorageCapabilities {
	c := s.Storage.Capabilities()
	c.CommitsWrites = true
	return c
}

func (s *writesStorage) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	s.writes = c.Writes
	given := *c
	given.Writes = nil
	return s.Storage.AppendRunEvents(ctx, &given)
}

type someWrites struct{ runlane.Writes }

// The application's own writes are committed with the run that a codec encodes, or whose payload is kept apart.
func TestCodec_LeavesTheApplicationsWritesInTheCommit(t *testing.T) {
	t.Parallel()
	storage := &writesStorage{Storage: memlane.NewStorage(nil)}
	l, err := lane.New(storage, scenarios.NewScriptedTransport(), &lane.Options{
		Bodies: &lane.Bodies{Store: memlane.NewBodyStore(), Above: 1 << 10},
	})
	if err != nil {
		t.Fatal(err)
	}
	rt := openQuiet(t, l, core.Options{Codec: &scriptedCodec{key: "k"}})
	if _, err := rt.Trigger(t.Context(), largeTask.With(largeText), &runlane.TriggerOptions{Writes: someWrites{}}); err != nil {
		t.Fatal(err)
	}
	if storage.writes != (someWrites{}) {
		t.Errorf("the commit has the writes %v", storage.writes)
	}
}

// Results of steps pass the codec, each under its name. What another process encoded and this one cannot open is listed without it.
func TestCodec_Records(t *testing.T) {
	t.Parallel()
	codec := &scriptedCodec{key: "k"}
	raw := memlane.NewStorage(nil)
	f := lanetest.NewFactory("default")
	made, err := raw.AppendRunEvents(t.Context(), f.Creation(t, time.Now(), lanetest.RunOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	keep := &lane.KeepCommand{
		RunKey:    lane.RunKey{Environment: "default", RunID: made.Run.ID},
		CreatedAt: made.Run.CreatedAt,
		Record:    lane.StepRecord{Name: "charge", Kind: runlane.StepKindStep, Attempt: 1, At: time.Now(), Result: []byte("42")},
	}
	list := func(s lane.Storage) lane.StepRecord {
		t.Helper()
		page, err := s.ListRecords(t.Context(), &lane.RecordQuery{
			PageQuery: lane.PageQuery{Environment: "default"}, RunID: keep.RunID, CreatedAt: keep.CreatedAt,
		})
		if err != nil || len(page.Items) != 1 {
			t.Fatal(page, err)
		}
		return page.Items[0]
	}
	coded := core.NewCodedStorage(raw, codec)
	for range 2 {
		if kept, err := coded.KeepRecord(t.Context(), keep); err != nil || string(kept.Result) != "42" {
			t.Errorf("%+v, %v", kept, err)
		}
	}
	want := runlane.BodyRef{Environment: "default", RunID: keep.RunID, Kind: runlane.BodyStep, Name: "charge"}
	if codec.refs[0] != want {
		t.Errorf("encoded %+v, want %+v", codec.refs[0], want)
	}
	if r := list(coded); string(r.Result) != "42" || r.Fault != "" {
		t.Errorf("listed %+v", r)
	}
	if r := list(raw); string(r.Result) != "\x01\x01k"+string(turned([]byte("42"))) {
		t.Errorf("stored %q", r.Result)
	}
	if r := list(core.NewCodedStorage(raw, nil)); r.Result != nil || !strings.Contains(r.Fault, `key "k"`) {
		t.Errorf("without the codec: %+v", r)
	}
	codec.encode = func() error { return errors.New("no key service") }
	if _, err := coded.KeepRecord(t.Context(), keep); !errors.Is(err, runlane.ErrStorageUnavailable) {
		t.Errorf("a codec that fails: %v", err)
	}
}

// commandStorage keeps the last command to append.
type commandStorage struct {
	*memlane.Storage
	got *lane.AppendCommand
}

func (s *commandStorage) AppendRunEvents(_ context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	s.got = c
	return &lane.Commit{}, nil
}

func (s *commandStorage) SendSignal(_ context.Context, c *lane.SignalCommand) (*lane.Commit, error) {
	s.got = c.Resume
	return &lane.Commit{}, nil
}

func (s *commandStorage) NotifyEnd(_ context.Context, c *lane.NotifyCommand) (*lane.Commit, error) {
	s.got = c.Resume
	return &lane.Commit{}, nil
}

// Without the application's writes there would be a run without its booking.
func TestCodec_PassesTheWholeCommand(t *testing.T) {
	t.Parallel()
	storage := &commandStorage{Storage: memlane.NewStorage(nil)}
	coded := core.NewCodedStorage(storage, &scriptedCodec{key: "k"})
	command := lanetest.NewFactory("default").Creation(t, time.Now(), lanetest.RunOptions{})
	command.LeaseToken, command.Outbox.Published, command.Writes = "token", true, writes{}
	command.Look, command.Flow = &lane.Look{Signals: 1}, &lane.FlowCheck{}
	for i, value := 0, reflect.ValueOf(*command); i < value.NumField(); i++ {
		if value.Field(i).IsZero() {
			t.Fatalf("the test has no %s", value.Type().Field(i).Name)
		}
	}
	for name, send := range map[string]func() error{
		"append": func() error { _, err := coded.AppendRunEvents(t.Context(), command); return err },
		"signal": func() error {
			_, err := coded.SendSignal(t.Context(), &lane.SignalCommand{Resume: command})
			return err
		},
		"notify": func() error {
			_, err := coded.NotifyEnd(t.Context(), &lane.NotifyCommand{Resume: command})
			return err
		},
	} {
		if err := send(); err != nil {
			t.Fatal(name, err)
		}
		got := *storage.got
		if string(got.Events[0].Body.(*runlane.RunCreated).Payload) == string(command.Projected.Payload) {
			t.Errorf("%s: the payload is plain", name)
		}
		if got.Transition = command.Transition; !reflect.DeepEqual(&got, command) {
			t.Errorf("%s: the storage got %+v of %+v", name, got, command)
		}
	}
}

func TestCodec_ThatFailsToEncode_FailsTheTriggerAndWritesNothing(t *testing.T) {
	t.Parallel()
	typed := &runlane.Error{Code: runlane.ErrInternal, Message: "typed"}
	for name, c := range map[string]struct {
		codec *scriptedCodec
		code  runlane.ErrorCode
	}{
		"a foreign error":     {&scriptedCodec{key: "k", encode: func() error { return errors.New("out of reach") }}, runlane.ErrStorageUnavailable},
		"an error with code":  {&scriptedCodec{key: "k", encode: func() error { return typed }}, runlane.ErrInternal},
		"no key":              {&scriptedCodec{}, runlane.ErrConfigurationInvalid},
		"a key that is long":  {&scriptedCodec{key: strings.Repeat("k", 65)}, runlane.ErrConfigurationInvalid},
		"a key of no letters": {&scriptedCodec{key: "\x1b"}, runlane.ErrConfigurationInvalid},
	} {
		rt, _ := openCoded(t, c.codec)
		_, err := rt.Trigger(t.Context(), codedTask.With(1), nil)
		if runlane.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
		page, err := rt.Runs().List(t.Context(), nil)
		if err != nil || len(page.Items) != 0 {
			t.Errorf("%s: %d runs, %v", name, len(page.Items), err)
		}
	}
}

// A key service that is out of reach is an outage like the storage's: nothing is decided by it.
func TestCodec_ThatFailsToDecode_FailsTheReadAndHandsBack(t *testing.T) {
	t.Parallel()
	codec := &scriptedCodec{key: "k"}
	rt, _ := openCoded(t, codec)
	result := trigger(t, rt, codedTask.With(1))
	codec.decode = func() error { return errors.New("out of reach") }
	key := lane.RunKey{Environment: "default", RunID: result.ID}
	_, read := rt.Runs().Get(t.Context(), key.RunID)
	_, delivered := rt.ExecuteDelivery(t.Context(), lane.Wakeup{RunKey: key}, nil)
	_, explained := rt.Runs().Explain(t.Context(), key.RunID)
	var listed error
	for _, err := range rt.Runs().Events(t.Context(), key.RunID, nil) {
		listed = err
	}
	for what, err := range map[string]error{"read": read, "delivered": delivered, "explained": explained, "listed": listed} {
		if runlane.CodeOf(err) != runlane.ErrStorageUnavailable {
			t.Errorf("%s: %v", what, err)
		}
	}
	codec.decode = nil
	if run, err := rt.Runs().Get(t.Context(), key.RunID); err != nil || run.Counters.Attempts != 0 || string(run.Payload) != "1" {
		t.Errorf("%+v, %v", run, err)
	}
}

// An outcome that cannot be encoded just now is tried again while the lease lasts, as one that cannot be written is.
func TestCodec_OutageAtTheOutcome_IsOutlived(t *testing.T) {
	t.Parallel()
	codec, failures := &scriptedCodec{key: "k"}, 0
	rt, _ := openCoded(t, codec)
	codec.encode = func() error {
		if len(codec.refs) > 1 && failures < 3 { // the first is the payload
			failures++
			return errors.New("out of reach")
		}
		return nil
	}
	began := time.Now()
	result, err := rt.RunNow(t.Context(), codedTask.With(7), nil)
	if err != nil || result.Run.Status != runlane.StatusSucceeded || failures != 3 {
		t.Errorf("%+v, %v after %d failures and %s", result, err, failures, time.Since(began))
	}
}

// Bodies that no codec made have no head, whatever they are; what has one is taken apart as it was made.
func FuzzParseCoded(f *testing.F) {
	head, err := core.CodedHead("key", []byte("body"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(head)
	f.Add([]byte(`{"a":1}`))
	f.Add([]byte{1, 0})
	f.Add([]byte{1, 200, 'k'})
	f.Fuzz(func(t *testing.T, stored []byte) {
		key, body, ok := core.ParseCoded(stored)
		if !ok {
			return
		}
		again, err := core.CodedHead(key, body)
		if err != nil || !bytes.Equal(again, stored) {
			t.Errorf("%q was taken apart into %q and %q, %v", stored, key, body, err)
		}
	})
}
