package cli_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

func TestRun_NoArguments_ShowsHelp(t *testing.T) {
	t.Parallel()
	if r := runWith(t.Context(), newWorld(), &cli.Options{Args: []string{}}); r.code != cli.ExitOK || !strings.HasPrefix(r.stdout, "Usage: runlane") {
		t.Errorf("%+v", r)
	}
}

// runWith is world.run for tests that bring their own streams.
func runWith(ctx context.Context, w *world, options *cli.Options) result {
	var stdout, stderr bytes.Buffer
	if options.Stdout == nil {
		options.Stdout = &stdout
	}
	if options.Stderr == nil {
		options.Stderr = &stderr
	}
	if options.Stdin == nil {
		options.Stdin = strings.NewReader("")
	}
	env := w.env
	if options.Folder != "" { // as another process
		env = maps.Clone(w.env)
	}
	options.Now, options.Getenv = w.now, func(name string) string { return env[name] }
	options.Setenv = func(name, value string) error { env[name] = value; return nil }
	options.Name = cmp.Or(options.Name, "runlane")
	options.OnTerminal(w.columns)
	code := cli.Run(ctx, w.open, options)
	return result{stdout.String(), stderr.String(), code}
}

func TestRun_FlagsOfTheDeployment_ReachTheOpener(t *testing.T) {
	t.Parallel()
	w := newWorld()
	args := []string{
		"runs", "list", "--table", "t", "--env", "staging", "--queues", "a=b", "--region", "eu-west-1", "--profile", "p", "--endpoint-url", "http://x",
	}
	mustRun(t, w, args...)
	for name, want := range map[string]string{
		"RUNLANE_TABLE": "t", "RUNLANE_ENV": "staging", "RUNLANE_QUEUES": "a=b", "AWS_REGION": "eu-west-1", "AWS_PROFILE": "p", "AWS_ENDPOINT_URL": "http://x",
	} {
		if w.env[name] != want {
			t.Errorf("%s is %q, not %q", name, w.env[name], want)
		}
	}
}

func TestRun_BadOpeners_AreUsage(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]cli.Opener{
		"none":       nil,
		"no runtime": func(context.Context) (*core.Runtime, error) { return nil, nil },
	} {
		var stderr bytes.Buffer
		code := cli.Run(t.Context(), open, &cli.Options{Args: []string{"runs", "list"}, Stdout: io.Discard, Stderr: &stderr})
		if code != cli.ExitUsage || !strings.Contains(stderr.String(), "next: ") {
			t.Errorf("%s: %d %s", name, code, stderr.String())
		}
	}
}

// A program of another name calls itself so in help, examples, scripts and hints.
func TestRun_AnotherProgram_CallsItselfByItsName(t *testing.T) {
	t.Parallel()
	for called, want := range map[string]string{
		"mailer": "mailer", "./bin/mailer": "./bin/mailer", "/opt/mailer.exe": "/opt/mailer",
		"x/go-build1/b001/exe/mailer": "go run .", "": "runlane",
	} {
		if got := cli.ProgramName([]string{called}); got != want {
			t.Errorf("called as %q the program is %q", called, got)
		}
	}
	damaged := func(context.Context) (*core.Runtime, error) {
		return nil, &runlane.Error{Code: runlane.ErrConfigurationInvalid, Message: "damaged", Hint: "see \"runlane restore COPY\""}
	}
	lines := [][]string{{"no-such"}, {"runs", "list"}, {"doctor"}, {"completion", "fish"}}
	for _, path := range cli.Paths() {
		lines = append(lines, append(strings.Fields(path), "--help"))
	}
	for _, args := range lines {
		var out bytes.Buffer
		cli.Run(t.Context(), damaged, &cli.Options{
			Name: "mailer", Args: args, Stdout: &out, Stderr: &out,
			Getenv: func(string) string { return "" }, Setenv: func(string, string) error { return nil },
		})
		if !strings.Contains(out.String(), "mailer") || regexp.MustCompile(`(["/]|Usage: |(?m:^  )|see: )runlane( |$)`).MatchString(out.String()) {
			t.Errorf("%q: %s", args, &out)
		}
	}
}

// failing is a writer that was closed, or a disk that is full.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestRun_ResultsThatNobodyReads(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		code int
	}{
		"a closed pipe is no failure": {syscall.EPIPE, cli.ExitOK},
		"a full disk is one":          {syscall.ENOSPC, cli.ExitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			mustRun(t, w, "trigger", "emails.welcome")
			for _, args := range [][]string{{"runs", "list"}, {"runs", "list", "--json", "--all"}, {"version"}} {
				r := runWith(t.Context(), w, &cli.Options{Args: args, Stdout: failing{c.err}})
				if r.code != c.code || (r.stderr == "") != (c.code == cli.ExitOK) {
					t.Errorf("%v: %+v", args, r)
				}
			}
		})
	}
}

func TestRun_EndOfTheContext_IsAnInterruptOrTheTimeLimit(t *testing.T) {
	t.Parallel()
	w := newWorld()
	mustRun(t, w, "trigger", "emails.welcome", "--id", "waiting-run")
	ctx, cancel := context.WithCancel(t.Context())
	news := &lookout{seen: cancel, text: "run.delivery_requested"}
	if code := runWith(ctx, w, &cli.Options{Args: []string{"runs", "watch", "waiting-run"}, Stderr: news}).code; code != cli.ExitInterrupted {
		t.Errorf("an interrupt exits with %d", code)
	}
	if !strings.Contains(news.String(), `the run goes on: follow it with "runlane runs watch waiting-run"`) {
		t.Errorf("nothing says what is left: %s", news.String())
	}
	r := w.run(t.Context(), "runs", "watch", "waiting-run", "--timeout", "50ms", "--json")
	if r.code != cli.ExitFailed || !strings.Contains(r.stderr, `"code":"time_limit"`) || r.stdout != "" {
		t.Errorf("a time limit: %+v", r)
	}
}

// lookout is a stream that calls when a text appears.
type lookout struct {
	bytes.Buffer
	text string
	seen func()
}

func (l *lookout) Write(p []byte) (int, error) {
	n, err := l.Buffer.Write(p)
	if l.text != "" && strings.Contains(l.String(), l.text) {
		l.seen()
	}
	return n, err
}

func TestBatch_Interrupted_SaysHowToResume(t *testing.T) {
	t.Parallel()
	w := newWorld()
	var lines strings.Builder
	for n := range 250 {
		fmt.Fprintf(&lines, `{"payload":{"to":"u_%d"}}`+"\n", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	news := &lookout{seen: cancel, text: "100 runs"}
	args := []string{"trigger", "emails.welcome", "--batch", "-", "--batch-id", "b1"}
	r := runWith(ctx, w, &cli.Options{Args: args, Stdin: strings.NewReader(lines.String()), Stderr: news})
	if r.code != cli.ExitInterrupted || !strings.Contains(news.String(), "100 runs were made, 0 were there, 0 lines failed. The rest: repeat the command with --batch-id b1") {
		t.Fatalf("%d\n%s", r.code, news.String())
	}
	w.stdin = lines.String()
	if r := w.run(t.Context(), args...); r.code != cli.ExitOK || r.stdout != "created: 150, there already: 100, failed: 0\n" {
		t.Errorf("%+v", r)
	}
}

// busy refuses every other trigger.
type busy struct {
	lane.Storage

	asked *atomic.Int64
}

func (b busy) AdmitRuns(int) error {
	if b.asked.Add(1)%2 == 0 {
		return nil
	}
	return &runlane.Error{Code: runlane.ErrOverloaded, Message: "full", RetryAfter: time.Nanosecond}
}

func TestBatch_OverloadedStorage_IsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.wrap = func(s lane.Storage) lane.Storage { return busy{s, &atomic.Int64{}} }
	w.stdin = strings.Repeat(`{"payload":{"to":"u"}}`+"\n", 150)
	r := w.run(t.Context(), "trigger", "emails.welcome", "--batch", "-")
	if r.code != cli.ExitOK || r.stdout != "created: 150, there already: 0, failed: 0\n" {
		t.Errorf("%+v", r)
	}
}

func TestBatch_WithoutID_TellsTheOneItChose(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.stdin = `{"task":"emails.flaky","payload":[]}`
	r := w.run(t.Context(), "trigger", "--batch", "-", "--json")
	if r.code != 0 || !strings.Contains(r.stdout, `"batchId":"batch_`) {
		t.Errorf("%+v", r)
	}
}

func TestDoctor_OwnChecks(t *testing.T) {
	t.Parallel()
	checks := []cli.Check{
		{Name: "fine", Run: func(_ context.Context, rt *core.Runtime) (string, error) {
			return "environment " + string(rt.Environment()), nil
		}},
		{Name: "broken", Run: func(context.Context, *core.Runtime) (string, error) { return "", errors.New("the license is over") }},
	}
	r := runWith(t.Context(), newWorld(), &cli.Options{Args: []string{"doctor"}, Checks: checks})
	if r.code != cli.ExitFailed || !strings.Contains(r.stdout, "ok       fine: environment default\nfailed   broken: the license is over\n") {
		t.Errorf("%+v", r)
	}
}

// TestExplain_QueueOfAnotherProgram_GoesByWhatItsTicksStored has a program without tasks explain a run of a bounded queue.
func TestExplain_QueueOfAnotherProgram_GoesByWhatItsTicksStored(t *testing.T) {
	t.Parallel()
	w := newWorld()
	mustRun(t, w, "trigger", "emails.bulk", "{}", "--id", "some-run", "--delay", "1m")
	mustRun(t, w, "tick")
	w.millis.Add(2 * 60 * 1000)
	w.plain = true
	r := w.run(t.Context(), "runs", "explain", "some-run")
	if !strings.Contains(r.stdout, "a slot of its queue is free") || strings.Contains(r.stdout, "does not know its queue") {
		t.Errorf("%+v", r)
	}
}

// TestTrigger_QueueThatNoTaskUses_IsNamed misspells a queue: the run would wait for ever.
func TestTrigger_QueueThatNoTaskUses_IsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld()
	mustRun(t, w, "tick")
	r := w.run(t.Context(), "trigger", "emails.bulk", "{}", "--queue", "slwo")
	if r.code != cli.ExitOK || !strings.Contains(r.stderr, "no task that is known uses queue \"slwo\"") || !strings.Contains(r.stderr, "did you mean \"slow\"?") {
		t.Errorf("%+v", r)
	}
	if r := w.run(t.Context(), "trigger", "emails.bulk", "{}", "--queue", "slow"); r.code != cli.ExitOK || r.stderr != "" {
		t.Errorf("%+v", r)
	}
}

// TestExplain_UnknownQueue_NamesTheFlagThatTellsItsLimit looks at a run of a bounded queue with a program that does not know the queue.
func TestExplain_UnknownQueue_NamesTheFlagThatTellsItsLimit(t *testing.T) {
	t.Parallel()
	w := newWorld()
	mustRun(t, w, "trigger", "emails.bulk", "{}", "--id", "some-run", "--delay", "1m")
	w.millis.Add(60 * 60 * 1000)
	w.plain = true
	limits := cli.Variable{Flag: "limits", Name: "RUNLANE_LIMITS", Usage: "LIST of queues and their concurrency"}
	for _, args := range [][]string{{"runs", "explain", "some-run"}, {"runs", "explain", "some-run", "--json"}} {
		r := runWith(t.Context(), w, &cli.Options{Args: args, Variables: []cli.Variable{limits}})
		if told := "--limits slow=N (RUNLANE_LIMITS; 0 is no limit)"; !strings.Contains(r.stdout, told) || strings.Contains(r.stdout, "core.Options") {
			t.Errorf("%v: %+v", args, r)
		}
	}
	if r := w.run(t.Context(), "runs", "explain", "some-run"); !strings.Contains(r.stdout, "core.Options.Queues") {
		t.Errorf("a program without the flag: %+v", r)
	}
}

// The console shows such lines for ids that look like flags.
func TestRun_FlagsEndAtTwoDashes(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for _, id := range []string{"--all", "kept"} {
		mustRun(t, w, "trigger", "emails.welcome", "--id", id)
	}
	if r := w.run(t.Context(), "runs", "cancel", "--env", "default", "--", "--all"); r.code != cli.ExitOK {
		t.Errorf("%+v", r)
	}
	for id, want := range map[string]string{"--all": "cancelled", "kept": "queued"} {
		r := w.run(t.Context(), "runs", "get", "--json", "--", id)
		if r.code != cli.ExitOK || !strings.Contains(r.stdout, `"status":"`+want+`"`) {
			t.Errorf("%s: %+v", id, r)
		}
	}
}
