// Package nightly sums up every shop of a chain each night and mails one report. It shows a fan-out of calls:
// docs/workflows.md.
package nightly

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
)

// Shop is one of the chain.
type Shop struct {
	ID string `json:"id"`
}

// Totals are what a shop has sold.
type Totals struct {
	Orders int   `json:"orders"`
	Cents  int64 `json:"cents"`
}

// Night is the payload of a report: nothing.
type Night struct{}

// Report is what is mailed.
type Report struct {
	Shops  int      `json:"shops"`
	Totals Totals   `json:"totals"`
	Failed []string `json:"failed,omitempty"`
}

var (
	// SumUp sums up one shop.
	SumUp = runlane.NewFunc[Shop, Totals]("reports.shop", &runlane.TaskOptions[Shop]{
		Retry: runlane.Retry{MaxAttempts: 3}, Timeout: time.Minute,
	})
	// Nightly makes the report.
	Nightly = runlane.NewFunc[Night, Report]("reports.nightly", nil)
	// Schedule makes a report each night.
	Schedule = runlane.Schedule{
		ID: "nightly", When: runlane.Cron("15 2 * * *").In("Europe/Berlin"), Call: Nightly.With(Night{}),
	}
)

// App has what the handlers need.
type App struct {
	// Shops lists the chain.
	Shops func(ctx context.Context) ([]Shop, error)
	// Sum asks one shop. It is asked again when a worker died.
	Sum func(ctx context.Context, s Shop) (Totals, error)
	// Mail sends a report. Called with a key again, it sends nothing.
	Mail func(ctx context.Context, key string, r Report) error
}

// Handlers are the tasks that a program with this application executes.
func (app *App) Handlers() []runlane.Handler {
	return []runlane.Handler{Nightly.Handle(app.Nightly), SumUp.Handle(app.SumUp)}
}

// Nightly calls a run for each shop and waits for all of them at once, however many there are. It holds no worker
// meanwhile: it is executed twice, at the beginning and at the end.
func (app *App) Nightly(ctx context.Context, a *runlane.Attempt, _ Night) (Report, error) {
	shops, err := runlane.Step(ctx, a, "shops", app.Shops) // the list is the same in every attempt
	if err != nil {
		return Report{}, err
	}
	if len(shops) == 0 {
		return Report{}, nil
	}
	results, err := runlane.CallAll(ctx, a, SumUp, shops, nil)
	if err != nil {
		return Report{}, err
	}
	report := Report{Shops: len(shops)}
	for i, result := range results {
		if result.Err != nil { // a shop that failed is a line of the report, not its end
			report.Failed = append(report.Failed, shops[i].ID)
			continue
		}
		report.Totals.Orders += result.Value.Orders
		report.Totals.Cents += result.Value.Cents
	}
	return report, a.Do(ctx, "mail", func(ctx context.Context) error { return app.Mail(ctx, a.EffectID(), report) })
}

// SumUp asks a shop.
func (app *App) SumUp(ctx context.Context, _ *runlane.Attempt, s Shop) (Totals, error) {
	return app.Sum(ctx, s)
}
