package shown_test

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/shown"
)

// A wait is words, not the names of its kinds.
func TestWaitsFor_SaysWhatEndsTheWait(t *testing.T) {
	t.Parallel()
	const signal, input, calls = runlane.WaitingSignal, runlane.WaitingInput, runlane.WaitingChildren
	kinds := func(kinds ...runlane.WaitingFor) []runlane.WaitingFor { return kinds }
	for want, w := range map[string]*runlane.Waiting{
		"": nil,
		"the answer of a person (approved)": {
			For: kinds(signal, input, runlane.WaitingTime), Names: []string{"approved"}, Until: time.Unix(1, 0),
		},
		"all answers of a person (a, b)":                      {For: kinds(signal, input), Names: []string{"a", "b"}, All: true},
		"a signal (a, b)":                                     {For: kinds(signal), Names: []string{"a", "b"}},
		"all of its signals (a, b)":                           {For: kinds(signal), Names: []string{"a", "b"}, All: true},
		"3 runs that it called (pages)":                       {For: kinds(calls), Names: []string{"pages"}, Need: 3},
		"1 run that it called (pages)":                        {For: kinds(calls), Names: []string{"pages"}, Need: 1},
		"a signal, or 2 runs that it called: paid, pages":     {For: kinds(signal, calls), Names: []string{"paid", "pages"}, Need: 2},
		"2 runs of its flow":                                  {For: kinds(runlane.WaitingEnds), Need: 2},
		"its time":                                            {For: kinds(runlane.WaitingTime), Until: time.Unix(1, 0)},
		"an operator":                                         {For: kinds(runlane.WaitingBlocked)},
		"the answer of a person, or any signal or called run": {For: kinds(signal, input, runlane.WaitingAnything)},
	} {
		if got := shown.WaitsFor(w); got != want {
			t.Errorf("%+v: %q, want %q", w, got, want)
		}
	}
}
