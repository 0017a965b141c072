package cli_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/core"
)

func TestDev_OtherProcesses_UseIt(t *testing.T) {
	t.Parallel()
	s := startDev(t, newWorld(), t.TempDir())
	below := filepath.Join(s.folder, "a", "b")
	if err := os.MkdirAll(below, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, `{"to":"file"}`, below, "letter.json")
	write(t, `{"payload":{"to":"x"}}`+"\n"+`{"payload":{"to":"y"}}`+"\n", below, "many.ndjson")
	for _, c := range []struct {
		args         []string
		stdin        string
		code         int
		stdout, news string
	}{
		{args: []string{"trigger", "emails.welcome", `{"to":"arg"}`, "--wait"}, stdout: `{"sent":"arg"}`, news: "run.succeeded"},
		{args: []string{"trigger", "emails.welcome", "@letter.json", "--wait"}, stdout: `{"sent":"file"}`},
		{args: []string{"trigger", "emails.welcome", "-", "--wait"}, stdin: `{"to":"stdin"}`, stdout: `{"sent":"stdin"}`},
		{args: []string{"trigger", "emails.welcome", "@absent"}, code: cli.ExitUsage, news: "absent cannot be read: no such file or directory"},
		{args: []string{"trigger", "emails.welcome", "-"}, stdin: "no json", code: cli.ExitUsage, news: "line 1, column 2"},
		{args: []string{"trigger", "emails.welcome", "--batch", "many.ndjson"}, stdout: "created: 2, there already: 0, failed: 0"},
		{args: []string{"trigger", "emails.welcome", "--batch", "absent"}, code: cli.ExitUsage, news: "absent cannot be read"},
		{args: []string{"trigger", "emails.welcome", "--batch", "-"}, stdin: `{"payload":{"to":"z"}}`, stdout: "created: 1, "},
		{args: []string{"trigger", "emails.wellcome"}, code: cli.ExitNotFound, news: `did you mean "emails.welcome"?`},
		{args: []string{"trigger", "emails.flaky", "--delay", "1h", "--id", "waiting-run"}, stdout: "waiting-run"},
		{args: []string{"runs", "cancel", "waiting"}, stdout: "waiting-run is cancelled"},
		{args: []string{"runs", "cancel", "waiting"}, code: cli.ExitConflict, news: "next: "},
		{args: []string{"runs", "events", "waiting"}, stdout: "by operator bob"},
		{args: []string{"runs", "get", "absent"}, code: cli.ExitNotFound},
		{args: []string{"runs", "list", "--json", "--queues="}, stdout: `"runId":"waiting-run"`},
		{args: []string{"runs", "lst"}, code: cli.ExitUsage, news: `did you mean "list"?`},
		{args: []string{"schedules", "list"}, stdout: "nightly"},
		{args: []string{"doctor"}, stdout: "chosen by the session of dev in " + s.folder},
		{args: []string{"tick"}, stdout: "delivered"},
		{args: []string{"__complete", "trigger", "emails.w"}, stdout: "emails.watched\nemails.welcome\n"},
		{args: []string{"runs", "prune", "--older-than", "1d"}, code: cli.ExitOK, stdout: "0 runs match"},
	} {
		r := s.call(t, &cli.Options{Args: c.args, Stdin: strings.NewReader(c.stdin), Folder: below})
		if r.code != c.code || !strings.Contains(r.stdout, c.stdout) || !strings.Contains(r.stderr, c.news) {
			t.Errorf("%v: %+v", c.args, r)
		}
	}
	for _, shown := range []string{"emails.welcome  created  trigger, by operator bob", "emails.welcome  succeeded  attempt 1", "emails.flaky  cancelled  by operator bob"} {
		s.out.await(t, shown)
	}
	if code := s.stop(t); code != cli.ExitOK || !strings.Contains(s.news.String(), "stopped; no run was waiting") {
		t.Errorf("%d\n%s", code, s.news)
	}
	if _, err := os.Stat(filepath.Dir(s.file())); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the session leaves its file: %v", err)
	}
	if r := s.away(t, "runs", "list"); r.code != cli.ExitUnavailable || !strings.Contains(r.stderr, "the table does not answer") {
		t.Errorf("after the end the program's own lane is used: %+v", r)
	}
}

func TestDev_ManyCallsAtOnce(t *testing.T) {
	t.Parallel()
	s := startDev(t, newWorld(), t.TempDir())
	done := make(chan result)
	for range 8 {
		go func() { // ends by itself
			done <- s.callWith(t.Context(), &cli.Options{Args: []string{"trigger", "emails.welcome", `{"to":"u"}`, "--wait"}}, 0)
		}()
	}
	for range 8 {
		if r := <-done; r.code != cli.ExitOK {
			t.Errorf("%+v", r)
		}
	}
}

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

func TestDev_TextOfWhatWasLeft(t *testing.T) {
	t.Parallel()
	s := startDev(t, newWorld(), t.TempDir())
	if r := s.away(t, "trigger", "emails.flaky", "--delay", "1h"); r.code != cli.ExitOK {
		t.Fatalf("%+v", r)
	}
	if code := s.stop(t); code != cli.ExitOK || !strings.Contains(s.news.String(), "stopped; what waited in memory is gone: 1 run\n") {
		t.Errorf("%d\n%s", code, s.news)
	}
}

func TestDev_Second_IsRefused(t *testing.T) {
	t.Parallel()
	s := startDev(t, newWorld(), t.TempDir())
	r := s.away(t, "dev")
	if r.code != cli.ExitConflict || !strings.Contains(r.stderr, "already: process ") || !strings.Contains(r.stderr, "next: use that one") {
		t.Errorf("%+v", r)
	}
	if r := s.away(t, "runs", "list"); r.code != cli.ExitOK {
		t.Errorf("the first one does not go on: %+v", r)
	}
	below := filepath.Join(s.folder, "below") // another folder is another project
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	other := startDev(t, newWorld(), below)
	if r := s.away(t, "trigger", "emails.welcome", `{"to":"u"}`, "--id", "above"); r.code != cli.ExitOK {
		t.Fatalf("%+v", r)
	}
	if r := other.away(t, "runs", "get", "above"); r.code != cli.ExitNotFound {
		t.Errorf("the nearer session is not used: %+v", r)
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

// A session is not built again when its source changes: a call for a task that it does not have says so.
func TestDev_TaskThatIsNew_SaysToStartAgain(t *testing.T) {
	t.Parallel()
	s := startDev(t, newWorld(), t.TempDir())
	r := s.away(t, "trigger", "reports.new", "{}")
	if r.code != cli.ExitNotFound || !strings.Contains(r.stderr, "start it again for a task that is new") {
		t.Errorf("%+v", r)
	}
	if r := runWith(t.Context(), newWorld(), &cli.Options{Args: []string{"trigger", "reports.new", "{}"}}); strings.Contains(r.stderr, "session") {
		t.Errorf("without a session: %+v", r)
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
	ended := make(chan int, 1)
	go func() { // ends with the first transition
		ended <- runWith(context.Background(), w, &cli.Options{Args: []string{"dev"}, Folder: folder, Stdout: failing{syscall.EPIPE}, Stderr: news}).code
	}()
	news.await(t, "an interrupt stops it")
	s := &session{folder: folder}
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
	if r.code != cli.ExitUsage || r.stdout != "" || !strings.Contains(r.stderr, `start "dev"`) || !strings.Contains(r.stderr, "RUNLANE_TABLE") {
		t.Errorf("%+v", r)
	}
	w := newWorld()
	w.env["RUNLANE_ENV"] = "staging"
	r = runWith(t.Context(), w, &cli.Options{Args: []string{"trigger", "emails.welcome"}, Folder: t.TempDir()})
	if r.code != cli.ExitUsage || !strings.Contains(r.stderr, "RUNLANE_ENV is set, and no session of dev has that environment") {
		t.Errorf("%+v", r)
	}
	for _, args := range [][]string{{"worker", "--drain"}, {"version"}, {"completion", "bash"}, {"runs", "--help"}} {
		if r := runWith(t.Context(), newWorld(), &cli.Options{Args: args, Folder: t.TempDir()}); r.code != cli.ExitOK {
			t.Errorf("%v needs no session: %+v", args, r)
		}
	}
}

func TestRun_ChosenLane_IsUsedBesideASession(t *testing.T) {
	t.Parallel()
	s := startDev(t, newWorld(), t.TempDir())
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
		away bool // the session is not asked
	}{
		"nothing":             {[]string{"runs", "list"}, nil, false},
		"a flag":              {[]string{"runs", "list", "--table", "t"}, nil, true},
		"a flag in front":     {[]string{"--region=eu-west-1", "runs", "list"}, nil, true},
		"a variable":          {[]string{"runs", "list"}, map[string]string{"RUNLANE_TABLE": "t"}, true},
		"an environment":      {[]string{"runs", "list"}, map[string]string{"RUNLANE_ENV": "e"}, true},
		"that of the session": {[]string{"runs", "list"}, map[string]string{"RUNLANE_ENV": "default"}, false},
		"the same by a flag":  {[]string{"runs", "list", "--env", "default"}, nil, false},
		"and more":            {[]string{"runs", "list", "--env", "default", "--region", "eu-west-1"}, nil, true},
		"one of AWS":          {[]string{"runs", "list"}, map[string]string{"AWS_REGION": "eu-west-1", "AWS_PROFILE": "p"}, false},
		"taken away again":    {[]string{"runs", "list", "--table="}, map[string]string{"RUNLANE_TABLE": "t"}, false},
		"local in any case":   {[]string{"worker", "--drain"}, nil, true},
		"usage needs no one":  {[]string{"runs", "get"}, nil, false},
	} {
		s.environment = c.env
		r := s.away(t, c.args...)
		if asked := r.code != cli.ExitUnavailable; asked == c.away {
			t.Errorf("%s: %+v", name, r)
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
