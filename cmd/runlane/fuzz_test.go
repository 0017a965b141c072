package main

import (
	"testing"

	"github.com/runlane/runlane-go"
)

// FuzzParseLimits gives anything as RUNLANE_LIMITS.
func FuzzParseLimits(f *testing.F) {
	for _, text := range []string{"a=1, b=0", "a=-1", "a", "=1", "a=1,a=2", "a=99999999999999999999", "\u202ea=1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		queues, err := parseLimits(text)
		if err != nil && (runlane.CodeOf(err) != runlane.ErrConfigurationInvalid || queues != nil) {
			t.Fatal(queues, err)
		}
		seen := map[runlane.QueueName]bool{}
		for _, queue := range queues {
			if queue.Validate() != nil || queue.Name == "" || queue.Concurrency < 0 || seen[queue.Name] {
				t.Fatalf("%q has %+v", text, queue)
			}
			seen[queue.Name] = true
		}
	})
}
