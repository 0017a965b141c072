package main

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// payloadBytes is the size of an encoded payload: as much as DynamoDB holds of one that does not compress at all.
const payloadBytes = 350 << 10

// large is a separate payload for each number, of text that hardly compresses.
func large(seed uint64, number int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	source := rand.New(rand.NewPCG(seed, uint64(number))) // repeatable, and not negative
	text := make([]byte, payloadBytes-len(`""`))
	for i := range text {
		text[i] = letters[source.Uint32()%uint32(len(letters))]
	}
	return string(text)
}

func TestLoad_LargePayloads_ArriveByteForByteInBoundedMemory(t *testing.T) {
	seed := rand.Uint64() // a choice of payloads
	onEachLane(t, &loadCase{
		name: "a 350 KB payload", embedded: 200, dynamoDB: 100, short: 10, heap: perRun(4 * payloadBytes), requests: 8,
		play: func(w *load) {
			task := runlane.NewTask("load.large", &runlane.TaskOptions[string]{ErrorMessages: true})
			var arrived, differ atomic.Int64
			numbers := map[runlane.RunID]int{}
			w.open(&core.Options{Handlers: []runlane.Handler{task.Handle(func(_ context.Context, a *runlane.Attempt, payload string) error {
				if payload != large(seed, numbers[a.Run.ID]) {
					differ.Add(1)
				}
				arrived.Add(1)
				return nil
			})}})
			for number := range w.runs { // one by one: a batch would hold all payloads at once
				result, err := w.rt.Trigger(w.Context(), task.With(large(seed, number)), nil)
				w.must(err)
				if n := len(result.Run.Payload); n != payloadBytes {
					w.Fatalf("the payload has %d bytes, want %d", n, payloadBytes)
				}
				numbers[result.Run.ID] = number
			}
			w.work(runlane.DefaultQueue.Name, 4, func() bool { return arrived.Load() == int64(w.runs) })
			w.note("seed", seed)
			if n := differ.Load(); n > 0 {
				w.Errorf("%d payloads arrived as others", n)
			}
			w.settled(w.runs, once)
			for id, number := range numbers {
				run, err := w.rt.Runs().Get(w.Context(), id)
				w.must(err)
				if string(run.Payload) != `"`+large(seed, number)+`"` {
					w.Errorf("%s: the payload is another one when its run has ended", id)
				}
			}
		},
	})
}
