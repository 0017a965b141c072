package sqlitelane_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/sqlitelane"
)

// A run that is there after the program was closed, and is executed by the next one.
func ExampleOpen() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "runlane.db")

	greet := runlane.NewTask[string]("greet", nil)
	hello := func(_ context.Context, _ *runlane.Attempt, name string) error {
		fmt.Println("hello", name)
		return nil
	}

	first, err := sqlitelane.Open(ctx, path, nil)
	if err != nil {
		panic(err)
	}
	web, err := core.Open(ctx, first, nil)
	if err != nil {
		panic(err)
	}
	run, err := web.Trigger(ctx, greet.With("world"), nil)
	if err != nil {
		panic(err)
	}
	if err := web.Close(ctx); err != nil {
		panic(err)
	}

	second, err := sqlitelane.Open(ctx, path, &sqlitelane.Options{Sync: sqlitelane.SyncFull})
	if err != nil {
		panic(err)
	}
	worker, err := core.Open(ctx, second, &core.Options{Handlers: []runlane.Handler{greet.Handle(hello)}})
	if err != nil {
		panic(err)
	}
	if _, err := worker.ExecuteNext(ctx, nil); err != nil {
		panic(err)
	}
	done, err := worker.Runs().Get(ctx, run.Run.ID)
	if err != nil {
		panic(err)
	}
	fmt.Println(done.Status)
	if err := worker.Close(ctx); err != nil {
		panic(err)
	}
	// Output:
	// hello world
	// succeeded
}
