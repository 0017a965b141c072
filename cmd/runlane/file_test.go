package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
	"github.com/runlane/runlane-go/sqlitelane"
)

// onFile is the binary on a separate file.
func onFile(t *testing.T) (p *program, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "state.db")
	return &program{environment: []string{
		"RUNLANE_LANE=sqlite:" + path, "RUNLANE_TABLE=", "RUNLANE_QUEUES=", "RUNLANE_ENV=", "RUNLANE_LIMITS=", "USER=ada",
	}}, path
}

// writer is a program that executes tasks on the file. Its queue is an option: a limit is nothing that the binary knows.
func writer(t *testing.T, path string, concurrency int) *core.Runtime {
	t.Helper()
	l, err := sqlitelane.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	greet := runlane.NewTask[string]("greet", nil)
	rt, err := core.Open(t.Context(), l, &core.Options{
		Logger:    slog.New(slog.DiscardHandler),
		Handlers:  []runlane.Handler{greet.Handle(func(context.Context, *runlane.Attempt, string) error { return nil })},
		Schedules: []runlane.Schedule{{ID: "daily", When: runlane.Cron("0 8 * * *"), Call: greet.With("all")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Tick(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- rt.Work(ctx, &core.WorkOptions{Concurrency: concurrency}) }() // ends with the test
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return rt
}

// Every command does on a file what it does elsewhere, beside the program that executes the runs.
func TestBinary_OnAFile(t *testing.T) {
	t.Parallel()
	p, path := onFile(t)
	writer(t, path, 4)
	out, _ := p.run(t, 0, "trigger", "greet", `"ada"`, "--wait", "--json")
	var made struct {
		Run runlane.RunID `json:"runId"`
	}
	if err := json.Unmarshal([]byte(strings.SplitN(out, "\n", 2)[0]), &made); err != nil || made.Run == "" {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, call := range []struct {
		args []string
		says string
	}{
		{[]string{"runs", "get", string(made.Run)}, "succeeded"},
		{[]string{"runs", "list", "--json"}, string(made.Run)},
		{[]string{"runs", "events", string(made.Run)}, "run.succeeded"},
		{[]string{"runs", "rerun", string(made.Run)}, ""},
		{[]string{"tasks", "list"}, "greet"},
		{[]string{"schedules", "list"}, "daily"},
		{[]string{"schedules", "pause", "daily"}, ""},
		{[]string{"queues", "stats", "default"}, ""},
		{[]string{"queues", "list"}, "default"},
		{[]string{"deadletters", "list"}, ""},
		{[]string{"tick"}, ""},
		{[]string{"doctor", "--all"}, "ok       pages of the file: SQLite finds no fault"},
		{[]string{"backup", path + ".copy"}, path + ".copy has a copy of lane sqlite"},
		{[]string{"runs", "get", string(made.Run), "--lane", "sqlite:" + path + ".copy"}, "succeeded"},
		{[]string{"runs", "list", "--env", "other", "--json"}, `environment "other" has no runs here, "default" has: use --env`},
		{[]string{"runs", "prune", "--older-than", "1h", "--yes"}, ""},
	} {
		if out, news := p.run(t, 0, call.args...); !strings.Contains(out+news, call.says) || strings.Contains(out+news, "AWS") {
			t.Errorf("%v:\n%s%s", call.args, out, news)
		}
	}
	if out, _ := p.run(t, 0, "runs", "list", "--env", "other", "--json"); strings.Contains(out, string(made.Run)) {
		t.Errorf("another environment has the run:\n%s", out)
	}
	if _, news := p.run(t, 3, "runs", "get", "absent"); strings.Contains(news, "--env") {
		t.Error(news)
	}
	if _, news := p.run(t, 3, "runs", "get", string(made.Run), "--env", "other"); !strings.Contains(news, `"default" has`) {
		t.Errorf("a run of another environment: %s", news)
	}
}

// An empty file is no lane: a command says so, and leaves it as it is.
func TestBinary_EmptyFile_IsNamedForWhatItIs(t *testing.T) {
	t.Parallel()
	p, path := onFile(t)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"doctor", "runs list"} {
		out, news := p.run(t, 2, strings.Fields(command)...)
		if !strings.Contains(out+news, path+" is empty") || !strings.Contains(out+news, "restore COPY") {
			t.Errorf("%s: %s%s", command, out, news)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Errorf("the file was changed: %v", err)
	}
}

// A flag goes before the variable, and a mistyped path is told, not made.
func TestBinary_WhichLane(t *testing.T) {
	t.Parallel()
	p, path := onFile(t)
	if _, news := p.run(t, 2, "runs", "list"); !strings.Contains(news, "there is no file "+path) {
		t.Error(news)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file was made")
	}
	if _, news := p.run(t, 2, "runs", "list", "--lane", "postgres:x"); !strings.Contains(news, "sqlite:PATH, aws:, mem:") {
		t.Error(news)
	}
	if _, news := p.run(t, 2, "runs", "list", "--table", "runs", "--region", ""); strings.Contains(news, path) {
		t.Errorf("--table does not go before the variable: %s", news)
	}
	if _, news := p.run(t, 2, "runs", "list", "--lane", "aws:", "--table", ""); !strings.Contains(news, "no lane is chosen") {
		t.Error(news)
	}
	for want, below := range map[string][]string{"Usage: " + binary() + " COMMAND": nil, "Usage: " + binary() + " runs COMMAND": {"runs", "--env", "other"}} {
		args := append([]string{"--lane", "sqlite:" + path}, below...)
		if out, _ := p.run(t, 0, append(args, "--help")...); !strings.HasPrefix(out, want) {
			t.Errorf("%v: %s", args, out)
		}
	}
	other := filepath.Join(t.TempDir(), "other.db")
	if _, news := p.run(t, 2, "runs", "list", "--lane", "sqlite:"+other); !strings.Contains(news, "there is no file "+other) {
		t.Error(news)
	}
}

// Lists are read while a worker writes 1,000 runs a second and more.
func TestBinary_ListsAFileThatAWorkerWrites(t *testing.T) {
	t.Parallel()
	p, path := onFile(t)
	rt := writer(t, path, 16)
	var made atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 16)
	greet := runlane.NewTask[string]("greet", nil)
	for range cap(ended) {
		go func() { // ends with ctx
			for ctx.Err() == nil {
				if _, err := rt.Trigger(context.WithoutCancel(ctx), greet.With("ada"), nil); err != nil {
					ended <- err
					return
				}
				made.Add(1)
			}
			ended <- nil
		}()
	}
	late := time.Now().Add(patience.Limit)
	beside := 0 // lists during which the worker wrote: on a busy machine one or another may fall between two turns
	for lists := 0; lists < 5 || made.Load() < 2000 || beside < 3; lists++ {
		if time.Now().After(late) {
			t.Fatalf("%d runs were made, some of them during %d of %d lists", made.Load(), beside, lists)
		}
		before := made.Load()
		if out, _ := p.run(t, 0, "runs", "list", "--status", "finished", "--json"); lists > 0 && strings.Count(out, `"status":"succeeded"`) == 0 {
			t.Errorf("no finished run in\n%s", out)
		}
		if made.Load() > before {
			beside++
		}
	}
	stop()
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// A file is replaced by a copy of it, and not while a program uses it.
func TestBinary_RestoresAFile(t *testing.T) {
	t.Parallel()
	p, path := onFile(t)
	rt := writer(t, path, 4)
	p.run(t, 0, "backup", path+".copy")
	p.run(t, 0, "trigger", "greet", `"ada"`, "--wait")
	if _, news := p.run(t, 2, "restore", path+".copy", "--yes"); !strings.Contains(news, "is open in another process") {
		t.Error(news)
	}
	if err := rt.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.run(t, 0, "restore", path+".copy", "--yes")
	if out, _ := p.run(t, 0, "runs", "list", "--json"); strings.Contains(out, "run_") {
		t.Errorf("a run that was made after the copy is there:\n%s", out)
	}
}
