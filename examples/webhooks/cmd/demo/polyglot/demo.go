package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// demo starts and kills the processes, and accounts for the runs.
type demo struct {
	out                               io.Writer
	runs                              int
	limit                             time.Duration
	runlane, python, clients, scripts string

	folder, url string
	server      *program
	programs    []*program // in the order in which they are killed
}

// program is one of the four processes.
type program struct {
	name    string
	command func() *exec.Cmd
	process *exec.Cmd
	lines   *bufio.Reader // of stdout
	kills   int
}

func (p *program) start() error {
	p.process = p.command()
	p.process.WaitDelay = time.Second
	stdout, err := p.process.StdoutPipe()
	if err != nil {
		return err
	}
	p.lines = bufio.NewReader(stdout)
	return p.process.Start()
}

// kill ends it without a warning.
func (p *program) kill() {
	if p.process == nil || p.process.Process == nil {
		return
	}
	_ = p.process.Process.Kill() // it may have ended
	_ = p.process.Wait()         // says that it was killed
}

// run returns how many runs did not succeed.
func (d *demo) run(ctx context.Context) (lost int, err error) {
	if d.folder, err = os.MkdirTemp("", "polyglot-"); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(d.folder)) }()
	defer func() {
		for _, p := range d.programs {
			p.kill()
		}
	}()
	began := time.Now()
	if err := d.startAll(ctx); err != nil {
		return 0, err
	}
	if err := d.trigger(ctx); err != nil {
		return 0, err
	}
	if err := d.killInTurn(ctx, began.Add(d.limit)); err != nil {
		return 0, err
	}
	return d.account(ctx, time.Since(began))
}

func (d *demo) startAll(ctx context.Context) error {
	for _, path := range []*string{&d.runlane, &d.clients, &d.scripts} {
		whole, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = whole
	}
	file, err := tasks()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(d.folder, "tasks.json"), file, 0o600); err != nil {
		return err
	}
	own, err := os.Executable()
	if err != nil {
		return err
	}
	address := "127.0.0.1:0"
	d.server = d.program(ctx, "server", func() []string {
		return []string{d.runlane, "serve", "--tasks", "tasks.json", "--listen", address}
	})
	if err := d.server.start(); err != nil {
		return err
	}
	line, err := d.server.lines.ReadString('\n')
	if err != nil {
		return fmt.Errorf("the server does not start: %w", err)
	}
	d.url = strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	address = strings.TrimPrefix(d.url, "http://") // from now on
	d.programs = []*program{
		d.program(ctx, "go", func() []string { return []string{own, "-worker"} }),
		d.program(ctx, "python", func() []string { return []string{d.python, filepath.Join(d.scripts, "worker.py")} }),
		d.program(ctx, "typescript", func() []string {
			return []string{"node", filepath.Join(d.scripts, "worker.mjs")}
		}),
		d.server,
	}
	for _, p := range d.programs[:3] {
		if err := p.start(); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) program(ctx context.Context, name string, arguments func() []string) *program {
	return &program{name: name, command: func() *exec.Cmd {
		all := arguments()
		c := exec.CommandContext(ctx, all[0], all[1:]...) // killed, as by its turn, when ctx ends
		c.Dir = d.folder
		c.Env = append(os.Environ(),
			"RUNLANE_LANE=sqlite:state.db",
			"RUNLANE_URL="+d.url,
			"PYTHONPATH="+filepath.Join(d.clients, "python", "src"),
			"CLIENT="+filepath.Join(d.clients, "typescript", "dist", "index.js"),
			fmt.Sprintf("CONCURRENCY=%d", concurrency),
			fmt.Sprintf("ATTEMPT_MS=%d", attemptTime.Milliseconds()),
			fmt.Sprintf("LEASE_MS=%d", lease.Milliseconds()),
		)
		return c
	}}
}

// id names a run, so that a request can be repeated; words is how many words its text has.
func id(n int) string { return fmt.Sprintf("poly-%05d", n) }

func words(n int) int { return n%97 + 1 }

func (d *demo) trigger(ctx context.Context) error {
	all := make([]map[string]any, d.runs)
	for n := range all {
		all[n] = map[string]any{
			"task":    taskID,
			"runId":   id(n),
			"payload": text{Text: strings.Repeat("word ", words(n))},
		}
	}
	var made struct{ Created, Failed int }
	if err := d.ask(ctx, "POST", "/v1/batch", map[string]any{"runs": all}, &made); err != nil {
		return err
	}
	if made.Created != d.runs {
		return fmt.Errorf("%d of %d runs were made", made.Created, d.runs)
	}
	return nil
}

// killInTurn kills one process each second and starts it again, until no run is active, or the time is over.
func (d *demo) killInTurn(ctx context.Context, end time.Time) error {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for n := 0; time.Now().Before(end); n++ {
		select {
		case <-second.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		var page struct{ Items []json.RawMessage }
		if err := d.ask(ctx, "GET", "/v1/runs?status=active&limit=1", nil, &page); err != nil {
			return err
		}
		if len(page.Items) == 0 {
			return nil
		}
		p := d.programs[n%len(d.programs)]
		p.kill()
		p.kills++
		if err := p.start(); err != nil {
			return err
		}
		if p == d.server {
			if _, err := p.lines.ReadString('\n'); err != nil {
				return fmt.Errorf("the server does not start again: %w", err)
			}
		}
	}
	return nil
}

// account reads each run and counts how they ended. A program that had no part in it is an error.
func (d *demo) account(ctx context.Context, took time.Duration) (lost int, err error) {
	succeeded, failed, attempts, by := 0, 0, 0, map[string]int{}
	for n := range d.runs {
		var run struct {
			Status   string
			Output   counted
			Counters struct{ Attempts int }
		}
		if err := d.ask(ctx, "GET", "/v1/runs/"+id(n), nil, &run); err != nil {
			return 0, err
		}
		attempts += run.Counters.Attempts
		switch {
		case run.Status == "succeeded" && run.Output.Words == words(n):
			succeeded++
			by[run.Output.By]++
		case run.Status == "succeeded", run.Status == "failed", run.Status == "cancelled":
			failed++
		}
	}
	var kills, ends []string
	for _, p := range d.programs {
		kills = append(kills, fmt.Sprintf("%s %d times", p.name, p.kills))
		if p != d.server {
			ends = append(ends, fmt.Sprintf("%d by %s", by[p.name], p.name))
		}
	}
	fmt.Fprintf(d.out, "killed: %s\n", strings.Join(kills, ", "))
	fmt.Fprintf(d.out, "completed: %s, in %d attempts and %.1f s\n", strings.Join(ends, ", "), attempts, took.Seconds())
	for _, p := range d.programs {
		if p.kills == 0 {
			err = errors.Join(err, fmt.Errorf("%s was never killed", p.name))
		}
		if p != d.server && by[p.name] == 0 {
			err = errors.Join(err, fmt.Errorf("%s completed nothing", p.name))
		}
	}
	lost = d.runs - succeeded - failed
	fmt.Fprintf(d.out, "demo: %d runs, %d succeeded, %d failed, %d lost\n", d.runs, succeeded, failed, lost)
	return failed + lost, err
}

// ask sends a request of the API, and again while the server does not answer.
func (d *demo) ask(ctx context.Context, method, path string, body, into any) error {
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	for {
		r, err := http.NewRequestWithContext(ctx, method, d.url+path, bytes.NewReader(sent))
		if err != nil {
			return err
		}
		if body != nil {
			r.Header.Set("Content-Type", "application/json")
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			continue // it starts again
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil {
			continue
		}
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%s %s: %d %s", method, path, answer.StatusCode, text)
		}
		return json.Unmarshal(text, into)
	}
}
