package scenarios

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

const clientScenario = "a client claims a run, waits in it and completes it, by token alone"

func clientScenarios() []scenario {
	suspends := func(c lane.StorageCapabilities) bool { return c.SuspendsRuns }
	return []scenario{{clientScenario, suspends, clientWorks, false}}
}

// claimNext claims what comes by the lane's own transport.
func (s *scene) claimNext() *core.Claim {
	s.Helper()
	options := &core.ClaimOptions{Wait: 30 * time.Second, WorkerID: "client", ClaimID: rand.Text()}
	claim, err := s.rt.Claim(s.Context(), options)
	s.must(err)
	if claim == nil {
		s.Fatal("nothing was there to claim")
	}
	again, err := s.rt.Claim(s.Context(), options) // the answer was lost
	s.must(err)
	if again == nil || again.Token != claim.Token || string(again.Run.Payload) != string(claim.Run.Payload) {
		s.Fatalf("the repeated claim is %+v", again)
	}
	return claim
}

// byToken is the claim as another server of the environment finds it.
func (s *scene) byToken(token string) *core.Claim {
	s.Helper()
	claim, err := s.rt.ByToken(s.Context(), token)
	s.must(err)
	return claim
}

func clientWorks(t *testing.T, h Harness) {
	task := runlane.NewTask[json.RawMessage]("scenario.client", nil)
	s := ownTransportWith(t, h, core.Options{Tasks: []core.ClientTask{{Definition: task.Definition()}}})
	run := s.trigger(task.With(json.RawMessage(`{"n":1}`)), nil)
	first := s.claimNext()
	if first.Run.ID != run.ID || string(first.Run.Payload) != `{"n":1}` {
		t.Fatalf("claimed %+v", first.Run)
	}
	s.must(s.byToken(first.Token).Heartbeat(t.Context(), 30*time.Second))
	kept, err := s.byToken(first.Token).Keep(t.Context(), "charged", json.RawMessage(`7`))
	s.must(err)
	again, err := s.byToken(first.Token).Keep(t.Context(), "charged", json.RawMessage(`8`))
	s.must(err)
	if string(kept.Result) != "7" || string(again.Result) != "7" {
		t.Fatalf("kept %s, then %s", kept.Result, again.Result)
	}
	request := runlane.WaitRequest{Name: "approval", Names: []string{"approved"}}
	if _, err := s.byToken(first.Token).Wait(t.Context(), request); !runlane.Suspended(err) {
		t.Fatalf("the wait returned %v", err)
	}
	_, err = s.rt.ByToken(t.Context(), first.Token)
	if !errors.Is(err, runlane.ConflictLeaseOwnership) {
		t.Fatalf("the token of an attempt that has ended: %v", err)
	}
	s.must(s.rt.Signal(t.Context(), run.ID, runlane.NewRawSignal("approved", json.RawMessage(`"ada"`)), nil))
	second := s.claimNext()
	answer, err := s.byToken(second.Token).Wait(t.Context(), request)
	s.must(err)
	if len(answer.Signals) != 1 || string(answer.Signals[0].Body) != `"ada"` {
		t.Fatalf("the answer is %+v", answer)
	}
	s.must(s.byToken(second.Token).Complete(t.Context(), json.RawMessage(`{ "done": 1 }`)))
	done := s.get(run.ID)
	if done.Status != runlane.StatusSucceeded || string(done.Output) != `{ "done": 1 }` ||
		string(done.Payload) != `{"n":1}` || done.Counters.Failures != 0 {
		t.Fatalf("the run is %+v", done)
	}
}
