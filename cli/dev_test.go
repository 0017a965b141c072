package cli_test

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

func TestDev_JSON(t *testing.T) {
	t.Parallel()
	s := startDev(t, newWorld(), t.TempDir(), "--json")
	if r := s.away(t, "trigger", "emails.welcome", `{"to":"u"}`, "--id", "r1", "--wait", "--json"); r.code != cli.ExitOK {
		t.Fatalf("%+v", r)
	}
	s.out.await(t, `"type":"run.succeeded"`)
	if code := s.stop(t); code != cli.ExitOK {
		t.Errorf("exits with %d", code)
	}
	lines := strings.Split(strings.TrimSpace(s.out.String()), "\n")
	last := `{"v":1,"kind":"dev","state":"stopped","lane":"memory","environment":"default","finished":0,"handedBack":0,"waiting":0,"lost":true}`
	if !strings.HasPrefix(lines[0], `{"v":1,"kind":"dev","state":"started","lane":"memory","environment":"default","tasks":["emails.bulk",`) ||
		lines[len(lines)-1] != last || s.news.String() != "" {
		t.Errorf("%s\n%s", s.out, s.news)
	}
	for _, line := range lines[1 : len(lines)-1] {
		if !strings.HasPrefix(line, `{"v":1,"kind":"event","cursor":`) || strings.Contains(line, `"token":"l`) {
			t.Errorf("not an event: %s", line)
		}
	}
}

// TestDev_Interrupted_SaysWhatWasLeft has a run that finishes in the grace, one that does not, and one that waits.
func TestDev_Interrupted_SaysWhatWasLeft(t *testing.T) {
	t.Parallel()
	w := newWorld()
	finish := make(chan struct{})
	w.during = func(ctx context.Context, id runlane.RunID) error {
		if id == "patient" {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		<-finish
		return nil
	}
	s := startDev(t, w, t.TempDir(), "--grace", "300ms", "--json")
	for _, id := range []string{"patient", "quick"} {
		if r := s.away(t, "trigger", "emails.watched", "{}", "--id", id); r.code != cli.ExitOK {
			t.Fatalf("%+v", r)
		}
	}
	if r := s.away(t, "trigger", "emails.watched", "{}", "--delay", "1h"); r.code != cli.ExitOK {
		t.Fatalf("%+v", r)
	}
	s.out.awaitTimes(t, `"type":"run.started"`, 2)
	s.interrupt()
	s.news.await(t, "stopping: 2 attempts in progress may take 300ms")
	close(finish)
	s.await(t)
	if s.code != cli.ExitOK || !strings.Contains(s.out.String(), `"finished":1,"handedBack":1,"waiting":2,"lost":true}`) {
		t.Errorf("%d\n%s\n%s", s.code, s.out, s.news)
	}
}

func TestDev_ThatCannotBegin_SaysWhy(t *testing.T) {
	t.Parallel()
	plain, down := newWorld(), newWorld()
	plain.plain, down.down = true, true
	folder := t.TempDir()
	write(t, "", folder, "file")
	for name, c := range map[string]struct {
		w      *world
		folder string
		code   int
		says   string
	}{
		"no tasks":  {plain, folder, cli.ExitUsage, "this program has no tasks"},
		"no lane":   {down, folder, cli.ExitUnavailable, "the table does not answer"},
		"no folder": {newWorld(), filepath.Join(folder, "file"), cli.ExitUsage, "cannot be written: not a directory"},
	} {
		r := runWith(t.Context(), c.w, &cli.Options{Args: []string{"dev"}, Folder: c.folder})
		if r.code != c.code || !strings.Contains(r.stderr, c.says) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if left := names(t, folder); len(left) != 1 {
		t.Errorf("something is left: %v", left)
	}
}

func TestDev_OnATerminal_FitsIt(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.columns = 80
	s := startDev(t, w, t.TempDir())
	if r := s.away(t, "trigger", "emails.flaky", "{}", "--meta", "long="+strings.Repeat("x", 80)); r.code != cli.ExitOK {
		t.Fatalf("%+v", r)
	}
	s.out.await(t, "retrying")
	s.stop(t)
	colors := strings.NewReplacer("\x1b[33m", "", "\x1b[0m", "")
	if !strings.Contains(s.out.String(), "\x1b[33mretrying\x1b[0m") || !strings.Contains(s.out.String(), "…") {
		t.Errorf("no color, or nothing cut:\n%s", s.out)
	}
	for line := range strings.Lines(colors.Replace(s.out.String() + s.news.String())) {
		if len([]rune(strings.TrimSuffix(line, "\n"))) > 80 {
			t.Errorf("more than 80 columns: %s", line)
		}
	}
}

// TestDev_NobodyReads_Ends is dev in a pipe whose reader has seen enough.
func TestDev_NobodyReads_Ends(t *testing.T) {
	t.Parallel()
	w, folder, news := newWorld(), t.TempDir(), newStream()
	w.shared = lasting{memlane.NewTransport(nil)}
	ended := make(chan int, 1)
	go func() { // ends with the first transition
		ended <- runWith(context.Background(), w, &cli.Options{Args: []string{"dev"}, Folder: folder, Stdout: failing{syscall.EPIPE}, Stderr: news}).code
	}()
	news.await(t, "an interrupt stops it")
	s := &session{world: w}
	if r := s.away(t, "trigger", "emails.welcome", `{"to":"u"}`); r.code != cli.ExitOK && r.code != cli.ExitUnavailable {
		t.Errorf("%+v", r)
	}
	if code := <-ended; code != cli.ExitOK {
		t.Errorf("exits with %d:\n%s", code, news)
	}
}

func TestRun_NothingChosen_NamesBothWays(t *testing.T) {
	t.Parallel()
	r := runWith(t.Context(), newWorld(), &cli.Options{Args: []string{"trigger", "emails.welcome"}, Folder: t.TempDir()})
	if r.code != cli.ExitUsage || r.stdout != "" || !strings.Contains(r.stderr, `start "runlane dev"`) || !strings.Contains(r.stderr, "RUNLANE_TABLE") {
		t.Errorf("%+v", r)
	}
	for _, args := range [][]string{{"worker", "--drain"}, {"version"}, {"completion", "bash"}, {"runs", "--help"}} {
		if r := runWith(t.Context(), newWorld(), &cli.Options{Args: args, Folder: t.TempDir()}); r.code != cli.ExitOK {
			t.Errorf("%v needs no session: %+v", args, r)
		}
	}
}

func TestRun_EmptyFlag_TakesTheVariableAway(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"runs", "list", "--queues="}, {"runs", "list", "--queues", ""}} {
		w := newWorld()
		w.env["RUNLANE_QUEUES"] = "a=b"
		seen := "unset"
		code := cli.Run(t.Context(), func(ctx context.Context) (*core.Runtime, error) {
			seen = w.env["RUNLANE_QUEUES"]
			return w.open(ctx)
		}, &cli.Options{
			Args: args, Stdout: io.Discard, Stderr: t.Output(), Getenv: func(name string) string { return w.env[name] },
			Setenv: func(name, value string) error { w.env[name] = value; return nil },
		})
		if code != cli.ExitOK || seen != "" {
			t.Errorf("%v: %d, the opener sees %q", args, code, seen)
		}
	}
}
