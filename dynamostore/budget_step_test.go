package dynamostore

import (
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// addStepCases adds what steps, checkpoints and reading them use.
func addStepCases(cases map[string]budgetCase) {
	running := func(w *world) *world { return w.create(eager, 0, nil).ack().claim(budgetLease, true) }
	cases["a step"] = budgetCase{running, func(w *world) *world { return w.keep("charge", []byte(`{"id":"ch_1"}`)) }, nil}
	cases["a step with a result of 3 KB"] = budgetCase{running, func(w *world) *world {
		return w.keep("charge", bulky(3))
	}, nil}
	cases["a checkpoint"] = budgetCase{running, func(w *world) *world { return w.keepAs(runlane.StepKindCheckpoint, "cursor", []byte(`1`)) }, nil}
	cases["a checkpoint that replaces one"] = budgetCase{func(w *world) *world {
		return running(w).keepAs(runlane.StepKindCheckpoint, "cursor", []byte(`1`))
	}, func(w *world) *world {
		return w.pass(time.Second).keepAs(runlane.StepKindCheckpoint, "cursor", []byte(`2`))
	}, nil}
	cases["a step that was recorded"] = budgetCase{func(w *world) *world { return running(w).keep("charge", []byte(`1`)) }, func(w *world) *world {
		return w.keep("charge", []byte(`2`))
	}, nil}
	cases["reading the records of ten steps"] = budgetCase{func(w *world) *world { return running(w).keepTen() }, func(w *world) *world {
		page, err := w.store.ListRecords(w.Context(), &lane.RecordQuery{
			PageQuery: lane.PageQuery{Environment: "test", Limit: runlane.MaxPageLimit}, RunID: w.run.ID, CreatedAt: w.run.CreatedAt,
		})
		if err != nil || len(page.Items) != 10 {
			w.Fatal(page, err)
		}
		return w
	}, nil}
}

// keep records a step.
func (w *world) keep(name string, result []byte) *world {
	w.Helper()
	return w.keepAs(runlane.StepKindStep, name, result)
}

func (w *world) keepAs(kind runlane.StepKind, name string, result []byte) *world {
	w.Helper()
	_, err := w.store.KeepRecord(w.Context(), &lane.KeepCommand{
		RunKey:    w.key(),
		CreatedAt: w.run.CreatedAt,
		Record:    lane.StepRecord{Name: name, Kind: kind, Attempt: 1, At: w.now, Result: result},
	})
	if err != nil {
		w.Fatal(err)
	}
	return w
}

func (w *world) keepTen() *world {
	w.Helper()
	for n := range 10 {
		w.keep(fmt.Sprintf("step %d", n), []byte(`{"id":"ch_1"}`))
	}
	return w
}
