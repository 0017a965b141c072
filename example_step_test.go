package runlane_test

import (
	"context"
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// remembering executes a run of two attempts, the first of which ends with a release.
func remembering(handler func(context.Context, *runlane.Attempt) error) (*core.Runtime, runlane.RunID) {
	ctx, now := context.Background(), time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	task := runlane.NewTask[struct{}]("orders.place", nil)
	rt, err := core.Open(ctx, memlane.New(), &core.Options{
		World: &core.World{Now: func() time.Time { return now }},
		Handlers: []runlane.Handler{task.Handle(func(ctx context.Context, a *runlane.Attempt, _ struct{}) error {
			if err := handler(ctx, a); err != nil || a.Number > 1 {
				return err
			}
			return runlane.Release(time.Second, "to be called again")
		})},
	})
	if err != nil {
		panic(err)
	}
	result, err := rt.RunNow(ctx, task.With(struct{}{}), nil)
	if err != nil {
		panic(err)
	}
	now = now.Add(time.Second)
	if _, err := rt.ExecuteNext(ctx, nil); err != nil {
		panic(err)
	}
	return rt, result.Run.ID
}

// What has succeeded is not executed again: later attempts get its result.
func ExampleStep() {
	rt, _ := remembering(func(ctx context.Context, a *runlane.Attempt) error {
		receipt, err := runlane.Step(ctx, a, "charge", func(context.Context) (string, error) {
			return fmt.Sprint("charged by attempt ", a.Number), nil
		})
		fmt.Println("attempt", a.Number, "knows:", receipt)
		return err
	})
	_ = rt.Close(context.Background())
	// Output:
	// attempt 1 knows: charged by attempt 1
	// attempt 2 knows: charged by attempt 1
}

// A handler that changed goes on with a run in the way in which it began.
func ExampleAttempt_Began() {
	ctx := context.Background()
	task := runlane.NewTask("orders.place", &runlane.TaskOptions[struct{}]{Version: 2})
	rt, err := core.Open(ctx, memlane.New(), &core.Options{
		Handlers: []runlane.Handler{task.Handle(func(ctx context.Context, a *runlane.Attempt, _ struct{}) error {
			began, err := a.Began(ctx)
			if err != nil {
				return err
			}
			if began < 2 {
				fmt.Println("as version 1 did it")
				return nil
			}
			fmt.Println("as version 2 does it")
			return nil
		})},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close(ctx)
	if _, err := rt.RunNow(ctx, task.With(struct{}{}), nil); err != nil {
		fmt.Println(err)
	}
	// Output: as version 2 does it
}

func ExampleAttempt_Do() {
	rt, id := remembering(func(ctx context.Context, a *runlane.Attempt) error {
		for _, address := range []string{"ada@example.com", "bob@example.com"} { // each round has its name
			err := a.Do(ctx, "mail/"+address, func(context.Context) error {
				fmt.Println("attempt", a.Number, "mails", address)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	steps, err := rt.Runs().Steps(context.Background(), id)
	fmt.Println(len(steps), steps[0].Name, err)
	_ = rt.Close(context.Background())
	// Output:
	// attempt 1 mails ada@example.com
	// attempt 1 mails bob@example.com
	// 2 mail/ada@example.com <nil>
}

// A long loop goes on where the attempt before has ended.
func ExampleAttempt_Checkpoint() {
	rt, _ := remembering(func(ctx context.Context, a *runlane.Attempt) error {
		row := 0
		if _, err := a.Restore(ctx, "rows", &row); err != nil {
			return err
		}
		fmt.Println("attempt", a.Number, "begins at row", row)
		for ; row < 1000*a.Number; row++ {
			if err := a.Checkpoint(ctx, "rows", row+1); err != nil {
				return err
			}
		}
		return nil
	})
	_ = rt.Close(context.Background())
	// Output:
	// attempt 1 begins at row 0
	// attempt 2 begins at row 1000
}

func ExampleAttempt_Restore() {
	rt, _ := remembering(func(ctx context.Context, a *runlane.Attempt) error {
		var page string
		found, err := a.Restore(ctx, "page", &page)
		fmt.Printf("%t %q\n", found, page)
		if err != nil {
			return err
		}
		return a.Checkpoint(ctx, "page", "the second")
	})
	_ = rt.Close(context.Background())
	// Output:
	// false ""
	// true "the second"
}

// No worker waits while a run sleeps.
func ExampleAttempt_Sleep() {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	remind := runlane.NewTask[string]("invoices.remind", nil)
	ctx := context.Background()
	rt, err := core.Open(ctx, memlane.New(), &core.Options{
		World: &core.World{Now: func() time.Time { return now }},
		Handlers: []runlane.Handler{remind.Handle(func(ctx context.Context, a *runlane.Attempt, customer string) error {
			if err := a.Sleep(ctx, "term", 14*24*time.Hour); err != nil {
				return err // until the term is over: a suspension
			}
			fmt.Println("reminding", customer)
			return nil
		})},
	})
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close(ctx) }()
	result, err := rt.RunNow(ctx, remind.With("ada"), nil)
	fmt.Println(result.Run.Status, result.Run.RunAt.Format(time.DateOnly), err)
	now = now.Add(14 * 24 * time.Hour)
	_, err = rt.ExecuteNext(ctx, nil)
	fmt.Println(err)
	// Output:
	// released 2026-03-15 <nil>
	// reminding ada
	// <nil>
}

// Snapshots are for who looks at the run, and for later attempts that go on from what was.
func ExampleAttempt_Snapshot() {
	rt, id := remembering(func(ctx context.Context, a *runlane.Attempt) error {
		return a.Snapshot(ctx, fmt.Sprint("draft/", a.Number), map[string]int{"words": 100 * a.Number})
	})
	snapshots, err := rt.Runs().Snapshots(context.Background(), id)
	for _, s := range snapshots {
		fmt.Println(s.Name, string(s.Result), err)
	}
	_ = rt.Close(context.Background())
	// Unordered output:
	// draft/2 {"words":200} <nil>
	// draft/1 {"words":100} <nil>
}

func ExampleAttempt_Snapshots() {
	rt, _ := remembering(func(ctx context.Context, a *runlane.Attempt) error {
		seen, err := a.Snapshots(ctx)
		fmt.Println("attempt", a.Number, "finds", len(seen))
		if err != nil {
			return err
		}
		return a.Snapshot(ctx, fmt.Sprint("draft/", a.Number), "text")
	})
	_ = rt.Close(context.Background())
	// Output:
	// attempt 1 finds 0
	// attempt 2 finds 1
}
