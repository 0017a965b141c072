// Command targets delivers 329 webhooks with the program runlane and a YAML file alone, and kills the worker in between:
//
//	make demo-targets
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/runlane/runlane-go/examples/webhooks/data"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := demo(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

func demo(ctx context.Context, args []string) (err error) {
	if len(args) != 2 {
		return errors.New("usage: targets RUNLANE FILE")
	}
	folder, err := os.MkdirTemp("", "runlane-targets")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	r := &receiver{accepted: map[string]int{}, came: make(chan struct{}, 10_000)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	served := &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	defer served.Close()
	go func() { _ = served.Serve(listener) }() // ends with Close
	d := &deliveries{program: args[0], file: args[1], environment: append(os.Environ(),
		"RUNLANE_LANE=sqlite:"+filepath.Join(folder, "state.db"), "HOOK_URL=http://"+listener.Addr().String()+"/hook")}
	if r.want, err = d.writeBatch(filepath.Join(folder, "batch.ndjson")); err != nil {
		return err
	}
	return d.deliver(ctx, r)
}

// deliveries are the commands of the demo.
type deliveries struct {
	program, file, batch string
	environment          []string
}

func (d *deliveries) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, d.program, args...)
	c.Env = d.environment
	return c
}

// output runs a command to its end.
func (d *deliveries) output(ctx context.Context, args ...string) (string, error) {
	c := d.command(ctx, args...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("runlane %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

// writeBatch makes a line of "trigger --batch" of each webhook, with its ID as the run's.
func (d *deliveries) writeBatch(name string) (count int, err error) {
	input, err := data.GitHubWebhooks()
	if err != nil {
		return 0, err
	}
	var lines bytes.Buffer
	scanner := bufio.NewScanner(input)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var webhook struct{ ID string }
		if err := json.Unmarshal(scanner.Bytes(), &webhook); err != nil {
			return 0, err
		}
		fmt.Fprintf(&lines, `{"runId":%q,"idempotencyKey":%q,"payload":%s}`+"\n", webhook.ID, webhook.ID, scanner.Bytes())
		count++
	}
	d.batch = name
	return count, errors.Join(scanner.Err(), os.WriteFile(name, lines.Bytes(), 0o600))
}

// worker starts a worker, and returns what kills it.
func (d *deliveries) worker(ctx context.Context) (kill func(), err error) {
	c := d.command(ctx, "worker", "--file", d.file, "--lease", "5s", "--concurrency", "4")
	if err := c.Start(); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed
	}), nil
}

func (d *deliveries) deliver(ctx context.Context, r *receiver) error {
	kill, err := d.worker(ctx)
	if err != nil {
		return err
	}
	defer func() { kill() }()
	if err := d.until(ctx, "webhooks.deliver", 1, "tasks", "list"); err != nil { // the worker's first tick
		return err
	}
	triggered := make(chan error, 1)
	go func() { // ends with the batch
		out, err := d.output(ctx, "trigger", "webhooks.deliver", "--batch", d.batch)
		fmt.Print("triggered:       ", strings.TrimPrefix(out, "\n"))
		triggered <- err
	}()
	if err := r.wait(ctx, r.want/2); err != nil {
		return err
	}
	kill()
	fmt.Printf("worker killed:   after %d deliveries\n", r.delivered())
	if kill, err = d.worker(ctx); err != nil {
		return err
	}
	if err := <-triggered; err != nil {
		return err
	}
	if err := r.wait(ctx, r.want); err != nil {
		return err
	}
	if err := d.until(ctx, `"status":"succeeded"`, r.want, "runs", "list", "--all", "--json"); err != nil {
		return err
	}
	fmt.Printf("delivered:       %d of %d, %d requests refused on purpose, %d repeated\n", r.delivered(), r.want, r.refused, r.repeated())
	receipts, err := d.output(ctx, "runs", "receipts", r.twice)
	fmt.Printf("receipts of %s:\n%s", r.twice, receipts)
	return err
}

// until calls a command until a text is so often in what it writes.
func (d *deliveries) until(ctx context.Context, text string, count int, args ...string) error {
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	for {
		c := d.command(ctx, args...)
		out, _ := c.Output() // there may be no file yet
		if strings.Count(string(out), text) >= count {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
	}
}

// receiver refuses the first request of each fifth delivery.
type receiver struct {
	want int
	came chan struct{}

	mu       sync.Mutex
	asked    int
	refused  int
	twice    string         // a delivery that was refused once
	accepted map[string]int // by ID; negative: refused
}

// ServeHTTP implements http.Handler.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	id := request.Header.Get("X-GitHub-Delivery")
	if err != nil || !json.Valid(body) || id == "" {
		http.Error(w, "this is no webhook", http.StatusGone)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.accepted[id] == 0 {
		if r.asked++; r.asked%5 == 0 {
			r.refused, r.twice, r.accepted[id] = r.refused+1, id, -1
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
	}
	r.accepted[id] = max(r.accepted[id], 0) + 1
	w.Header().Set("X-Request-Id", fmt.Sprintf("%s-%d", id, r.accepted[id]))
	w.WriteHeader(http.StatusAccepted)
	r.came <- struct{}{}
}

func (r *receiver) delivered() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, times := range r.accepted {
		if times > 0 {
			n++
		}
	}
	return n
}

func (r *receiver) repeated() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, times := range r.accepted {
		n += max(times-1, 0)
	}
	return n
}

// wait waits for so many deliveries.
func (r *receiver) wait(ctx context.Context, count int) error {
	for r.delivered() < count {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.came:
		}
	}
	return nil
}
