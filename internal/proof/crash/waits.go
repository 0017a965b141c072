package crash

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// What an attempt of a run that waits does. Every attempt does the same.
const (
	doAsk        = "asks"    // waits for a signal
	doMail       = "mails"   // makes a token, and waits for the answer
	doAnswer     = "answers" // waits for a signal that it sends itself
	doTell       = "tells"   // signals a node of the flow that waits
	doHear       = "large"   // waits for signals whose bodies no record holds together
	doCallOne    = "single"  // calls a run
	doCallTwo    = "calls"   // calls two runs
	doCallAsking = "calling" // calls a run that waits for a signal
	doRecall     = "recall"  // steps, a snapshot and checkpoints, which have to be the same in each attempt
	doSleep      = "sleeps"  // longer than an attempt waits
	doRefuse     = "refuse"  // fails for good
)

// hooked gives a program a hook that sees every commit, and a codec.
func hooked(_ *Process, o *core.Options) {
	o.Hooks, o.Codec = []core.Hook{func(core.Change) {}}, backwards{}
}

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
	doRefuse:     func(context.Context, *runlane.Attempt) error { return runlane.Permanent(errors.New("as asked")) },
	doAsk:        asks,
	doAnswer:     answers,
	doMail:       mails,
	doTell:       tells,
	doHear:       hears,
	doCallOne:    func(ctx context.Context, a *runlane.Attempt) error { return callsOthers(ctx, a, 1, "") },
	doCallTwo:    func(ctx context.Context, a *runlane.Attempt) error { return callsOthers(ctx, a, 2, "") },
	doCallAsking: func(ctx context.Context, a *runlane.Attempt) error { return callsOthers(ctx, a, 1, doAsk) },
	doRecall:     recalls,
	doSleep:      func(ctx context.Context, a *runlane.Attempt) error { return a.Sleep(ctx, "night", time.Hour) },
}

// calledTwice are those whose answer may come while they suspend: then an attempt calls its handler again.
var calledTwice = map[string]bool{doAnswer: true, doCallOne: true, doCallTwo: true}

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
	for range 4 { // more than the head of the log
		a.Logger().Info(strings.Repeat("x", 15<<10))
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
	if err == nil && (*yes != largeText() || !slices.Equal(*no, noise(largeBytes))) {
		return runlane.Permanent(fmt.Errorf("answered by %d and %d bytes", len(*yes), len(*no)))
	}
	return err
}

// largeBytes are 330 KB as JSON has them.
const largeBytes = 248_000

func largeText() string {
	body := noise(largeBytes)
	slices.Reverse(body)
	return base64.StdEncoding.EncodeToString(body)
}
