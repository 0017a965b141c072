package rows

import (
	"encoding/json"

	"github.com/runlane/runlane-go"
)

// storedWait is a wait in few bytes: at most 250 on the run item, which has room for them because a run that waits has
// neither a lease nor a failure. Schemas come on top, at most runlane.MaxWaitSchemaBytes.
type storedWait struct {
	For    []runlane.WaitingFor `json:"f"`
	Names  []string             `json:"n,omitempty"`
	All    bool                 `json:"a,omitempty"`
	Need   int                  `json:"d,omitempty"`
	Until  Millis               `json:"u,omitempty"`
	Prompt string               `json:"p,omitempty"` // of several questions it is the first, and not here
	Asks   []storedQuestion     `json:"q,omitempty"`

	Schemas map[string]json.RawMessage `json:"s,omitempty"`
}

// storedQuestion is a question of several.
type storedQuestion struct {
	Name   string `json:"n,omitempty"`
	Prompt string `json:"p"`
}

// shortKinds are the kinds as they are stored; one that is not in it is stored in full.
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

func renamed(kinds []runlane.WaitingFor, by map[runlane.WaitingFor]runlane.WaitingFor) []runlane.WaitingFor {
	out := make([]runlane.WaitingFor, len(kinds))
	for i, kind := range kinds {
		out[i] = kind
		if to, ok := by[kind]; ok {
			out[i] = to
		}
	}
	return out
}

// keepWait puts the wait into the item with the sequence of the event that began it: a program that knows no waits
// leaves both where they are, and the sequence tells that the wait is over.
func (r *Run) keepWait(w *runlane.Waiting) {
	if w == nil {
		return
	}
	stored := storedWait{
		For:    renamed(w.For, shortKinds),
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
		panic(err) // of texts, numbers and JSON, all of which encode
	}
	r.Wait, r.WaitSequence = string(data), r.Sequence
}

// Waiting is what the run waits for; nil where no wait is in force.
func (r *Run) Waiting() *runlane.Waiting {
	if r.Wait == "" || r.WaitSequence != r.Sequence {
		return nil
	}
	var w storedWait
	if json.Unmarshal([]byte(r.Wait), &w) != nil {
		return nil // of a newer program
	}
	waiting := &runlane.Waiting{
		For:    renamed(w.For, longKinds),
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
