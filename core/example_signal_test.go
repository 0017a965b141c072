package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// A run waits for an approval; a webhook sends it, as often as it likes, with its own id.
func ExampleRuntime_Signal() {
	approved := runlane.NewSignal[string]("approved")
	order := runlane.NewTask[int]("order", nil)
	handler := order.Handle(func(ctx context.Context, a *runlane.Attempt, _ int) error {
		by, err := approved.Wait(ctx, a, nil)
		if err != nil {
			return err
		}
		return a.SetOutput(by)
	})
	ctx := context.Background()
	rt, err := core.Open(ctx, memlane.New(), &core.Options{Handlers: []runlane.Handler{handler}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close(ctx)

	made, _ := rt.Trigger(ctx, order.With(50), nil)
	waits, _ := rt.ExecuteNext(ctx, nil)
	fmt.Println(waits.Run.Status, waits.Run.Waiting.Names)
	for range 2 {
		err = rt.Signal(ctx, made.Run.ID, approved.With("ada"), &runlane.SignalOptions{ID: "hook 1"})
		fmt.Println(err)
	}
	done, _ := rt.ExecuteNext(ctx, nil)
	fmt.Println(done.Run.Status, string(done.Run.Output))
	err = rt.Signal(ctx, made.Run.ID, approved.With("eve"), nil)
	fmt.Println(errors.Is(err, runlane.ErrRunEnded))
	// Output:
	// released [approved]
	// <nil>
	// <nil>
	// succeeded "ada"
	// true
}

// A signal to a node of a flow reaches its latest run: here that of a retry.
func ExampleRuntime_SignalNode() {
	approved := runlane.NewSignal[bool]("approved")
	deploy := runlane.NewTask[int]("deploy", nil)
	ctx := context.Background()
	rt, err := core.Open(ctx, memlane.New(), &core.Options{Handlers: []runlane.Handler{
		deploy.Handle(func(ctx context.Context, a *runlane.Attempt, _ int) error {
			yes, err := approved.Wait(ctx, a, nil)
			if err == nil && !yes {
				err = runlane.Permanent(errors.New("refused"))
			}
			return err
		}),
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close(ctx)
	f := runlane.NewFlow("release-42")
	node := f.Add("deploy", deploy.With(1), nil)
	_, err = rt.StartFlow(ctx, f, nil)
	fmt.Println(err)
	for _, answer := range []bool{false, true} {
		err := rt.SignalNode(ctx, node, approved.With(answer), nil)
		done, _ := rt.ExecuteNext(ctx, nil)
		fmt.Println(done.Run.Status, err)
		if !answer {
			_, err = rt.Flows().Retry(ctx, "release-42", nil)
			fmt.Println(err)
		}
	}
	// Output:
	// <nil>
	// failed <nil>
	// <nil>
	// succeeded <nil>
}

// A token from a mail's link answers once, and needs no other credential.
func ExampleRuntime_Answer() {
	approved := runlane.NewSignal[string]("approved")
	token := ""
	order := runlane.NewTask[int]("order", nil)
	handler := order.Handle(func(ctx context.Context, a *runlane.Attempt, _ int) (err error) {
		if token, err = approved.Token(ctx, a, nil); err != nil {
			return err
		}
		_, err = approved.Wait(ctx, a, nil)
		return err
	})
	ctx := context.Background()
	rt, err := core.Open(ctx, memlane.New(), &core.Options{
		Handlers:  []runlane.Handler{handler},
		TokenKeys: [][]byte{[]byte(strings.Repeat("k", 32))}, // from a secret
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close(ctx)
	_, _ = rt.Trigger(ctx, order.With(50), nil)
	_, _ = rt.ExecuteNext(ctx, nil)
	asked, _ := rt.ReadToken(token) // for the page of the link
	fmt.Println(asked.Signal)
	fmt.Println(rt.Answer(ctx, token, approved.With("ada"), nil))
	fmt.Println(errors.Is(rt.Answer(ctx, token, approved.With("eve"), nil), runlane.ConflictSignal))
	fmt.Println(errors.Is(rt.Answer(ctx, token+"x", approved.With("eve"), nil), runlane.ErrTokenInvalid))
	// Output:
	// approved
	// <nil>
	// true
	// true
}
