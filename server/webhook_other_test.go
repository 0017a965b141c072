package server_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/memlane"
)

// A server leaves the runs of webhooks that it does not have to the servers that have them.
func TestWebhooks_OfAnotherServer_KeepTheirTries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		storage, r := memlane.NewStorage(nil), newReceiver()
		p := newProcess(t, storage, r, toldOf).begin(t)
		p.end(t, "told", "succeed")
		told, err := p.Runs().Get(t.Context(), "told")
		if err != nil {
			t.Fatal(err)
		}
		created, _ := json.Marshal(told.CreatedAt)
		for task, payload := range map[runlane.TaskID]string{
			"runlane.webhook":      `{"webhook":"other","run":"told","created":` + string(created) + `}`,
			"runlane.webhook-feed": `{"webhook":"other"}`,
		} {
			call, err := p.CallJSON(task, json.RawMessage(payload))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Trigger(t.Context(), call, &runlane.TriggerOptions{RunID: runlane.RunID(task)}); err != nil {
				t.Fatal(err)
			}
			if _, err := p.RunNow(t.Context(), call, nil); runlane.CodeOf(err) != runlane.ErrTaskNotFound {
				t.Errorf("RunNow: %v", err)
			}
		}
		time.Sleep(lostTime)
		for _, id := range []runlane.RunID{"runlane.webhook", "runlane.webhook-feed"} {
			run, err := p.Runs().Get(t.Context(), id)
			if err != nil || run.Status != runlane.StatusQueued || run.Counters != (runlane.Counters{}) {
				t.Errorf("%v: %+v", err, run)
			}
		}
		other := toldOf
		other.Name = "other"
		r.mu.Lock()
		clear(r.ids) // the other webhook has another id for the same end
		r.mu.Unlock()
		p.stop()
		newProcess(t, storage, r, other).begin(t)
		time.Sleep(lostTime)
		if r.mu.Lock(); r.taken != 2 || len(r.faults) > 0 {
			t.Errorf("%d requests: %v", r.taken, r.faults)
		}
		r.mu.Unlock()
	})
}
