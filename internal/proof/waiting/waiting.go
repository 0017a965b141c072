// Package waiting is for tests of what a lost process or a lost power leaves: handlers whose runs wait for signals, for
// runs that they called and for the nodes of flows, and the scenarios with them that crash tests of all lanes share.
package waiting

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// What an attempt does, beside what is named by the tests themselves. Every attempt of a run does the same.
const (
	Asks    = "asks"    // waits for a signal
	Mails   = "mails"   // makes a token, and waits for the answer
	Answers = "answers" // waits for a signal that it sends itself
	Tells   = "tells"   // signals a node of the flow that waits
	Large   = "large"   // waits for signals whose bodies no record holds together
	Single  = "single"  // calls a run
	Calls   = "calls"   // calls two runs
	Calling = "calling" // calls a run that waits for a signal
	Recall  = "recall"  // steps, a snapshot and checkpoints, which have to be the same in each attempt
	Refuse  = "refuse"  // fails for good
)

// Act is the payload.
type Act struct {
	Name string `json:"name,omitempty"`
	Do   string `json:"do,omitempty"`
	Bulk []byte `json:"bulk,omitempty"`
}

// Narrow holds one run at a time.
var Narrow = runlane.Queue{Name: "line", Concurrency: 1}

// Play and Lined are the tasks. Runs of Lined are in [Narrow].
var (
	Play  = newTask("play", runlane.DefaultQueue)
	Lined = newTask("lined", Narrow)
)

func newTask(id runlane.TaskID, queue runlane.Queue) *runlane.Task[Act] {
	return runlane.NewTask(id, &runlane.TaskOptions[Act]{
		Version: 1,
		Queue:   queue,
		Retry:   runlane.Retry{MaxAttempts: 3, Backoff: runlane.Fixed(20 * time.Second), NoJitter: true},
	})
}

// Prepare gives a program the keys of its tokens.
func Prepare(o *core.Options) { o.TokenKeys = [][]byte{make([]byte, 32)} }

// Hooked gives a program a hook that sees every commit, and a codec.
func Hooked(o *core.Options) { o.Hooks, o.Codec = []core.Hook{func(core.Change) {}}, backwards{} }

// backwards stores what it is given with its end first.
type backwards struct{}

func (backwards) Encode(_ context.Context, _ runlane.BodyRef, plain []byte) (stored []byte, key string, err error) {
	stored = slices.Clone(plain)
	slices.Reverse(stored)
	return stored, "k", nil
}

func (b backwards) Decode(ctx context.Context, of runlane.BodyRef, _ string, stored []byte) ([]byte, error) {
	plain, _, err := b.Encode(ctx, of, stored)
	return plain, err
}

var attempts = map[string]func(context.Context, *runlane.Attempt) error{
	Refuse:  func(context.Context, *runlane.Attempt) error { return runlane.Permanent(errors.New("as asked")) },
	Asks:    asks,
	Answers: answers,
	Mails:   mails,
	Tells:   tells,
	Large:   hears,
	Single:  func(ctx context.Context, a *runlane.Attempt) error { return callsOthers(ctx, a, 1, "") },
	Calls:   func(ctx context.Context, a *runlane.Attempt) error { return callsOthers(ctx, a, 2, "") },
	Calling: func(ctx context.Context, a *runlane.Attempt) error { return callsOthers(ctx, a, 1, Asks) },
	Recall:  recalls,
}

// calledTwice are those whose answer may come while they suspend: then an attempt calls its handler again.
var calledTwice = []string{Answers, Single, Calls}

// Execute is an attempt with one side effect. ok is false, and nothing was done, where what is none of this package's.
func Execute(ctx context.Context, a *runlane.Attempt, what Act, effect func() error) (ok bool, err error) {
	do := attempts[what.Do]
	if do == nil {
		return false, nil
	}
	if slices.Contains(calledTwice, what.Do) { // the side effect is behind the wait
		if err := do(ctx, a); err != nil {
			return true, err
		}
		return true, effect()
	}
	if err := effect(); err != nil {
		return true, err
	}
	return true, do(ctx, a)
}

// played is Play with a result, so that runs can call it.
var played = runlane.Func[Act, struct{}]{Task: Play}

// callsOthers is an attempt that calls runs and waits for all of them. Ones that wait themselves end by a cancellation.
func callsOthers(ctx context.Context, a *runlane.Attempt, n int, do string) error {
	payloads := make([]Act, n)
	for i := range payloads {
		payloads[i] = Act{Name: "child " + strconv.Itoa(i), Do: do}
	}
	_, err := runlane.CallAll(ctx, a, &played, payloads, nil)
	return err
}

// recalls is an attempt whose step has the result that the first one recorded, however the process died since. A
// snapshot beside it has to be of that one.
func recalls(ctx context.Context, a *runlane.Attempt) error {
	charge, err := runlane.Step(ctx, a, "charge", func(context.Context) (string, error) {
		return fmt.Sprint("by attempt ", a.Number), nil
	})
	if err != nil {
		return err
	}
	if err := a.Snapshot(ctx, "seen", charge); err != nil {
		return err
	}
	seen, err := a.Snapshots(ctx)
	if err != nil {
		return err
	}
	if len(seen) != 1 || string(seen[0].Result) != fmt.Sprintf("%q", charge) {
		return runlane.Permanent(fmt.Errorf("the step is %q, and was %+v", charge, seen))
	}
	if err := a.Sleep(ctx, "nap", time.Millisecond); err != nil {
		return err
	}
	for n := range 3 { // the first at once, the last when the attempt ends
		if err := a.Checkpoint(ctx, "rows", n); err != nil {
			return err
		}
	}
	return nil
}

// approved and refused are what runs wait for. The bodies of refused are large.
var (
	approved = runlane.NewSignal[string]("approved")
	refused  = runlane.NewSignal[[]byte]("refused")
)

// by is who answers, once: every sender is of the same signal.
const by = "ada"

func once() *runlane.SignalOptions { return &runlane.SignalOptions{ID: "1"} }

func asks(ctx context.Context, a *runlane.Attempt) error {
	who, err := approved.Wait(ctx, a, &runlane.WaitOptions{Timeout: time.Hour})
	if err == nil && who != by {
		return runlane.Permanent(fmt.Errorf("answered by %q", who))
	}
	return err
}

// answers gives the answer when it has looked in vain: its suspension finds that it came.
func answers(ctx context.Context, a *runlane.Attempt) error {
	err := asks(ctx, a)
	if runlane.Suspended(err) {
		return errors.Join(err, a.Signal(ctx, a.Run.ID, approved.With(by), once()))
	}
	return err
}

// mails leaves a token where the scenario finds it.
func mails(ctx context.Context, a *runlane.Attempt) error {
	token, err := approved.Token(ctx, a, nil)
	if err == nil {
		err = a.Snapshot(ctx, mailed, token)
	}
	return errors.Join(err, asks(ctx, a))
}

const mailed = "token"

// tokenOf is what a run mailed.
func tokenOf(ctx context.Context, rt *core.Runtime, id runlane.RunID) (token string, err error) {
	steps, err := rt.Runs().Steps(ctx, id)
	if err != nil {
		return "", err
	}
	for _, s := range steps {
		if s.Name == mailed {
			return token, json.Unmarshal(s.Result, &token)
		}
	}
	return "", fmt.Errorf("run %s mailed nothing", id)
}

func tells(ctx context.Context, a *runlane.Attempt) error {
	return a.SignalNode(ctx, runlane.Node{Flow: flowID, Name: "a"}, approved.With(by), once())
}

// hears is an attempt that is answered by two bodies, each as large as a record may be.
func hears(ctx context.Context, a *runlane.Attempt) error {
	var yes *string
	var no *[]byte
	err := runlane.WaitAll(ctx, a, nil, approved.Into(&yes), refused.Into(&no))
	if err == nil && (*yes != largeText() || !slices.Equal(*no, Noise(largeBytes))) {
		return runlane.Permanent(fmt.Errorf("answered by %d and %d bytes", len(*yes), len(*no)))
	}
	return err
}

// largeBytes are 330 KB as JSON has them.
const largeBytes = 248_000

func largeText() string {
	body := Noise(largeBytes)
	slices.Reverse(body)
	return base64.StdEncoding.EncodeToString(body)
}

// Noise is bytes that do not get smaller.
func Noise(n int) []byte {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}
