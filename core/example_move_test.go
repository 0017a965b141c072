package core_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// A run that waits on one lane goes on, on another.
func ExampleRuntime_Export() {
	ctx := context.Background()
	greet := runlane.NewTask[string]("greet", nil)
	open := func() *core.Runtime {
		rt, err := core.Open(ctx, memlane.New(), &core.Options{
			Logger: slog.New(slog.DiscardHandler),
			Handlers: []runlane.Handler{greet.Handle(func(_ context.Context, _ *runlane.Attempt, name string) error {
				fmt.Println("hello,", name)
				return nil
			})},
		})
		if err != nil {
			panic(err)
		}
		return rt
	}
	from, to := open(), open()
	defer func() { _, _ = from.Close(ctx), to.Close(ctx) }()
	if _, err := from.Trigger(ctx, greet.With("lane"), nil); err != nil {
		panic(err)
	}

	var file bytes.Buffer
	if _, err := from.Export(ctx, &file, &core.ExportOptions{Wait: true}); err != nil {
		panic(err)
	}
	moved, err := to.Import(ctx, bytes.NewReader(file.Bytes()))
	if err != nil {
		panic(err)
	}
	fmt.Println(moved.Runs, "run,", moved.Written, "written")
	if _, err := to.Tick(ctx, nil); err != nil { // sends its wakeup
		panic(err)
	}
	if err := to.Work(ctx, &core.WorkOptions{Drain: true}); err != nil {
		panic(err)
	}
	// Output:
	// 1 run, 1 written
	// hello, lane
}

// A lane is made only for a file that can be imported.
func ExampleCheckImport() {
	file := `{"export":{"v":1,"environment":"shop","at":"2026-03-01T12:00:00Z"}}` + "\n"
	environment, err := core.CheckImport(strings.NewReader(file))
	fmt.Printf("%q %v\n", environment, runlane.CodeOf(err))
	file += fmt.Sprintf(`{"end":{"runs":0,"schedules":0,"tasks":0,"sha256":"%x"}}`, sha256.Sum256([]byte(file)))
	environment, err = core.CheckImport(strings.NewReader(file))
	fmt.Printf("%q %v\n", environment, err)
	// Output:
	// "" validation_failed
	// "shop" <nil>
}
