package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/cli"
)

// interruptible are the commands that do something to many runs, each with so many runs that an interrupt finds it between two rounds.
var interruptible = map[string]struct {
	args    string
	prepare func(t *testing.T, w *world)
	first   int    // what is done before the interrupt
	done    string // how the command says it
	makes   bool   // a run for each
}{
	"runs resume":         {"runs resume --task emails.welcome --yes", crowd, 1000, "resumed", false},
	"runs cancel":         {"runs cancel --task emails.welcome --yes", crowd, 1000, "cancelled", false},
	"runs retry":          {"runs retry --task emails.watched --yes", failedCrowd, 1000, "retried", true},
	"runs rerun":          {"runs rerun --task emails.watched --yes", failedCrowd, 1000, "repeated", true},
	"runs prune":          {"runs prune --older-than 1d --yes", agedCrowd, 500, "removed", false},
	"deadletters requeue": {"deadletters requeue --all --yes", deadCrowd, 1000, "requeued", false},
}

// failedCrowd are as many runs, all of them failed.
func failedCrowd(t *testing.T, w *world) {
	t.Helper()
	w.during = func(context.Context, runlane.RunID) error { return runlane.Permanent(errors.New("no such mailbox")) }
	crowdOf(t, w, "emails.watched", `"payload":{}`)
	mustRun(t, w, "worker", "--drain", "--no-tick")
}

func agedCrowd(t *testing.T, w *world) {
	t.Helper()
	failedCrowd(t, w)
	w.millis.Add(48 * 3600 * 1000)
}

func deadCrowd(t *testing.T, w *world) {
	t.Helper()
	w.refuse = true
	crowdOf(t, w, "emails.welcome", `"meta":{}`)
	w.refuse = false
}

func mustRun(t *testing.T, w *world, args ...string) result {
	t.Helper()
	r := w.run(t.Context(), args...)
	if r.code != cli.ExitOK {
		t.Fatalf("%v: %+v", args, r)
	}
	return r
}

// TestBulk_Interrupted_GoesOnAndDoesNothingTwice interrupts each command, goes on as it says, and then gives the whole command once more.
func TestBulk_Interrupted_GoesOnAndDoesNothingTwice(t *testing.T) {
	t.Parallel()
	others := []string{"bench", "functions add", "queues add", "restore"} // the first begins anew, the others change files and no runs
	for _, command := range cli.Commands() {
		if _, listed := interruptible[command.Path]; slices.Contains(command.Flags, "yes") && !listed && !slices.Contains(others, command.Path) {
			t.Errorf("%s changes many runs and has no case here", command.Path)
		}
	}
	for name, c := range interruptible {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			c.prepare(t, w)
			args := strings.Fields(c.args)
			w.interrupt = "going on"
			r := w.run(t.Context(), args...)
			w.interrupt = ""
			if want := fmt.Sprintf("%s: %d, skipped: 0, failed: 0\n", c.done, c.first); r.code != cli.ExitInterrupted || r.stdout != want {
				t.Fatalf("exit %d, %q\n%s", r.code, r.stdout, r.stderr)
			}
			next := regexp.MustCompile(`the same command with --after '(\S+)' goes on`).FindStringSubmatch(r.stderr)
			if next == nil {
				t.Fatalf("nothing says how to go on: %s", r.stderr)
			}
			left := fmt.Sprintf("%s: %d, skipped: 0, failed: 0\n", c.done, 1100-c.first)
			if r := mustRun(t, w, append(args, "--after", next[1])...); r.stdout != left {
				t.Errorf("what was left: %q", r.stdout)
			}
			mustRun(t, w, args...)
			total := map[string]int{}
			for line := range strings.Lines(mustRun(t, w, "runs", "list", "--all").stdout) {
				total[strings.Fields(line)[1]]++
			}
			delete(total, "STATUS")
			runs := 0
			for _, n := range total {
				runs += n
			}
			want := 1100
			if c.makes {
				want = 2200
			} else if name == "runs prune" {
				want = 0
			}
			if runs != want {
				t.Errorf("%d runs afterwards, not %d: %v", runs, want, total)
			}
		})
	}
}

// TestInput_Interrupted_DoesNotWaitForMore presses Ctrl-C instead of the input that is asked for.
func TestInput_Interrupted_DoesNotWaitForMore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, asks, says string }{
		{"trigger emails.welcome -", "", "interrupted\n"},
		{"trigger emails.welcome --batch - --batch-id b1", "", "0 runs were made, 0 were there, 0 lines failed. The rest: repeat the command with --batch-id b1\ninterrupted\n"},
		{"runs cancel --task emails.welcome", "cancel them? [y/N]", "nothing was changed\ninterrupted\n"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			mustRun(t, w, "trigger", "emails.welcome", "--id", "some-run", "--delay", "1h")
			w.columns = 80
			ctx, cancel := context.WithCancel(t.Context())
			reader, writer := io.Pipe()
			defer writer.Close()
			waiting := &asked{reader: reader, read: cancel} // the interrupt comes while the command waits for input
			news := &lookout{text: "nothing", seen: func() {}}
			r := runWith(ctx, w, &cli.Options{Args: strings.Fields(c.args), Stdin: waiting, Stderr: news})
			if r.code != cli.ExitInterrupted || !strings.HasSuffix(news.String(), c.says) || !strings.Contains(news.String(), c.asks) {
				t.Errorf("exit %d: %q", r.code, news.String())
			}
			w.columns = 0
			if r := mustRun(t, w, "runs", "list"); strings.Count(r.stdout, "\n") != 2 || !strings.Contains(r.stdout, "scheduled") {
				t.Errorf("afterwards:\n%s", r.stdout)
			}
		})
	}
}

// asked tells when a reader begins to wait for its input.
type asked struct {
	reader io.Reader
	read   func()
}

func (a *asked) Read(p []byte) (int, error) {
	a.read()
	return a.reader.Read(p)
}

// stoppable is a world with three due runs and one that is delayed. The first that executes ends when finish is closed, the others when
// their contexts do.
func stoppable(t *testing.T) (w *world, finish chan struct{}) {
	t.Helper()
	w, finish = newWorld(), make(chan struct{})
	var started atomic.Int32
	w.during = func(ctx context.Context, _ runlane.RunID) error {
		finish := finish
		if started.Add(1) > 1 {
			finish = nil
		}
		select {
		case <-finish:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for _, id := range []string{"first", "second", "third"} {
		mustRun(t, w, "trigger", "emails.watched", "{}", "--id", id, "--delay", "1s") // a tick delivers it to the worker's own transport
	}
	mustRun(t, w, "trigger", "emails.watched", "{}", "--delay", "1d")
	mustRun(t, w, "trigger", "emails.bulk", "{}", "--delay", "1d") // in another queue
	w.millis.Add(3600 * 1000)
	return w, finish
}

// stops runs a worker with two attempts, interrupts it while these execute, and lets one of them finish.
func stops(t *testing.T, args ...string) (code int, news string) {
	t.Helper()
	w, finish := stoppable(t)
	started, during := newStream(), w.during
	w.during = func(ctx context.Context, id runlane.RunID) error {
		fmt.Fprintf(started, "%s started\n", id)
		return during(ctx, id)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	stderr, ended := newStream(), make(chan int, 1)
	go func() { // ends with the interrupt
		args := append([]string{"worker", "--concurrency", "2", "--queue", "default", "--grace", "300ms"}, args...)
		ended <- runWith(ctx, w, &cli.Options{Args: args, Stderr: stderr}).code
	}()
	started.awaitTimes(t, "started", 2)
	interrupt()
	stderr.await(t, "stopping: 2 attempts in progress may take 300ms; a second interrupt ends them\n")
	close(finish)
	return <-ended, stderr.String()
}

func TestWorker_Interrupted_SaysWhatWasLeft(t *testing.T) {
	t.Parallel()
	code, news := stops(t)
	want := "while it stopped: 1 attempt finished, 1 handed back\nstopped; what waited in memory is gone: 3 runs\n"
	if code != cli.ExitOK || !strings.HasSuffix(news, want) {
		t.Errorf("exit %d: %q", code, news)
	}
}

// A drain promises that nothing is due: one that is interrupted cannot, and its exit code says so.
func TestWorker_InterruptedDrain_IsNoSuccess(t *testing.T) {
	t.Parallel()
	code, news := stops(t, "--drain", "--no-tick")
	want := "while it stopped: 1 attempt finished, 1 handed back\nstopped; what waited in memory is gone: 3 runs\ninterrupted\n"
	if code != cli.ExitInterrupted || !strings.HasSuffix(news, want) {
		t.Errorf("exit %d: %q", code, news)
	}
}

// The time limit of a drain is an interrupt of another name.
func TestWorker_DrainWithATimeLimit_SaysThatItIsOver(t *testing.T) {
	t.Parallel()
	w, _ := stoppable(t)
	r := w.run(t.Context(), "worker", "--drain", "--no-tick", "--timeout", "300ms", "--grace", "1ms")
	if r.code != cli.ExitFailed || !strings.Contains(r.stderr, "the time limit of 300ms is over") || strings.HasSuffix(r.stderr, "stopped\n") {
		t.Errorf("%+v", r)
	}
}

// A worker without keys says so once, before the first attempt that needs one fails.
func TestWorker_WithoutTokenKeys_SaysSo(t *testing.T) {
	t.Parallel()
	for _, keyless := range []bool{false, true} {
		w := newWorld()
		w.keyless = keyless
		r := w.run(t.Context(), "worker", "--drain", "--no-tick")
		if strings.Contains(r.stderr, "no keys for answer tokens") != keyless || r.code != cli.ExitOK {
			t.Errorf("without keys %t: %+v", keyless, r)
		}
	}
}
