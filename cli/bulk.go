package cli

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

const (
	askHelp  = " The runs are counted first; without a terminal --yes is required."
	bulkHelp = "\n\nWithout RUN it applies to the runs of the filter, or with --all to every run." + askHelp
)

// Limits of one round, and of rounds that only count.
const (
	roundRuns   = 1000
	countRounds = 100
)

type bulk struct {
	all, dryRun, yes bool
	after            string
	limit            int
}

func (b *bulk) define(set *flag.FlagSet) {
	set.BoolVar(&b.all, "all", false, "every run there is, in place of a filter")
	set.BoolVar(&b.dryRun, "dry-run", false, "count, and change nothing")
	set.BoolVar(&b.yes, "yes", false, "do not ask")
	set.StringVar(&b.after, "after", "", "CURSOR from an interrupted call, to continue it")
	set.IntVar(&b.limit, "limit", 0, "NUMBER of runs at most; all unless given")
}

func (b *bulk) judge(selected *filter, args []string) error {
	switch {
	case len(args) > 0 && (!selected.empty() || b.all):
		return usagef("give runs, or a filter; ", "runs and a filter exclude each other")
	case len(args) == 0 && selected.empty() && !b.all:
		return usagef("name runs, give a filter like --task, or --all; ", "nothing says which runs are meant")
	case !selected.empty() && b.all:
		return usagef("leave one of them out; ", "--all and a filter exclude each other")
	case b.limit < 0:
		return usagef("", "--limit is %d", b.limit)
	default:
		return nil
	}
}

func (s *session) inBulk(
	ctx context.Context, op operation, selected *filter, b *bulk, changes core.ChangeOptions,
) error {
	rt, err := s.rt(ctx)
	if err != nil {
		return err
	}
	chosen, err := selected.build(ctx, s)
	if err != nil {
		return err
	}
	call := func(ctx context.Context, after runlane.Cursor, limit int, dry bool) (*core.BulkResult, error) {
		return op.all(ctx, rt, &core.BulkOptions{
			ChangeOptions: changes,
			RunFilter:     chosen,
			AllRuns:       b.all,
			After:         after,
			Cap:           min(limit, roundRuns),
			DryRun:        dry,
		})
	}
	return s.countAndDo(ctx, bulkCall{
		call:    call,
		verb:    op.verb,
		done:    op.done,
		after:   runlane.Cursor(b.after),
		limit:   b.limit,
		dryRun:  b.dryRun,
		yes:     b.yes,
		nothing: func() { selected.doubt(ctx, s) },
	})
}

type bulkCall struct {
	call        func(ctx context.Context, after runlane.Cursor, limit int, dry bool) (*core.BulkResult, error)
	verb, done  string
	after       runlane.Cursor
	limit       int // 0 means all
	dryRun, yes bool
	nothing     func() // reports that nothing matches; may be nil
	stay        string // why some runs are skipped, if counting already shows that
}

// applicable returns the number of runs that the operation applies to.
func (b *bulkCall) applicable(total *shown.Bulk) int {
	if b.stay != "" {
		return total.Matched - total.Skipped
	}
	return total.Matched
}

// text describes the number of matching runs, which may be a lower bound.
func (b *bulkCall) text(total *shown.Bulk) string {
	text := plural(b.applicable(total), "run matches", "runs match")
	if total.AtLeast {
		text = "at least " + text
	}
	if b.stay != "" && total.Skipped > 0 {
		text += fmt.Sprintf(" (%d more %s)", total.Skipped, b.stay)
	}
	return text
}

func (s *session) countAndDo(ctx context.Context, b bulkCall) error {
	counted, err := s.rounds(ctx, b, true)
	if err != nil {
		return err
	}
	if counted.Matched == 0 && b.nothing != nil {
		b.nothing()
	}
	if b.dryRun || b.applicable(&counted) == 0 && !counted.AtLeast {
		counted.DryRun = b.dryRun
		return s.showTotal(b, counted)
	}
	question := fmt.Sprintf("%s: %s them?", b.text(&counted), b.verb)
	if err := s.confirm(ctx, b.yes, question); err != nil {
		return err
	}
	total, err := s.rounds(ctx, b, false)
	if showErr := s.showTotal(b, total); showErr != nil && err == nil {
		err = showErr
	}
	if err != nil {
		if total.Next != "" {
			s.note("not finished: the same command with --after '%s' goes on", total.Next)
		}
		return err
	}
	if total.Failed > 0 {
		return &exitError{code: ExitFailed}
	}
	return nil
}

// rounds repeats the call until no runs are left or the limit is reached. The total is valid even with an error.
func (s *session) rounds(ctx context.Context, b bulkCall, dry bool) (total shown.Bulk, err error) {
	total.Verb, total.DryRun, total.Next = b.verb, dry, b.after
	for round := 1; ; round++ {
		limit := roundRuns
		if b.limit > 0 {
			limit = b.limit - b.applicable(&total)
		}
		result, err := b.call(ctx, total.Next, limit, dry)
		if result != nil {
			total.Matched += result.Matched
			total.Changed += result.Changed
			total.Skipped += result.Skipped
			total.Failed += len(result.Failed)
			total.Next = result.Next
			s.showFailed(result.Failed)
		}
		if err != nil {
			return total, err
		}
		if b.limit > 0 && b.applicable(&total) >= b.limit {
			if dry {
				total.Matched -= b.applicable(&total) - b.limit // a counting call may find slightly more
			}
			return total, nil
		}
		if total.Next == "" {
			return total, nil
		}
		if dry && round == countRounds {
			total.AtLeast = true
			return total, nil
		}
		if !dry {
			s.note("%s: %d, skipped: %d, failed: %d, going on", b.done, total.Changed, total.Skipped, total.Failed)
		}
	}
}

func (s *session) showFailed(failed map[runlane.RunID]error) {
	for _, id := range slices.Sorted(maps.Keys(failed)) {
		if !s.json {
			s.note("%s:", id)
		}
		s.report(failed[id])
	}
}

func (s *session) showTotal(b bulkCall, total shown.Bulk) error {
	if total.DryRun || total.Matched == 0 {
		total.Next = ""
	}
	if s.json {
		return s.emit("bulk", &total)
	}
	if total.DryRun || b.applicable(&total) == 0 && total.Changed == 0 {
		s.line("%s, nothing was changed", b.text(&total))
		return nil
	}
	s.line("%s: %d, skipped: %d, failed: %d", b.done, total.Changed, total.Skipped, total.Failed)
	return nil
}
