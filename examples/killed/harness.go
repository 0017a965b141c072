package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	random "math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane"
)

// harness starts the worker, kills it, and starts it again.
type harness struct {
	example example
	name    string
	seed    uint64
	kills   int
	log     io.Writer

	mu      sync.Mutex
	calls   int         // of the worker, so far
	moments []int       // at how many calls the worker is killed next
	worker  *os.Process // the one that lives
	chance  *random.Rand
	deaths  int
}

const (
	// jitter is how long after a call the worker is killed, at most: between two calls it does most of its work.
	jitter = 20 * time.Millisecond
	// lookEvery is how often it is asked whether all runs have ended.
	lookEvery = 100 * time.Millisecond
)

// play returns whether everything ended right.
func (h *harness) play(ctx context.Context, stdout io.Writer) (bool, error) {
	began := time.Now()
	h.chance = random.New(random.NewPCG(h.seed, 0)) // not for secrets
	for range h.kills {
		h.moments = append(h.moments, 1+h.chance.IntN(h.example.calls()))
	}
	slices.Sort(h.moments)
	folder, err := os.MkdirTemp("", "runlane-killed-*")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(folder)
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return false, err
	}
	file := "sqlite:" + filepath.Join(folder, "runs.db")
	rt, err := open(ctx, file, &core.Options{TokenKeys: [][]byte{key}})
	if err != nil {
		return false, err
	}
	defer rt.Close(context.WithoutCancel(ctx))
	if err := h.example.begin(ctx, rt); err != nil {
		return false, err
	}
	address, stop, err := h.serve(ctx)
	if err != nil {
		return false, err
	}
	defer stop()
	environment := append(os.Environ(), workerVariable+"="+h.name, sidesVariable+"="+address, lane.Variable+"="+file,
		core.TokenKeysVariable+"="+base64.StdEncoding.EncodeToString(key))
	if err := h.live(ctx, rt, environment); err != nil {
		return false, err
	}
	found, err := h.example.look(ctx, rt, h.deaths)
	if err != nil {
		return false, err
	}
	took := time.Since(began).Round(time.Second)
	fmt.Fprintf(stdout, "killed    %d times, at moments of seed %d, %s\n", h.deaths, h.seed, took)
	for _, line := range found.lines {
		fmt.Fprintln(stdout, line)
	}
	for _, fault := range found.faults {
		fmt.Fprintln(stdout, "WRONG    ", fault)
	}
	fmt.Fprintln(stdout, found.verdict())
	return len(found.faults) == 0 && found.all > 0 && h.deaths == h.kills, nil
}

// open opens a runtime on the file.
func open(ctx context.Context, file string, options *core.Options) (*core.Runtime, error) {
	l, err := lane.Open(ctx, file, sqlitelane.Scheme)
	if err != nil {
		return nil, err
	}
	options.Logger = slog.New(slog.DiscardHandler)
	options.MaxAbandoned = -1 // a run may be in the hands of many workers that die
	return core.Open(ctx, l, options)
}

// live starts workers, one after the death of another, until all runs have ended.
func (h *harness) live(ctx context.Context, rt *core.Runtime, environment []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ended, stopLooking := h.looking(ctx, rt)
	defer stopLooking()
	for ctx.Err() == nil {
		c := exec.Command(self) //nolint:noctx // this program, which is told to stop below
		c.Env, c.Stderr = environment, h.log
		if err := c.Start(); err != nil {
			return err
		}
		h.mu.Lock()
		h.worker = c.Process
		h.mu.Unlock()
		exited := make(chan error, 1)
		go func() { exited <- c.Wait() }()
		select {
		case err := <-exited:
			if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.Exited() {
				return fmt.Errorf("the worker ended by itself: %w", err)
			}
			h.died()
			continue
		case err := <-ended:
			if err == nil && h.deaths < h.kills { // moments after the last call: it dies with nothing left to do
				_ = c.Process.Kill()
				if err := stopped(<-exited); err != nil {
					return err
				}
				h.died()
				continue
			}
			h.forget()
			_ = c.Process.Signal(syscall.SIGTERM)
			return errors.Join(err, stopped(<-exited))
		case <-ctx.Done():
			h.forget()
			_ = c.Process.Kill()
			return errors.Join(fmt.Errorf("not all runs have ended: %w", context.Cause(ctx)), <-exited)
		}
	}
	return fmt.Errorf("not all runs have ended: %w", context.Cause(ctx))
}

// stopped is the error of a worker that was told to stop. One that was told before it listened has ended by the signal.
func stopped(err error) error {
	if e, ok := errors.AsType[*exec.ExitError](err); ok && !e.Exited() {
		return nil
	}
	return err
}

// died counts a death.
func (h *harness) died() {
	h.deaths++
	fmt.Fprintf(h.log, "killed: death %d of %d, after %d calls\n", h.deaths, h.kills, h.counted())
}

// looking says that no run is active any more, or why that is not known.
func (h *harness) looking(ctx context.Context, rt *core.Runtime) (ended <-chan error, stop func()) {
	ctx, stop = context.WithCancel(ctx)
	said := make(chan error, 1)
	go func() {
		defer close(said)
		for ctx.Err() == nil {
			page, err := rt.Runs().List(ctx, &core.ListOptions{
				RunFilter: core.RunFilter{Statuses: active()},
				Limit:     1,
			})
			if err != nil || len(page.Items) == 0 {
				said <- err
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(lookEvery):
			}
		}
	}()
	return said, stop
}

func active() (statuses []runlane.Status) {
	for _, status := range runlane.Statuses() {
		if status.Active() {
			statuses = append(statuses, status)
		}
	}
	return statuses
}

// forget lets the worker live.
func (h *harness) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.worker, h.moments = nil, nil
}

func (h *harness) counted() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls
}

// serve listens for the worker's calls.
func (h *harness) serve(ctx context.Context) (address string, stop func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	mux := http.NewServeMux()
	for path, answer := range h.example.sides() {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return // the worker died while it wrote
			}
			answered, err := answer(r.Header.Get("Idempotency-Key"), body)
			h.strike() // the effect is there, and the worker may never know
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			_ = json.NewEncoder(w).Encode(answered)
		})
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	return "http://" + listener.Addr().String(), func() { _ = server.Close() }, nil
}

// strike counts a call, and kills the worker if its moment has come.
func (h *harness) strike() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls++
	if h.worker == nil || len(h.moments) == 0 || h.calls < h.moments[0] {
		return
	}
	doomed := h.worker
	h.moments, h.worker = h.moments[1:], nil
	time.AfterFunc(time.Duration(h.chance.Int64N(int64(jitter))), func() { _ = doomed.Kill() })
}
