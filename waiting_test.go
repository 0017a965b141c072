package runlane_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
)

func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("signal-%02d", i)
	}
	return out
}

func TestWaiting_Validate(t *testing.T) {
	t.Parallel()
	signal := []runlane.WaitingFor{runlane.WaitingSignal}
	for name, c := range map[string]struct {
		wait runlane.Waiting
		want string // "" is valid
	}{
		"one name":         {runlane.Waiting{For: signal, Names: names(1)}, ""},
		"32 names":         {runlane.Waiting{For: signal, Names: names(32)}, ""},
		"33 names":         {runlane.Waiting{For: signal, Names: names(33)}, "has 33 names"},
		"no kind":          {runlane.Waiting{Names: names(1)}, "waits for nothing"},
		"an unknown kind":  {runlane.Waiting{For: []runlane.WaitingFor{"weather"}}, `is for "weather"`},
		"no names":         {runlane.Waiting{For: signal}, "is for signals and has no names"},
		"an empty name":    {runlane.Waiting{For: signal, Names: []string{""}}, "a signal's name is empty"},
		"a colon":          {runlane.Waiting{For: signal, Names: []string{"a:b"}}, "a signal's name contains"},
		"control bytes":    {runlane.Waiting{For: signal, Names: []string{"a\x00"}}, "a signal's name"},
		"no UTF-8":         {runlane.Waiting{For: signal, Names: []string{"a\xff"}}, "a signal's name"},
		"64 bytes":         {runlane.Waiting{For: signal, Names: []string{strings.Repeat("n", 64)}}, ""},
		"65 bytes":         {runlane.Waiting{For: signal, Names: []string{strings.Repeat("n", 65)}}, "a signal's name has 65 bytes"},
		"a long prompt":    {runlane.Waiting{For: signal, Names: names(1), Prompt: strings.Repeat("p", 161)}, "a prompt of 161 bytes"},
		"a broken prompt":  {runlane.Waiting{For: signal, Names: names(1), Prompt: "a\xff"}, "has a prompt that is not valid UTF-8"},
		"no time":          {runlane.Waiting{For: []runlane.WaitingFor{runlane.WaitingTime}}, "is for a time and has none"},
		"a negative count": {runlane.Waiting{For: []runlane.WaitingFor{runlane.WaitingEnds}, Need: -1}, "needs -1 ends"},
		"anything":         {runlane.Waiting{For: []runlane.WaitingFor{runlane.WaitingInput, runlane.WaitingAnything}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.wait.Validate()
			if (err == nil) != (c.want == "") {
				t.Fatalf("%v", err)
			}
			if err != nil && (!strings.Contains(err.Error(), c.want) || !errors.Is(err, runlane.ErrValidationFailed)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// What a run keeps has room beside it: names that are too many become anything, and are waited for too often.
func TestWaiting_Kept(t *testing.T) {
	t.Parallel()
	signal, anything := runlane.WaitingSignal, runlane.WaitingAnything
	for name, c := range map[string]struct{ wait, want runlane.Waiting }{
		"three in order, each once": {
			runlane.Waiting{For: []runlane.WaitingFor{signal, signal}, Names: []string{"c", "a", "b", "a"}, All: true},
			runlane.Waiting{For: []runlane.WaitingFor{signal}, Names: []string{"a", "b", "c"}, All: true},
		},
		"four": {
			runlane.Waiting{For: []runlane.WaitingFor{runlane.WaitingInput, signal}, Names: names(4), All: true, Prompt: "?"},
			runlane.Waiting{For: []runlane.WaitingFor{signal, runlane.WaitingInput, anything}, Prompt: "?"},
		},
		"three long ones and a prompt": {
			runlane.Waiting{
				For:    []runlane.WaitingFor{signal},
				Names:  []string{strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("c", 64)},
				Prompt: strings.Repeat("p", 9),
			},
			runlane.Waiting{For: []runlane.WaitingFor{signal, anything}, Prompt: strings.Repeat("p", 9)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := c.wait.Clone()
			if d := cmp.Diff(&c.want, c.wait.Kept()); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if d := cmp.Diff(before, &c.wait); d != "" {
				t.Errorf("the wait itself was changed: %s", d)
			}
		})
	}
}

func TestWaiting_Union(t *testing.T) {
	t.Parallel()
	soon, late := time.UnixMilli(1).UTC(), time.UnixMilli(2).UTC()
	a := &runlane.Waiting{For: []runlane.WaitingFor{runlane.WaitingSignal}, Names: []string{"a"}, All: true, Until: late}
	b := &runlane.Waiting{For: []runlane.WaitingFor{runlane.WaitingInput}, Names: []string{"b"}, Prompt: "?", Until: soon}
	want := &runlane.Waiting{
		For: []runlane.WaitingFor{runlane.WaitingSignal, runlane.WaitingInput}, Names: []string{"a", "b"}, Prompt: "?", Until: soon,
	}
	for name, got := range map[string]*runlane.Waiting{"both": a.Union(b), "the other way round": b.Union(a)} {
		if d := cmp.Diff(want, got.Kept()); d != "" {
			t.Errorf("%s (-want +got)\n%s", name, d)
		}
	}
	none := (*runlane.Waiting)(nil)
	if d := cmp.Diff(a, none.Union(a)); d != "" || none.Union(nil) != nil {
		t.Errorf("with none: %s", d)
	}
	if forever := (&runlane.Waiting{For: a.For}).Union(b); !forever.Until.Equal(soon) {
		t.Errorf("a limit beside none is %s", forever.Until)
	}
	if !none.Timed() || a.Timed() || !(&runlane.Waiting{For: []runlane.WaitingFor{runlane.WaitingTime}}).Timed() {
		t.Error("who is moved on by time alone")
	}
}

func TestBlock(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("wrapped: %w", runlane.Block("raise the quota"))
	r, ok := errors.AsType[*runlane.ReleaseError](err)
	if !ok || !runlane.Suspended(err) || r.Waiting.Prompt != "raise the quota" || !r.Waiting.Has(runlane.WaitingBlocked) {
		t.Errorf("%+v", r)
	}
	if runlane.Suspended(nil) || runlane.Suspended(errors.New("x")) || runlane.Suspended((*runlane.ReleaseError)(nil)) {
		t.Error("what is no suspension")
	}
	if text := r.Error(); text != "suspended: raise the quota" {
		t.Error(text)
	}
}

// Questions of several waits are kept as far as there is room: each with its beginning, before names are.
func TestWaiting_Kept_Questions(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 80)
	ask := func(name, prompt string) *runlane.Waiting {
		return &runlane.Waiting{
			For:       []runlane.WaitingFor{runlane.WaitingSignal, runlane.WaitingInput},
			Names:     []string{name},
			Prompt:    prompt,
			Questions: []runlane.Question{{Name: name, Prompt: prompt}},
		}
	}
	for name, c := range map[string]struct {
		waits    []*runlane.Waiting
		asks     int
		anything bool
	}{
		"one":                 {[]*runlane.Waiting{ask("a", long)}, 1, false},
		"two short ones":      {[]*runlane.Waiting{ask("a", "A?"), ask("b", "B?")}, 2, false},
		"two long ones":       {[]*runlane.Waiting{ask("a", long), ask("b", long)}, 2, false},
		"four":                {[]*runlane.Waiting{ask("a", "A?"), ask("b", "B?"), ask("c", "C?"), ask("d", "D?")}, 3, true},
		"two with long names": {[]*runlane.Waiting{ask(strings.Repeat("a", 64), long), ask(strings.Repeat("b", 64), long)}, 2, true},
		"beside a block": {[]*runlane.Waiting{
			{For: []runlane.WaitingFor{runlane.WaitingBlocked}, Prompt: "repair it"}, ask("a", "A?"),
		}, 2, false},
	} {
		var all *runlane.Waiting
		for _, w := range c.waits {
			all = all.Union(w)
		}
		kept := all.Kept()
		if err := kept.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		size := len(strings.Join(kept.Names, ""))
		for _, q := range kept.Questions {
			size += len(q.Name) + len(q.Prompt) + 18
			if len(q.Prompt) < len("A?") {
				t.Errorf("%s: a question is cut to %q", name, q.Prompt)
			}
		}
		asks := kept.Asks()
		if len(asks) != c.asks || kept.Has(runlane.WaitingAnything) != c.anything || size > 200 || kept.Prompt != asks[0].Prompt {
			t.Errorf("%s: %d bytes, %+v", name, size, kept)
		}
		if (kept.Questions == nil) != (c.asks == 1) {
			t.Errorf("%s: questions %+v", name, kept.Questions)
		}
	}
}

// Questions have one order, by their names, whichever of the waits came first: as kept, and as they are asked.
func TestWaiting_Questions_AreByName(t *testing.T) {
	t.Parallel()
	ask := func(name string) *runlane.Waiting {
		return &runlane.Waiting{
			For:    []runlane.WaitingFor{runlane.WaitingSignal, runlane.WaitingInput},
			Names:  []string{name},
			Prompt: name + "?", Questions: []runlane.Question{{Name: name, Prompt: name + "?"}},
		}
	}
	want := []runlane.Question{{Name: "a", Prompt: "a?"}, {Name: "b", Prompt: "b?"}}
	for _, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
		both := ask(order[0]).Union(ask(order[1]))
		kept := both.Kept()
		if !slices.Equal(kept.Questions, want) || !slices.Equal(both.Asks(), want) || kept.Prompt != "a?" {
			t.Errorf("%v: kept %+v, asked %+v", order, kept, both.Asks())
		}
	}
}
