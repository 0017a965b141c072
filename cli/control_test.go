package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/internal/proof/patience"
)

// announced is what a session's file says.
type announced struct {
	Version int    `json:"v"`
	Address string `json:"address"`
	Token   string `json:"token"`
	Folder  string `json:"folder"`
	PID     int    `json:"pid"`
}

func (s *session) announced(t *testing.T) announced {
	t.Helper()
	var a announced
	if err := json.Unmarshal([]byte(text(t, s.file())), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// announce writes a session's file as another user might.
func announce(t *testing.T, folder string, a announced, mode fs.FileMode) (file string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(folder, ".runlane"), 0o700); err != nil {
		t.Fatal(err)
	}
	content, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(folder, ".runlane", "dev.json")
	if err := os.WriteFile(file, content, mode); err != nil {
		t.Fatal(err)
	}
	return file
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if err := connection.SetDeadline(time.Now().Add(patience.Limit)); err != nil {
		t.Fatal(err)
	}
	return connection
}

func TestControl_IsPrivate(t *testing.T) {
	t.Parallel()
	s := startDev(t, newWorld(), t.TempDir())
	for path, mode := range map[string]fs.FileMode{s.file(): 0o600, filepath.Dir(s.file()): 0o700 | fs.ModeDir} {
		info, err := os.Stat(path)
		if err != nil || info.Mode() != mode {
			t.Errorf("%s has mode %v, %v", path, info.Mode(), err)
		}
	}
	a := s.announced(t)
	if host, _, err := net.SplitHostPort(a.Address); err != nil || !net.ParseIP(host).IsLoopback() || len(a.Token) < 64 || a.PID != os.Getpid() {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestControl_WithoutTheToken_NothingIsLearntOrDone(t *testing.T) {
	t.Parallel()
	s := startDev(t, newWorld(), t.TempDir())
	a := s.announced(t)
	const call = `{"call":{"name":"x","args":["trigger","emails.welcome","--id","forbidden"]}}` + "\n"
	for name, sent := range map[string]string{
		"a wrong proof":   strings.Repeat("x", 64) + call,
		"the token plain": a.Token[:64] + call,
		"a web browser":   "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n" + call,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			connection := dial(t, a.Address)
			if _, err := io.WriteString(connection, sent); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(connection)
			if len(got) != 32 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the answer is %q, %v, not only a challenge", got, err)
			}
		})
	}
	t.Run("an unknown token in the file", func(t *testing.T) {
		t.Parallel()
		other := &session{folder: t.TempDir()}
		announce(t, other.folder, announced{Version: 1, Address: a.Address, Token: strings.Repeat("0", 64), Folder: other.folder}, 0o600)
		if r := other.away(t, "runs", "list"); !strings.Contains(r.stderr, "ended without removing its file") || r.stdout != "" {
			t.Errorf("%+v", r)
		}
	})
	t.Run("nothing was done", func(t *testing.T) {
		if r := s.away(t, "runs", "get", "forbidden"); r.code != cli.ExitNotFound {
			t.Errorf("%+v", r)
		}
	})
}

// TestControl_Stranger_LearnsNothing listens where a session was: it gets no token and no command.
func TestControl_Stranger_LearnsNothing(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	got := make(chan []byte, 1)
	go func() { // ends with the client's connection
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		defer connection.Close()
		_, _ = connection.Write(make([]byte, 64)) // a challenge, and a proof that it cannot have
		heard, _ := io.ReadAll(connection)
		got <- heard
	}()
	s := &session{folder: t.TempDir()}
	token := strings.Repeat("7", 64)
	file := announce(t, s.folder, announced{Version: 1, Address: listener.Addr().String(), Token: token, Folder: s.folder}, 0o600)
	r := s.away(t, "trigger", "emails.welcome", "secret payload")
	if !strings.Contains(r.stderr, "ended without removing its file") {
		t.Errorf("%+v", r)
	}
	if heard := string(<-got); len(heard) != 64 || strings.Contains(heard, "777") || strings.Contains(heard, "secret") {
		t.Errorf("the stranger hears %q", heard)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file stays: %v", err)
	}
}

func TestControl_SessionThatDied_IsForgotten(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for name, check := range map[string]func(t *testing.T, s *session){
		"by a command": func(t *testing.T, s *session) {
			t.Helper()
			if r := s.away(t, "runs", "list"); r.code != cli.ExitUnavailable || !strings.Contains(r.stderr, "ended without removing its file") {
				t.Errorf("%+v", r)
			}
			if left := names(t, s.folder); len(left) > 0 {
				t.Errorf("there is still %v", left)
			}
		},
		"by the next session": func(t *testing.T, s *session) {
			t.Helper()
			next := startDev(t, newWorld(), s.folder)
			if r := next.away(t, "runs", "list"); r.code != cli.ExitOK {
				t.Errorf("%+v", r)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &session{folder: t.TempDir()}
			announce(t, s.folder, announced{Version: 1, Address: closed, Token: strings.Repeat("7", 64), Folder: s.folder}, 0o600)
			check(t, s)
		})
	}
}

func TestControl_FilesThatAreNoSessions(t *testing.T) {
	t.Parallel()
	live := startDev(t, newWorld(), t.TempDir()).announced
	a := live(t)
	for name, c := range map[string]struct {
		a    announced
		mode fs.FileMode
		code int
		says string
	}{
		"readable by others": {a, 0o644, cli.ExitUnavailable, "ignored: "},
		"another version":    {announced{Version: 2, Address: a.Address, Token: a.Token}, 0o600, cli.ExitUsage, "another version"},
		"another machine":    {announced{Version: 1, Address: "192.0.2.1:80", Token: a.Token}, 0o600, cli.ExitUnavailable, "ended without removing its file"},
		"a host's name":      {announced{Version: 1, Address: "localhost:80", Token: a.Token}, 0o600, cli.ExitUnavailable, "ended without removing its file"},
	} {
		s := &session{folder: t.TempDir()}
		file := announce(t, s.folder, c.a, c.mode)
		if err := os.Chmod(file, c.mode); err != nil { // whatever the umask
			t.Fatal(err)
		}
		if r := s.away(t, "runs", "list"); r.code != c.code || !strings.Contains(r.stderr, c.says) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	s := &session{folder: t.TempDir()}
	write(t, "", announce(t, s.folder, a, 0o600))
	if r := s.away(t, "runs", "list"); r.code != cli.ExitUnavailable || !strings.Contains(r.stderr, "the table does not answer") {
		t.Errorf("an empty file: %+v", r)
	}
	r := runWith(t.Context(), newWorld(), &cli.Options{Args: []string{"dev"}, Folder: s.folder})
	if r.code != cli.ExitUsage || !strings.Contains(r.stderr, "belongs to no session") || !strings.Contains(r.stderr, "remove it") {
		t.Errorf("dev over an empty file: %+v", r)
	}
}

// TestControl_StoppedSession_IsToldAndKept accepts, as the system does for a process that is stopped, and never answers.
func TestControl_StoppedSession_IsToldAndKept(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s := &session{folder: t.TempDir()}
	file := announce(t, s.folder, announced{Version: 1, Address: listener.Addr().String(), Token: strings.Repeat("7", 64), PID: 4711}, 0o600)
	r := s.away(t, "runs", "list")
	if r.code != cli.ExitUnavailable || !strings.Contains(r.stderr, "does not answer") || !strings.Contains(r.stderr, "4711") {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

func TestControl_Terminal_IsTheCallers(t *testing.T) {
	t.Parallel()
	s := startDev(t, newWorld(), t.TempDir())
	for _, id := range []string{"one", "two"} {
		if r := s.away(t, "trigger", "emails.flaky", "--delay", "1h", "--id", id); r.code != cli.ExitOK {
			t.Fatalf("%+v", r)
		}
	}
	cancel := []string{"runs", "cancel", "--all"}
	if r := s.away(t, cancel...); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "There is no terminal to ask on") {
		t.Errorf("without a terminal: %+v", r)
	}
	if r := s.callWith(t.Context(), &cli.Options{Args: cancel, Stdin: strings.NewReader("n\n")}, 80); r.code != cli.ExitFailed ||
		!strings.Contains(r.stderr, "2 runs match: cancel them? [y/N] nothing was changed") {
		t.Errorf("no: %+v", r)
	}
	if r := s.callWith(t.Context(), &cli.Options{Args: []string{"runs", "list"}}, 80); !strings.Contains(r.stdout, "\x1b[") {
		t.Errorf("no color: %+v", r)
	}
	s.environment = map[string]string{"NO_COLOR": "1", "RUNLANE_ACTOR": "carol"}
	if r := s.callWith(t.Context(), &cli.Options{Args: []string{"runs", "list"}}, 40); strings.Contains(r.stdout, "\x1b[") || !strings.Contains(r.stdout, "…") &&
		len(strings.Split(r.stdout, "\n")[0]) > 40 {
		t.Errorf("NO_COLOR: %+v", r)
	}
	if r := s.callWith(t.Context(), &cli.Options{Args: cancel, Stdin: strings.NewReader("y\n")}, 80); r.code != cli.ExitOK ||
		!strings.Contains(r.stdout, "cancelled: 2") {
		t.Errorf("yes: %+v", r)
	}
	s.out.awaitTimes(t, "cancelled  by operator carol", 2)
}

func TestControl_Interrupt_EndsTheCommandThere(t *testing.T) {
	t.Parallel()
	s := startDev(t, newWorld(), t.TempDir())
	if r := s.away(t, "trigger", "emails.flaky", "--delay", "1h", "--id", "waiting"); r.code != cli.ExitOK {
		t.Fatalf("%+v", r)
	}
	t.Run("while it follows", func(t *testing.T) {
		t.Parallel()
		ctx, interrupt := context.WithCancel(t.Context())
		news := &lookout{seen: interrupt, text: "run.delivery_requested"}
		code := s.callWith(ctx, &cli.Options{Args: []string{"runs", "watch", "waiting"}, Stderr: news}, 0).code
		if code != cli.ExitInterrupted || !strings.Contains(news.String(), "the run goes on") || !strings.HasSuffix(news.String(), "interrupted\n") {
			t.Errorf("%d\n%s", code, news.String())
		}
	})
	t.Run("while it waits for input", func(t *testing.T) {
		t.Parallel()
		ctx, interrupt := context.WithCancel(t.Context())
		reader, writer := io.Pipe()
		defer writer.Close()
		news := &lookout{seen: interrupt, text: "[y/N]"}
		if code := s.callWith(ctx, &cli.Options{Args: []string{"runs", "cancel", "--all"}, Stdin: reader, Stderr: news}, 80).code; code != cli.ExitInterrupted {
			t.Errorf("%d\n%s", code, news.String())
		}
	})
	t.Run("by the time limit", func(t *testing.T) {
		t.Parallel()
		r := s.away(t, "runs", "watch", "waiting", "--timeout", "50ms", "--json")
		if r.code != cli.ExitFailed || !strings.Contains(r.stderr, `"code":"time_limit"`) {
			t.Errorf("%+v", r)
		}
	})
	t.Run("an interrupted batch", func(t *testing.T) {
		t.Parallel()
		var lines strings.Builder
		for n := range 250 {
			fmt.Fprintf(&lines, `{"payload":{"to":"u_%d"}}`+"\n", n)
		}
		ctx, interrupt := context.WithCancel(t.Context())
		reader, writer := io.Pipe() // the first hundred lines, and the rest when the interrupt is there
		go func() {                 // ends with the command, which closes nothing, or with the last line
			defer writer.Close()
			scanner := bufio.NewScanner(strings.NewReader(lines.String()))
			for n := 1; scanner.Scan(); n++ {
				if n == 150 {
					<-ctx.Done()
				}
				if _, err := io.WriteString(writer, scanner.Text()+"\n"); err != nil {
					return
				}
			}
		}()
		news := &lookout{seen: interrupt, text: "100 runs"}
		args := []string{"trigger", "emails.welcome", "--batch", "-", "--batch-id", "b1"}
		code := s.callWith(ctx, &cli.Options{Args: args, Stdin: reader, Stderr: news}, 0).code
		_ = reader.Close()
		if code != cli.ExitInterrupted || !strings.Contains(news.String(), "repeat the command with --batch-id b1") {
			t.Fatalf("%d\n%s", code, news.String())
		}
		if r := s.call(t, &cli.Options{Args: args, Stdin: strings.NewReader(lines.String())}); r.code != cli.ExitOK ||
			!strings.Contains(r.stdout, "there already: 1") || !strings.Contains(r.stdout, "failed: 0") {
			t.Errorf("%+v", r)
		}
	})
}

func TestControl_ClientThatGoesAway_LeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s := startDev(t, newWorld(), t.TempDir())
	if r := s.away(t, "trigger", "emails.flaky", "--delay", "1h", "--id", "waiting"); r.code != cli.ExitOK {
		t.Fatalf("%+v", r)
	}
	// A closed pipe ends the client; the command there ends too, or the test would find its goroutines.
	r := s.call(t, &cli.Options{Args: []string{"runs", "events", "waiting", "--follow"}, Stdout: failing{syscall.EPIPE}})
	if r.code != cli.ExitOK || r.stderr != "" {
		t.Errorf("a closed pipe: %+v", r)
	}
	r = s.call(t, &cli.Options{Args: []string{"runs", "events", "waiting", "--follow"}, Stdout: failing{syscall.ENOSPC}})
	if r.code != cli.ExitFailed || !strings.Contains(r.stderr, "the results cannot be written") {
		t.Errorf("a full disk: %+v", r)
	}
	if r := s.away(t, "runs", "get", "waiting"); r.code != cli.ExitOK {
		t.Errorf("the session does not go on: %+v", r)
	}
}

func TestControl_SessionThatStops_EndsItsClients(t *testing.T) {
	t.Parallel()
	s := startDev(t, newWorld(), t.TempDir())
	if r := s.away(t, "trigger", "emails.flaky", "--delay", "1h", "--id", "waiting"); r.code != cli.ExitOK {
		t.Fatalf("%+v", r)
	}
	news, ended := newStream(), make(chan int, 1)
	go func() { // ends with the session
		ended <- s.callWith(context.Background(), &cli.Options{Args: []string{"runs", "watch", "waiting"}, Stderr: news}, 0).code
	}()
	news.await(t, "run.delivery_requested")
	if code := s.stop(t); code != cli.ExitOK {
		t.Errorf("dev exits with %d", code)
	}
	if code := <-ended; code != cli.ExitUnavailable || !strings.Contains(news.String(), "ended before the command did") {
		t.Errorf("%d\n%s", code, news)
	}
}

func TestControl_LargeOutputAndInput_PassWhole(t *testing.T) {
	t.Parallel()
	s := startDev(t, newWorld(), t.TempDir())
	big := strings.Repeat("é", 100_000)
	if r := s.call(t, &cli.Options{Args: []string{"trigger", "emails.welcome", "-", "--id", "big"}, Stdin: strings.NewReader(`{"to":"` + big + `"}`)}); r.code != cli.ExitOK {
		t.Fatalf("%d %s", r.code, r.stderr)
	}
	if r := s.away(t, "runs", "get", "big", "--payload"); r.code != cli.ExitOK || strings.TrimSpace(r.stdout) != `{"to":"`+big+`"}` {
		t.Errorf("%d, %d bytes %s", r.code, len(r.stdout), r.stderr)
	}
}
