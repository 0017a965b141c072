package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Idle connections belong to the AWS SDK's HTTP client, which lives as long as the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

func testPlace(t *testing.T) *place {
	t.Helper()
	p, err := newPlace("") // not t.TempDir: the path of a socket is short, and other accounts have to get there
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.remove(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// executed collects jobs as handlers get them.
type executed struct {
	mu   sync.Mutex
	jobs []job
}

func (e *executed) handle(j job) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.jobs = append(e.jobs, j)
}

// check wants each job once, with the payload it was inserted with.
func (e *executed) check(t *testing.T, want []job) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	slices.SortFunc(e.jobs, func(a, b job) int { return a.Number - b.Number })
	if !slices.Equal(e.jobs, want) {
		t.Errorf("%d jobs wanted, %d executed: %v", len(want), len(e.jobs), e.jobs)
	}
}

// Every peer that this machine has executes what a session inserted, once, and nothing of an earlier session.
func TestSubjects_ExecuteEachJobOnce(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	jobs := newJobs(rand.New(rand.NewPCG(seed, 0)), 50)
	for _, source := range sources {
		t.Run(source.name, func(t *testing.T) {
			t.Parallel()
			subjects, release, err := source.open(t.Context(), testPlace(t))
			if missing, ok := errors.AsType[*unavailableError](err); ok {
				t.Logf("not on this machine: %s", missing.reason)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if release != nil {
				t.Cleanup(func() {
					if err := release(); err != nil {
						t.Error(err)
					}
				})
			}
			var made []string
			for _, s := range subjects {
				made = append(made, s.key())
				executeOnce(t, s, jobs)
			}
			slices.Sort(made)
			if want := slices.Sorted(slices.Values(source.makes)); !slices.Equal(made, want) {
				t.Errorf("the list of sources says %v, made are %v", want, made)
			}
		})
	}
}

func executeOnce(t *testing.T, s *subject, jobs []job) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, fmt.Errorf("%s has had its minute", s.key()))
	defer cancel()
	leave := func(s session) {
		t.Helper()
		if err := s.close(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	}
	left := newExecution(ctx, t, s)
	if err := left.insert(ctx, job{Number: firstNumber - 1}); err != nil {
		t.Fatal(s.key(), err)
	}
	leave(left)

	begun := newExecution(ctx, t, s)
	before, after := jobs[:len(jobs)/2], jobs[len(jobs)/2:]
	if batches, ok := begun.session.(batchInserter); ok {
		if err := batches.insertBatch(ctx, before); err != nil {
			t.Fatal(s.key(), err)
		}
	} else {
		begun.insertAll(ctx, t, before)
	}
	if err := begun.work(ctx, 10); err != nil {
		t.Fatal(s.key(), err)
	}
	begun.insertAll(ctx, t, after)
	if err := begun.await(ctx, len(jobs)); err != nil {
		t.Fatal(s.key(), err)
	}
	leave(begun) // nothing executes after that
	begun.check(t, jobs)
}

// execution is a session with what it executed.
type execution struct {
	session
	executed
}

func newExecution(ctx context.Context, t *testing.T, s *subject) *execution {
	t.Helper()
	e := &execution{}
	var err error
	if e.session, err = s.open(ctx, e.handle); err != nil {
		t.Fatal(s.key(), err)
	}
	return e
}

func (e *execution) insertAll(ctx context.Context, t *testing.T, jobs []job) {
	t.Helper()
	for _, j := range jobs {
		if err := e.insert(ctx, j); err != nil {
			t.Fatal(err)
		}
	}
}

// The whole program, on what every machine has: each line is JSON, and each metric has a row with a spread.
func TestRun_JSON_HasOneLineARow(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	arguments := []string{"-json", "-quick", "-rounds", "2", "-workers", "4", "-only", "^memory/(channel|sqlite)", "-dir", t.TempDir()}
	if err := run(t.Context(), arguments, &stdout, &stderr); err != nil {
		t.Fatal(err, stderr.String())
	}
	kinds, rows := map[string]int{}, map[string]row{}
	for line := range strings.Lines(stdout.String()) {
		var r row
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if kinds[r.Kind]++; r.Kind == "row" {
			rows[r.Name+"/"+string(r.Metric)] = r
		}
	}
	if kinds["environment"] != 1 || kinds["subject"] != 2 || kinds["row"] != 2*len(metrics) {
		t.Errorf("lines: %v", kinds)
	}
	for _, m := range metrics {
		for _, name := range []string{"channel", "sqlite table"} {
			r := rows[name+"/"+string(m.metric)]
			if r.Rounds != 2 || r.Unit != m.unit || r.Group != memory || r.Low <= 0 || r.Low > r.Median || r.Median > r.High {
				t.Errorf("%s, %s: %+v", name, m.metric, r)
			}
		}
	}
	if left, err := os.ReadDir(arguments[len(arguments)-1]); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
