package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// What each attempt of a run logged, kept with the run.
func ExampleRuns_Logs() {
	ctx := context.Background()
	load := runlane.NewTask("load", &runlane.TaskOptions[string]{KeepLogs: true})
	rt, err := core.Open(ctx, memlane.New(), &core.Options{
		Logger: slog.New(slog.DiscardHandler), // where the program's own log goes
		Handlers: []runlane.Handler{
			load.Handle(func(_ context.Context, a *runlane.Attempt, table string) error {
				a.Logger().Info("loaded", "table", table, "rows", 12)
				return nil
			}),
		},
	})
	if err != nil {
		panic(err)
	}
	defer rt.Close(ctx)
	result, err := rt.RunNow(ctx, load.With("orders"), nil)
	if err != nil {
		panic(err)
	}
	for line, err := range rt.Runs().Logs(ctx, result.Run.ID, &core.LogOptions{Attempt: 1}) {
		if err != nil {
			panic(err)
		}
		var said struct {
			Level, Msg, Table string
			Rows              int
		}
		if err := json.Unmarshal(line.Line, &said); err != nil {
			panic(err)
		}
		fmt.Println(line.Attempt, said.Level, said.Msg, said.Table, said.Rows)
	}
	// Output: 1 INFO loaded orders 12
}
