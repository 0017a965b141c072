package core_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// untelling is a storage that does not answer with flows while it is told so: ends stay untold then.
type untelling struct {
	lane.Storage

	on atomic.Bool
}

func (s *untelling) Unwrap() lane.Storage { return s.Storage }

func (s *untelling) GetFlow(ctx context.Context, q *lane.FlowRead) (*lane.FlowRecord, error) {
	if s.on.Load() {
		return nil, &runlane.Error{Code: runlane.ErrStorageUnavailable, Message: "it does not answer", Retryable: true}
	}
	return s.Storage.GetFlow(ctx, q)
}

// startFlow starts a flow that has a node that succeeds, one that fails, one after both, and what undoes the second.
func (m *mover) startFlow(id runlane.FlowID) *runlane.FlowState {
	m.t.Helper()
	f := runlane.NewFlow(id)
	good := f.Add("good", moveGood.With("x"), nil)
	bad := f.Add("bad", moveBad.With("x"), nil)
	f.Add("after", moveGood.With("y"), &runlane.NodeOptions{After: []runlane.Node{good, bad}})
	f.Add("undo", moveGood.With("z"), &runlane.NodeOptions{After: []runlane.Node{bad}, If: runlane.IfFailed})
	state, err := m.StartFlow(m.t.Context(), f, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	return state
}

func (m *mover) wantFlow(id runlane.FlowID, want string) {
	m.t.Helper()
	state, err := m.Flows().Get(m.t.Context(), id)
	if err != nil {
		m.t.Fatal(err)
	}
	got := string(state.Status)
	for i := range state.Nodes {
		got += " " + state.Nodes[i].Name + ":" + state.Nodes[i].Words()
	}
	if got != want {
		m.t.Errorf("flow %s is %s, want %s", id, got, want)
	}
}

func (m *mover) imports(file []byte) *core.Moved {
	m.t.Helper()
	moved, err := m.Import(m.t.Context(), bytes.NewReader(file))
	if err != nil {
		m.t.Fatal(err)
	}
	return moved
}

func TestMove_Flows_GoOnWhereTheyAreImported(t *testing.T) {
	t.Parallel()
	l := memlane.New()
	storage := &untelling{Storage: l.Storage}
	l.Storage = storage
	from := newMover(t, l)
	from.startFlow("finished")
	from.drain()
	from.startFlow("begun")
	from.startFlow("untold")
	_, err := from.Flows().Cancel(t.Context(), "begun", nil)
	if err != nil {
		t.Fatal(err)
	}
	storage.on.Store(true)
	from.drain()
	storage.on.Store(false)
	from.startFlow("new")
	from.wantFlow("untold", "active good:succeeded bad:failed after:waits undo:waits") // no one was told
	file := from.export()
	if !strings.HasPrefix(string(file), `{"export":{"v":2,`) {
		t.Errorf("a file with flows begins with %.40s", file)
	}
	to := newMover(t, memlane.New())
	if moved := to.imports(file); moved.Flows != 4 || moved.Runs != 16 || moved.Written != 16 {
		t.Errorf("moved %+v", moved)
	}
	to.wantFlow("finished", "failed good:succeeded bad:failed after:cancelled undo:succeeded")
	to.wantFlow("begun", "cancelled good:cancelled bad:cancelled after:cancelled undo:cancelled")
	to.wantFlow("untold", "active good:succeeded bad:failed after:cancelled undo:queued")
	to.wantFlow("new", "active good:queued bad:queued after:waits undo:waits")
	if moved := to.imports(file); moved.Written != 0 {
		t.Errorf("once more: %+v", moved)
	}
	tick(t, to)
	to.drain()
	for _, id := range []runlane.FlowID{"finished", "untold", "new"} {
		to.wantFlow(id, "failed good:succeeded bad:failed after:cancelled undo:succeeded")
	}
	if _, err := to.Flows().Retry(t.Context(), "finished", &core.RetryFlowOptions{NothingUndone: true}); err != nil {
		t.Error(err)
	}
	if moved := to.imports(file); moved.Written != 0 {
		t.Errorf("after a retry: %+v", moved)
	}
	to.wantFlow("finished", "active good:succeeded bad:queued after:waits undo:waits")
	to.sound()
}

func TestMove_WithoutFlows_IsAFileThatOlderProgramsRead(t *testing.T) {
	t.Parallel()
	from := newMover(t, memlane.New())
	from.trigger(moveGood.With("x"), nil)
	if file := from.export(); !strings.HasPrefix(string(file), `{"export":{"v":1,`) || strings.Contains(string(file), "flow") {
		t.Errorf("the file is %s", file)
	}
}

func TestImport_FlowsThatCannotBe_AreRefused(t *testing.T) {
	t.Parallel()
	from := newMover(t, memlane.New())
	from.startFlow("moved")
	file := string(from.export())
	for name, c := range map[string][2]string{
		"a file of format 1 with a flow": {`"v":2`, `"v":1`},
		"a file of a later format":       {`"v":2`, `"v":3`},
		"a cycle":                        {`"name":"bad","task":"move.bad"`, `"name":"bad","task":"move.bad","after":[2]`},
		"a node that is not there":       {`"after":[1]`, `"after":[9]`},
		"two nodes of a name":            {`"name":"bad"`, `"name":"good"`},
		"a status without an end":        {`"plan":`, `"status":"failed","plan":`},
		"an id that cannot be":           {`{"flow":{"flowId":"moved"`, `{"flow":{"flowId":"a:b"`},
	} {
		changed := strings.Replace(file, c[0], c[1], 1)
		if changed == file {
			t.Fatalf("%s: there is no %s", name, c[0])
		}
		to := newMover(t, memlane.New())
		_, err := to.Import(t.Context(), strings.NewReader(resummed(strings.Split(strings.TrimSuffix(changed, "\n"), "\n"))))
		if !errors.Is(err, runlane.ErrValidationFailed) || len(to.histories()) > 0 {
			t.Errorf("%s: %v, with %d runs", name, err, len(to.histories()))
		}
	}
}

func TestImport_AFlowThatIsThere_IsAConflict(t *testing.T) {
	t.Parallel()
	from := newMover(t, memlane.New())
	from.startFlow("moved")
	file := from.export()
	to := newMover(t, memlane.New())
	if _, err := to.StartFlow(t.Context(), oneNode("moved"), nil); err != nil {
		t.Fatal(err)
	}
	_, err := to.Import(t.Context(), bytes.NewReader(file))
	if kind := runlane.ConflictFlow; !errors.Is(err, runlane.ErrStorageConflict) || !strings.Contains(err.Error(), "another flow") {
		t.Errorf("it answers %v, want %s", err, kind)
	}
}

// oneNode is a flow of one run.
func oneNode(id runlane.FlowID) *runlane.Flow {
	f := runlane.NewFlow(id)
	f.Add("only", moveGood.With("only"), nil)
	return f
}
