package nightly_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/examples/nightly"
	"github.com/runlane/runlane-go/runlanetest"
)

// chain has n shops that sold 2 things each, of which every third is closed, and keeps the reports.
type chain struct {
	n       int
	reports map[string]nightly.Report
}

func (c *chain) app() *nightly.App {
	return &nightly.App{
		Shops: func(context.Context) (shops []nightly.Shop, err error) {
			for i := range c.n {
				shops = append(shops, nightly.Shop{ID: fmt.Sprint(i)})
			}
			return shops, nil
		},
		Sum: func(_ context.Context, s nightly.Shop) (nightly.Totals, error) {
			if s.ID == "3" {
				return nightly.Totals{}, fmt.Errorf("shop %s is closed", s.ID)
			}
			return nightly.Totals{Orders: 2, Cents: 50}, nil
		},
		Mail: func(_ context.Context, key string, r nightly.Report) error {
			if c.reports == nil {
				c.reports = map[string]nightly.Report{}
			}
			c.reports[key] = r
			return nil
		},
	}
}

func TestNightly_OneReportOfAllShops(t *testing.T) {
	t.Parallel()
	c := &chain{n: 1_000}
	rt := runlanetest.New(t, &runlanetest.Options{
		Handlers:  c.app().Handlers(),
		Schedules: []runlane.Schedule{nightly.Schedule},
		Start:     time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC),
	})
	rt.Advance(24 * time.Hour)
	runs := rt.Histories("reports.nightly")
	if len(runs) != 1 {
		t.Fatalf("%d runs", len(runs))
	}
	run := runs[0]
	report, err := nightly.Nightly.Result(&run.Run)
	want := nightly.Report{Shops: 1_000, Totals: nightly.Totals{Orders: 2 * 999, Cents: 50 * 999}, Failed: []string{"3"}}
	if err != nil || !same(report, want) || len(c.reports) != 1 || !same(c.reports[string(run.ID)], want) {
		t.Errorf("got %+v, %v, mailed %+v", report, err, c.reports)
	}
	runlanetest.RequireSteps(t, run, "shops", "mail")
	if run.Counters.Attempts != 2 || len(run.Children) != 1_000 {
		t.Errorf("%d attempts, %d children", run.Counters.Attempts, len(run.Children))
	}
}

func same(a, b nightly.Report) bool {
	return a.Shops == b.Shops && a.Totals == b.Totals && slices.Equal(a.Failed, b.Failed)
}

// A chain without shops has an empty report, which is not mailed.
func TestNightly_NoShops(t *testing.T) {
	t.Parallel()
	c := &chain{}
	run := runlanetest.Run(t, nightly.Nightly.Handle(c.app().Nightly), nightly.Nightly.With(nightly.Night{}))
	report, err := nightly.Nightly.Result(&run.Run)
	if err != nil || !same(report, nightly.Report{}) || len(c.reports) != 0 {
		t.Errorf("got %+v, %v, mailed %+v", report, err, c.reports)
	}
}
