// Package linear lets many clients call a storage at once and checks that the history of their calls is linearizable:
// that one order of the calls, each between its beginning and its answer, explains all answers.
package linear

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/runlane/runlane-go/lane"
)

// Subject is what the operations of one history compete for.
type Subject string

// The subjects.
const (
	// Singleton: at most one active run owns a singleton key, and lookups and refusals name it.
	Singleton Subject = "singleton ownership"
	// Idempotency: one run owns an idempotency key, while it is active and as long as its retention says, until a
	// reset.
	Idempotency Subject = "idempotent trigger"
	// Lease: a run has one owner, whose writes are refused once another worker has taken over.
	Lease Subject = "lease ownership"
	// Slots: a partition of a bounded queue never has more runs with a slot than its limit, and loses none of its
	// slots.
	Slots Subject = "slot count"
	// Flows: each version of a flow has one successor, and runs are made in the round of an open one alone.
	Flows Subject = "changes of flows"
)

// Subjects are all subjects.
func Subjects() []Subject {
	return []Subject{Singleton, Idempotency, Lease, Slots, Flows}
}

// Options size a history. nil and zero fields mean the defaults.
type Options struct {
	// Seed decides what the clients do and which answers get lost; 0 chooses one. It does not decide the order of
	// concurrent calls.
	Seed uint64
	// Clients act at once. Defaults to 64.
	Clients int
	// Operations of each client. Defaults to 12.
	Operations int
	// Keys that the clients compete for. Each is checked alone. Defaults to 16.
	Keys int
	// LosesAnswers as in lanetest.StorageHarness: requests below the storage fail on purpose with their outcome
	// unknown. A storage may then refuse a command that its own lost request already carried out, if another client has
	// changed the data since. So the refusal of a reset or of a change to a flow proves nothing, and neither does a
	// reset that found the key free.
	LosesAnswers bool
	// Patience is how long the check of one history may take. Defaults to 20 seconds. A longer one is a failure.
	Patience time.Duration
}

func (o *Options) orDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	orDefault(&out.Clients, 64)
	orDefault(&out.Operations, 12)
	orDefault(&out.Keys, 16)
	orDefault(&out.Patience, 20*time.Second)
	return out
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Harness is what [Run] has to know.
type Harness struct {
	// New returns one started storage for each process that takes part, all over the same data, closed by t.Cleanup.
	// Required.
	New func(t testing.TB) []lane.Storage
	// Options of every history.
	Options *Options
}

// Verdict is the result of checking one history.
type Verdict struct {
	// Subject of the history.
	Subject Subject
	// Seed with which the clients repeat the history.
	Seed uint64
	// Operations that took part, those of unknown outcome included.
	Operations int
	// Unknown are the operations whose caller did not learn their outcome.
	Unknown int
	// Outcomes count the operations by kind and result, as "claim done".
	Outcomes map[string]int
	// Linearizable: one order of the operations, each between its call and its answer, explains all answers.
	Linearizable bool
	// TimedOut: the check did not end.
	TimedOut bool
	// Problems are answers that no history may have, as a contract violation.
	Problems []error

	model   porcupine.Model
	history []porcupine.Operation
}

// Sound reports that the history is as the contract wants it.
func (v *Verdict) Sound() bool { return v.Linearizable && len(v.Problems) == 0 }

// String is the verdict in a line.
func (v *Verdict) String() string {
	result := "linearizable"
	switch {
	case len(v.Problems) > 0:
		result = "answers that may not be: " + v.Problems[0].Error()
	case v.TimedOut:
		result = "the check did not end"
	case !v.Linearizable:
		result = "not linearizable"
	}
	return fmt.Sprintf(
		"%s: seed %d, %d operations, %d of them with unknown outcome: %s",
		v.Subject,
		v.Seed,
		v.Operations,
		v.Unknown,
		result,
	)
}

// Run lets many clients of several processes call a storage at once, while calls fail, are repeated,
// lose their answers or are carried out long after their caller gave up, and demands that the history of each subject
// is linearizable: an operation with an unknown outcome may take effect at any later time, or never. A failure prints
// the seed and where a drawing of the history lies, which go test -artifacts keeps. Subjects that the storage does not
// promise are left out.
func Run(t *testing.T, h Harness) {
	t.Helper()
	for _, subject := range Subjects() {
		t.Run(strings.ReplaceAll(string(subject), " ", "_"), func(t *testing.T) {
			t.Parallel()
			storages := h.New(t)
			if !linearSubjects[subject].needs(storages[0].Capabilities()) {
				return
			}
			v := Check(t, storages, subject, h.Options)
			t.Log(v)
			if !v.Sound() {
				v.draw(t)
				t.FailNow()
			}
			for _, outcome := range linearSubjects[subject].meets {
				if v.Outcomes[outcome] == 0 && !h.Options.doubts(outcome) {
					t.Errorf("no operation ended as %q: the history proves too little; it had %v", outcome, v.Outcomes)
				}
			}
		})
	}
}

// doubts reports an outcome, as "claim refused", that counts as unknown.
func (o *Options) doubts(outcome string) bool {
	end := strings.LastIndexByte(outcome, ' ')
	return o != nil && o.LosesAnswers &&
		doubtful(linearCall{Kind: outcome[:end]}, linearAnswer{Result: outcome[end+1:]})
}

// Check makes one history of the storages, which are processes over the same data, and judges it. It
// fails the test only where the history could not be made.
func Check(t testing.TB, storages []lane.Storage, subject Subject, o *Options) *Verdict {
	t.Helper()
	about, ok := linearSubjects[subject]
	if !ok || len(storages) == 0 {
		t.Fatalf("no history of %q over %d storages", subject, len(storages))
	}
	options := o.orDefaults()
	h := newLinearHistory(t, storages, options)
	h.run(about)
	v := &Verdict{
		Subject:    subject,
		Seed:       h.o.Seed,
		Operations: len(h.operations),
		Problems:   h.problems,
		Outcomes:   map[string]int{},
		model:      about.model(),
		history:    h.operations,
	}
	for _, operation := range v.history {
		result := operation.Output.(linearAnswer).Result
		v.Outcomes[operation.Input.(linearCall).Kind+" "+result]++
		if result == linearUnknown {
			v.Unknown++
		}
	}
	switch porcupine.CheckOperationsTimeout(v.model, v.history, h.o.Patience) {
	case porcupine.Ok:
		v.Linearizable = true
	case porcupine.Unknown:
		v.TimedOut = true
	case porcupine.Illegal:
	}
	return v
}

// draw writes the history down, for the eye.
func (v *Verdict) draw(t testing.TB) {
	t.Helper()
	_, info := porcupine.CheckOperationsVerbose(v.model, v.history, 5*time.Second)
	path := filepath.Join(t.ArtifactDir(), "history.html")
	if err := porcupine.VisualizePath(v.model, info, path); err != nil {
		t.Logf("the history cannot be drawn: %v", err)
		return
	}
	t.Logf("the history is drawn in %s", path)
}
