package cli

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/shown"
)

func runsReceiptsCommand() *command {
	return &command{
		name:  "receipts",
		usage: "RUN",
		short: "List how the requests and commands of a run ended",
		min:   1,
		max:   1,
		long: "One for each attempt that kept one: the status and some headers of a response, or the exit code and the " +
			"end of the output of a command. docs/targets.md says what is kept.",
		examples: []string{"runs receipts run_01J8ZQ4T", "runs receipts run_01J8ZQ4T --json"},
		act: func(*flag.FlagSet) action {
			return func(ctx context.Context, s *session, args []string) error {
				run, err := s.findRun(ctx, args[0], false)
				if err != nil {
					return err
				}
				receipts, err := s.runtime.Runs().Receipts(ctx, run.ID)
				if err != nil {
					return err
				}
				return s.showReceipts(run, receipts)
			}
		},
	}
}

func (s *session) showReceipts(run *runlane.Run, receipts []runlane.Receipt) error {
	if s.json {
		for i := range receipts {
			if err := s.emit("receipt", &receipts[i]); err != nil {
				return err
			}
		}
		return nil
	}
	t := &table{header: []string{"ATTEMPT", "TARGET", "ANSWER", "ENDED", "TOOK"}, shrink: 1, spare: []int{4}}
	for i := range receipts {
		r := &receipts[i]
		took := ""
		if !r.StartedAt.IsZero() {
			took = r.EndedAt.Sub(r.StartedAt).Round(time.Millisecond).String()
		}
		t.add(fmt.Sprint(r.Attempt), r.Request+r.Command, shown.Answer(r), s.when(r.EndedAt), took)
	}
	if len(receipts) == 0 {
		s.note("run %s has no receipts", run.ID)
	}
	s.write(t)
	for i := range receipts {
		s.showReceiptTexts(&receipts[i])
	}
	return nil
}

// showReceiptTexts prints headers, body and outputs, each line behind its attempt.
func (s *session) showReceiptTexts(r *runlane.Receipt) {
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		s.line("%d %s: %s", r.Attempt, visibleText(name), visibleText(r.Headers[name]))
	}
	for _, part := range []struct{ name, text string }{{"body", r.Body}, {"stdout", r.Stdout}, {"stderr", r.Stderr}} {
		for text := range strings.Lines(part.text) {
			s.line("%d %s| %s", r.Attempt, part.name, visibleText(strings.TrimSuffix(text, "\n")))
		}
	}
}

// visibleText replaces what could move the cursor of a terminal: the text comes from elsewhere.
func visibleText(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\t' {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
