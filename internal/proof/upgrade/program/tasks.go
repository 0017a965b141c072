package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sealed"
)

// Job is the payload of all tasks.
type Job struct {
	Name string `json:"name"`
	// Do is what the handler does: succeed (also ""), fail, retry, release, hold or die.
	Do string `json:"do,omitempty"`
	// Gate is the file for which hold waits.
	Gate string `json:"gate,omitempty"`
	// Milliseconds that retry and release ask for.
	Milliseconds int    `json:"milliseconds,omitempty"`
	Pad          string `json:"pad,omitempty"`
}

const (
	attemptTime = 26 * time.Second // what an invocation of 30 s leaves to a handler, less a second
	margin      = 3 * time.Second
	gateLook    = 50 * time.Millisecond
)

var retry = runlane.Retry{MaxAttempts: 5, Backoff: runlane.Fixed(time.Second)}

// Work waits in the queue that has no limit.
var Work = runlane.NewTask("upgrade.work", &runlane.TaskOptions[Job]{Retry: retry, Timeout: attemptTime})

// Bound waits in a queue of two slots, which is FIFO.
var Bound = runlane.NewTask("upgrade.bound", &runlane.TaskOptions[Job]{
	Queue:   runlane.Queue{Name: "orders", Concurrency: 2},
	Retry:   retry,
	Timeout: attemptTime,
})

// Schedules: beat makes a run each ten seconds, and none may be missing however late ticks are. busy leaves out what
// comes while its last run is active. rare does nothing while this runs.
var schedules = []runlane.Schedule{
	{
		ID:      "beat",
		When:    runlane.Every(10 * time.Second),
		Call:    Work.With(Job{Name: "beat"}),
		Misfire: runlane.Misfire{Policy: runlane.MisfireCatchUp, Limit: 500, Window: time.Hour},
	},
	{
		ID:      "busy",
		When:    runlane.Every(10 * time.Second),
		Call:    Work.With(Job{Name: "busy", Do: "hold", Gate: "last"}),
		Overlap: runlane.OverlapForbid,
	},
	{ID: "rare", When: runlane.Cron("0 0 29 2 *"), Call: Work.With(Job{Name: "rare"})},
}

// open opens the program for functions and commands, which have the keys.
func open(ctx context.Context) (*core.Runtime, error) { return openWith(ctx, true, nil) }

func openWith(ctx context.Context, seal bool, transport func(lane.Transport) lane.Transport) (*core.Runtime, error) {
	l, err := awslane.FromEnv(ctx)
	if err != nil {
		return nil, err
	}
	if transport != nil {
		l.Transport = transport(l.Transport)
	}
	options := &core.Options{Handlers: []runlane.Handler{Work.Handle(work), Bound.Handle(work)}, Schedules: schedules}
	if seal {
		key, err := sealed.KeyOf("one", []byte("of no secret, and 32 bytes long."))
		if err != nil {
			return nil, err
		}
		if options.Codec, err = sealed.New([]sealed.Key{key}, nil); err != nil {
			return nil, err
		}
	}
	return core.Open(ctx, l, options)
}

// Note is a line about an attempt.
type Note struct {
	Run     runlane.RunID `json:"run"`
	Name    string        `json:"name"`
	Attempt int           `json:"attempt"`
	By      string        `json:"by"`
	What    string        `json:"what"` // started, or what the handler returned
}

func note(a *runlane.Attempt, j *Job, what string) error {
	line, err := json.Marshal(Note{a.Run.ID, j.Name, a.Number, built, what})
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(folder, "notes"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n')) // in one piece, also beside other processes
	return errors.Join(err, file.Close())
}

func work(ctx context.Context, a *runlane.Attempt, j Job) error {
	if err := note(a, &j, "started"); err != nil {
		return err
	}
	wait := time.Duration(j.Milliseconds) * time.Millisecond
	switch {
	case j.Do == "die" && a.Number == 1:
		return kill()
	case j.Do == "fail":
		return errors.Join(note(a, &j, "failed"), runlane.Permanent(errors.New("as it was told")))
	case j.Do == "retry" && a.Run.Counters.Failures == 0:
		return errors.Join(note(a, &j, "failed"), runlane.RetryAfter(wait, errors.New("as it was told")))
	case j.Do == "release" && a.Run.Counters.Releases == 0:
		return errors.Join(note(a, &j, "released"), runlane.Release(wait, "as it was told"))
	case j.Do == "hold" && !passed(ctx, j.Gate):
		return errors.Join(note(a, &j, "released"), runlane.Release(500*time.Millisecond, "the gate is closed"))
	}
	if err := a.SetOutput(map[string]string{"name": j.Name, "by": built}); err != nil {
		return err
	}
	return note(a, &j, "succeeded")
}

// kill ends this process as an outage does, by the signal that no program can handle.
func kill() error {
	own, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	if err := own.Kill(); err != nil {
		return err
	}
	select {} // the signal is under way
}

// passed waits for a gate until little of the attempt's time is left. A cancellation does not keep it from waiting.
func passed(ctx context.Context, gate string) bool {
	deadline := time.Now().Add(attemptTime - margin)
	if d, ok := ctx.Deadline(); ok && d.Add(-margin).Before(deadline) {
		deadline = d.Add(-margin)
	}
	ticker := time.NewTicker(gateLook)
	defer ticker.Stop()
	for time.Now().Before(deadline) {
		if _, err := os.Stat(filepath.Join(folder, gate)); err == nil {
			return true
		}
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, runlane.ErrCancelRequested) {
			return false
		}
		<-ticker.C
	}
	return false
}
