// Command noop is a function with one task, whose handler does nothing: what it computes is the product's own.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"syscall"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/functions"
)

// PROFILE names a file that a processor profile is written into, from the first SIGUSR1 to the second.
func main() {
	if path := os.Getenv("PROFILE"); path != "" {
		go profile(path) // lives as long as the process
	}
	functions.Start(open)
}

func profile(path string) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	<-signals
	file, err := os.Create(path + ".part") // the user who starts this names it
	if err != nil {
		panic(err)
	}
	runtime.SetCPUProfileRate(1000) // StartCPUProfile finds it set, says so, and leaves it
	if err := pprof.StartCPUProfile(file); err != nil {
		panic(err)
	}
	<-signals
	pprof.StopCPUProfile()
	_ = file.Close()
	_ = os.Rename(path+".part", path)
}

func open(ctx context.Context) (*core.Runtime, error) {
	l, err := awslane.FromEnv(ctx)
	if err != nil {
		return nil, err
	}
	noop := runlane.NewTask("noop", &runlane.TaskOptions[struct{}]{Queue: runlane.Queue{Name: "webhooks"}})
	return core.Open(ctx, l, &core.Options{Handlers: []runlane.Handler{
		noop.Handle(func(context.Context, *runlane.Attempt, struct{}) error { return nil }),
	}})
}
