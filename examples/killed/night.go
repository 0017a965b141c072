package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/examples/nightly"
)

const reportID = runlane.RunID("report")

// night is a chain of shops that gets its report.
type night struct {
	n int

	mu      sync.Mutex
	sums    map[string]int // how often a shop was asked
	reports map[string]nightly.Report
	mails   int
}

func newNight(n, otherwise int) *night {
	return &night{n: cmp.Or(n, otherwise), sums: map[string]int{}, reports: map[string]nightly.Report{}}
}

// calls: the list, each shop, and the mail.
func (s *night) calls() int { return s.n + 2 }

func (s *night) begin(ctx context.Context, rt *core.Runtime) error {
	_, err := rt.Trigger(ctx, nightly.Nightly.With(nightly.Night{}), &runlane.TriggerOptions{RunID: reportID})
	return err
}

func (s *night) sides() map[string]side {
	return map[string]side{
		"/shops": func(string, []byte) (any, error) {
			shops := make([]nightly.Shop, s.n)
			for i := range shops {
				shops[i].ID = fmt.Sprint(i)
			}
			return shops, nil
		},
		"/sum": func(key string, _ []byte) (any, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.sums[key]++
			return nightly.Totals{Orders: 2, Cents: 50}, nil
		},
		"/mail": func(key string, body []byte) (any, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			var r nightly.Report
			s.mails++
			err := json.Unmarshal(body, &r)
			s.reports[key] = r
			return nil, err
		},
	}
}

func (s *night) look(ctx context.Context, rt *core.Runtime, deaths int) (f *findings, err error) {
	f = &findings{what: "reports"}
	run, err := rt.Runs().Get(ctx, reportID)
	if err != nil {
		return nil, err
	}
	got, err := nightly.Nightly.Result(run)
	want := nightly.Totals{Orders: 2 * s.n, Cents: int64(50 * s.n)}
	if err != nil || got.Totals != want || len(got.Failed) > 0 {
		f.wrong("the report is %+v, %v, not of %+v", got, err, want)
	}
	if len(s.reports) != 1 || s.reports[string(reportID)].Totals != want {
		f.wrong("%d reports were mailed", len(s.reports))
	}
	again := 0
	for _, n := range s.sums {
		again += n - 1
	}
	called := 0
	for summary, err := range rt.Runs().All(ctx, &core.ListOptions{
		RunFilter: core.RunFilter{SourceRunID: reportID},
		Limit:     runlane.MaxPageLimit,
	}) {
		if err != nil {
			return nil, err
		}
		if called++; summary.Status != runlane.StatusSucceeded {
			f.wrong("run %s is %s", summary.ID, summary.Status)
		}
	}
	if called != s.n {
		f.wrong("%d runs were called, not %d", called, s.n)
	}
	if bound := deaths * concurrency; again > bound || s.mails > 1+deaths {
		f.wrong("%d shops were summed up again, %d mails were sent, after %d deaths", again, s.mails, deaths)
	}
	f.count(0)
	f.say("shops     %d summed up, %d again after a death", len(s.sums), again)
	f.say("report    1 from %d runs, in %d attempts; mailed under one key, %d times",
		called, run.Counters.Attempts, s.mails)
	return f, nil
}
