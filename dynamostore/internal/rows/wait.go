package rows

import (
	"encoding/json"

	"github.com/runlane/runlane-go"
)

// storedWait is a wait in at most 250 bytes: a waiting run has room for them, without a lease or a failure. Schemas add
// at most runlane.MaxWaitSchemaBytes.
type storedWait struct {
	For    []runlane.WaitingFor `json:"f"`
	Names  []string             `json:"n,omitempty"`
	All    bool                 `json:"a,omitempty"`
	Need   int                  `json:"d,omitempty"`
	Until  Millis               `json:"u,omitempty"`
	Prompt string               `json:"p,omitempty"` // empty with Asks: then it is the first question's
	Asks   []storedQuestion     `json:"q,omitempty"`

	Schemas map[string]json.RawMessage `json:"s,omitempty"`
}

type storedQuestion struct {
	Name   string `json:"n,omitempty"`
	Prompt string `json:"p"`
}

// shortKinds are the stored forms of kinds. Other kinds are stored in full.
var shortKinds = map[runlane.WaitingFor]runlane.WaitingFor{
	runlane.WaitingSignal:   "s",
	runlane.WaitingInput:    "i",
	runlane.WaitingChildren: "c",
	runlane.WaitingEnds:     "e",
	runlane.WaitingTime:     "t",
	runlane.WaitingBlocked:  "b",
	runlane.WaitingAnything: "a",
}

var longKinds = func() map[runlane.WaitingFor]runlane.WaitingFor {
	long := make(map[runlane.WaitingFor]runlane.WaitingFor, len(shortKinds))
	for kind, short := range shortKinds {
		long[short] = kind
	}
	return long
}()

func renameKinds(kinds []runlane.WaitingFor, by map[runlane.WaitingFor]runlane.WaitingFor) []runlane.WaitingFor {
	out := make([]runlane.WaitingFor, len(kinds))
	for i, kind := range kinds {
		out[i] = kind
		if to, ok := by[kind]; ok {
			out[i] = to
		}
	}
	return out
}

// keepWait stores the wait with the sequence of its event. A program that knows no waits keeps both, but its next
// sequence ends the wait.
func (r *Run) keepWait(w *runlane.Waiting) {
	if w == nil {
		return
	}
	stored := storedWait{
		For:    renameKinds(w.For, shortKinds),
		Names:  w.Names,
		All:    w.All,
		Need:   w.Need,
		Until:  ToMillis(w.Until),
		Prompt: w.Prompt,

		Schemas: w.Schemas,
	}
	for _, q := range w.Questions {
		stored.Prompt, stored.Asks = "", append(stored.Asks, storedQuestion(q))
	}
	data, err := json.Marshal(stored)
	if err != nil {
		panic(err) // strings, numbers and JSON always encode
	}
	r.Wait, r.WaitSequence = string(data), r.Sequence
}

func (r *Run) Waiting() *runlane.Waiting {
	if r.Wait == "" || r.WaitSequence != r.Sequence {
		return nil
	}
	var w storedWait
	if json.Unmarshal([]byte(r.Wait), &w) != nil {
		return nil // of a newer program
	}
	waiting := &runlane.Waiting{
		For:    renameKinds(w.For, longKinds),
		Names:  append([]string(nil), w.Names...), // none is nil, as in a projection
		All:    w.All,
		Need:   w.Need,
		Until:  w.Until.Time(),
		Prompt: w.Prompt,

		Schemas: w.Schemas,
	}
	for _, q := range w.Asks {
		waiting.Questions = append(waiting.Questions, runlane.Question(q))
		waiting.Prompt = waiting.Questions[0].Prompt
	}
	return waiting
}
