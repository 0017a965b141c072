package runlane_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/runlane/runlane-go"
)

// A handler that calls a run for each page, and ends with the number of all words.
func ExampleCallAll() {
	count := runlane.NewFunc[string, int]("pages.count", nil)
	total := runlane.NewFunc[[]string, int]("pages.total", nil)
	handler := total.Handle(func(ctx context.Context, a *runlane.Attempt, pages []string) (int, error) {
		counted, err := runlane.CallAll(ctx, a, count, pages, &runlane.CallOptions{Name: "pages"})
		if err != nil {
			return 0, err // as it is: a suspension, until all of them have ended
		}
		sum := 0
		for _, page := range counted {
			if page.Err != nil {
				return 0, page.Err
			}
			sum += page.Value
		}
		return sum, nil
	})
	output := ""
	a := runlane.NewAttempt(runlane.Run{}, 2, runlane.AttemptHost{
		Calls:   called{Output: []byte("3")},
		Reports: reported{&output},
	})
	err := handler.Execute(context.Background(), a, []byte(`["a page", "another"]`))
	fmt.Println(output, err)
	// Output: 6 <nil>
}

// reported keeps the output, as a runtime does.
type reported struct{ output *string }

func (r reported) ReportOutput(b json.RawMessage) error { *r.output = string(b); return nil }

func (reported) ReportProgress(context.Context, string) error { return nil }

// called stands for a runtime: every run that it calls has ended like this.
type called runlane.Run

func (c called) CallRuns(_ context.Context, request runlane.CallRequest) (runs []*runlane.Run, err error) {
	for _, call := range request.Calls {
		run := runlane.Run(c)
		run.ID, run.TaskID = "run_1", call.Task.ID
		if run.Status == "" {
			run.Status = runlane.StatusSucceeded
		}
		runs = append(runs, &run)
	}
	return runs, nil
}

// A called run that failed is an error with its own failure in the chain, and in a handler a permanent one.
func ExampleFunc_Call() {
	charge := runlane.NewFunc[int, string]("charge", nil)
	declined := runlane.Failure{Code: "card_declined", Message: "The card was declined."}
	a := runlane.NewAttempt(runlane.Run{}, 1, runlane.AttemptHost{
		Calls: called{Status: runlane.StatusFailed, Failure: declined},
	})
	_, err := charge.Call(context.Background(), a, 50, nil)
	fmt.Println(err)
	fmt.Println(errors.Is(err, runlane.ErrRunFailed), errors.Is(err, runlane.ErrorCode("card_declined")))
	fmt.Println(runlane.ValidateCallName("no:name") != nil)
	runs, err := a.CallRuns(context.Background(), runlane.CallRequest{Calls: []runlane.Call{charge.With(50)}})
	fmt.Println(len(runs), err)
	// Output:
	// run_failed: run run_1 of task "charge" failed: The card was declined.
	// true true
	// true
	// 1 <nil>
}

// The result of a run that was read.
func ExampleFunc_Result() {
	charge := runlane.NewFunc[int, string]("charge", nil)
	receipt, err := charge.Result(&runlane.Run{
		TaskID: "charge", Status: runlane.StatusSucceeded, Output: []byte(`"receipt 1"`),
	})
	fmt.Println(receipt, err)
	_, err = charge.Result(&runlane.Run{TaskID: "charge", Status: runlane.StatusRunning})
	fmt.Println(err)
	// Output:
	// receipt 1 <nil>
	// validation_failed: the run has not ended
}
