package sqlitelane_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/runlane/runlane-go/internal/proof/crash"
	"github.com/runlane/runlane-go/internal/proof/hostiletest"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/sqlitelane"
	"go.uber.org/goleak"
)

// childVariable makes this program a child that does deeds on the file which it names.
const childVariable = "SQLITELANE_TEST_FILE"

func TestMain(m *testing.M) {
	if path := os.Getenv(childVariable); path != "" {
		if err := child(path, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if text := os.Getenv(restoreVariable); text != "" {
		if err := restoreChild(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if crash.Child(crashScenarios, crashChildLane) {
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction(hostiletest.Blocks))
}

// child does deeds until it is killed, four side by side, and says what was committed.
func child(path string, out io.Writer) error {
	s := sqlitelane.NewStorage(path, 0)
	if err := s.Start(context.Background()); err != nil {
		return err
	}
	var mu sync.Mutex
	faults := make(chan error, len(kinds))
	for _, name := range []string{"life", "bounded", "outbox", "schedule", "wakeup", "ordered", "retry"} {
		d := &deeds{t: crash.NoTest{}, s: s, w: deedsTransport(s), f: lanetest.NewFactory(deedsEnvironment)}
		d.prefix = fmt.Sprint(name, os.Getpid(), "-")
		d.ack = func(line string) {
			mu.Lock()
			defer mu.Unlock()
			_, _ = fmt.Fprintln(out, line) // one write: a line is there or not
		}
		go func() { // ends with the process
			for n := 0; ; n++ {
				if err := kinds[name](d, n); err != nil {
					faults <- fmt.Errorf("%s: %w", name, err)
					return
				}
			}
		}()
	}
	return <-faults
}

// What a process said that it committed is there after kill -9, at whatever moment, and another process that worked
// beside it goes on.
func TestKill_LosesNothingThatWasCommitted(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64() // printed
	choose := rand.New(rand.NewPCG(seed, 0))
	w := newWitness()
	acknowledged := 0
	const kills = 8
	for n := range kills {
		acknowledged += killed(t, program, path, 20+choose.IntN(120), w)
		s := sqlitelane.NewStorage(path, 0)
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		lost, err := w.missing(s, deedsTransport(s))
		if err != nil {
			t.Fatal(err)
		}
		for _, what := range lost {
			t.Errorf("kill %d, seed %d: %s", n, seed, what)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("reliability: SIGKILL kills=%d acknowledged=%d seed=%d", 2*kills, acknowledged, seed)
}

// killed lets two processes work on the file, hears what they commit, and kills both after so many lines.
func killed(t *testing.T, program, path string, lines int, w *witness) (heard int) {
	t.Helper()
	var both sync.WaitGroup
	var mu sync.Mutex
	for range 2 {
		c := exec.CommandContext(t.Context(), program)
		c.Env = append(os.Environ(), childVariable+"="+path)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		both.Go(func() {
			defer func() { _ = c.Wait() }() // it was killed
			for n, scanner := 0, bufio.NewScanner(out); scanner.Scan(); n++ {
				if n == lines {
					_ = c.Process.Kill() // and what it said before is read to the end
				}
				if err := w.hear(scanner.Text()); err != nil {
					t.Error(err)
				}
				mu.Lock()
				heard++
				mu.Unlock()
			}
		})
	}
	both.Wait()
	return heard
}

// A file that a killed process left is opened by many at once.
func TestOpen_ManyProcessesAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "many.db")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			s := sqlitelane.NewStorage(path, 0)
			if err := s.Start(context.Background()); err != nil {
				t.Error(err)
				return
			}
			f := lanetest.NewFactory("many")
			if _, err := s.AppendRunEvents(context.Background(), f.Creation(t, noon, lanetest.RunOptions{ID: f.NewRunID()})); err != nil &&
				!isConflict(err) {
				t.Error(err)
			}
			if err := s.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
