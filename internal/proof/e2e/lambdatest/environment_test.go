package lambdatest

import (
	"testing"
	"time"
)

// A program may have answered and asked again before the harness has looked. What it asks for then is the next event.
func TestInvoke_FastProgram_IsNeverWaitedForInVain(t *testing.T) {
	t.Parallel()
	e := newEnvironment(&Options{Timeout: time.Minute}, &logBuffer{})
	go func() { // the program, as the routes of the Runtime API see it
		for {
			e.asked <- struct{}{}
			select {
			case d := <-e.events:
				e.answers <- message{"response", d.event}
			case <-t.Context().Done():
				return
			}
		}
	}()
	for range 20_000 {
		if answer := e.invoke(t.Context(), "request", []byte("event")); answer.Failure != "" || string(answer.Payload) != "event" {
			t.Fatalf("answer is %q %s", answer.Failure, answer.Payload)
		}
	}
}
