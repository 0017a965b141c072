package cli_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
)

var update = flag.Bool("update", false, "write what the commands answer into testdata and docs")

// TestScripts plays testdata/*.txt: "$" is a command, ">" a line of its stdout, "!" one of stderr, "=" its exit code unless it is 0.
// "@" changes the world: terminal COLUMNS, env NAME=VALUE, stdin TEXT, file NAME TEXT, advance DURATION, down, up, plain, refuse, accept,
// keys NAMES (of what encrypts payloads; none ends it), aws FAULT (of an endpoint in place of AWS; none ends it), options NUMBER (of wrong
// ones, with which the program opens), flow ID ADDRESS (starts a flow that prints for the address), fail WAY (in which emails.watched returns its code mailbox_full), interrupt TEXT (the next command,
// when that is on its stderr).
// FOLDER is one of the test's own, TOKEN the answer token of single-run-0001. Commands of one file share a storage. -update writes the answers down; read the difference before you keep it.
func TestScripts(t *testing.T) {
	t.Parallel()
	playAll(t, "testdata/*.txt")
}

// namelessHints are commands in a hint or a note without the program, but those that someone may have meant.
var namelessHints = regexp.MustCompile(`(?m)^(! (next|fix)|> +(next|fix)|! [^en]).*[^n] "(runs|doctor|dev|worker|tick|` +
	`tasks|flows|queues|schedules|deadletters|trigger|token|serve|init|restore|idempotency) .*$`)

// playAll plays scripts, or writes down what they answer with -update.
func playAll(t *testing.T, pattern string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) < 10 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			played := play(t, string(content))
			for _, hint := range namelessHints.FindAllString(played, -1) {
				t.Errorf("a command without its program cannot be repeated: %s", hint)
			}
			if *update {
				if err := os.WriteFile(file, []byte(played), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(strings.Split(string(content), "\n"), strings.Split(played, "\n")); diff != "" {
				t.Errorf("(-script +answers)\n%s", diff)
			}
		})
	}
}

// play runs a script and returns it with the answers it really got.
func play(t *testing.T, script string) string {
	t.Helper()
	w, folder := newWorld(), t.TempDir()
	var played strings.Builder
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "$ "):
			played.WriteString(line + "\n")
			args := fields(t, strings.NewReplacer("FOLDER", folder, "TOKEN", askedToken).Replace(line[2:]))
			played.WriteString(w.without(answer(w.run(t.Context(), args...)), folder))
			w.stdin, w.interrupt = "", ""
		case strings.HasPrefix(line, "@ "):
			played.WriteString(line + "\n")
			direct(t, w, folder, line[2:])
		case strings.HasPrefix(line, ">"), strings.HasPrefix(line, "!"), strings.HasPrefix(line, "="):
			// what was answered when the script was written
		default:
			played.WriteString(line + "\n")
		}
	}
	return played.String()
}

// without has names in place of what is different each time.
func (w *world) without(text, folder string) string {
	text = strings.NewReplacer(folder, "FOLDER", askedToken, "TOKEN").Replace(text)
	if address := strings.TrimPrefix(w.endpoint, "http://"); address != "" {
		text = strings.ReplaceAll(text, address, "ENDPOINT")
	}
	return text
}

func direct(t *testing.T, w *world, folder, line string) {
	t.Helper()
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "terminal":
		columns, err := strconv.Atoi(rest)
		if err != nil {
			t.Fatal(err)
		}
		w.columns = columns
	case "env":
		name, value, _ := strings.Cut(rest, "=")
		w.env[name] = value
	case "stdin":
		w.stdin = strings.ReplaceAll(rest, `\n`, "\n")
	case "file":
		name, text, _ := strings.Cut(rest, " ")
		if err := os.WriteFile(filepath.Join(folder, name), []byte(strings.ReplaceAll(text, `\n`, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	case "advance":
		d, err := runlane.ParseDuration(rest)
		if err != nil {
			t.Fatal(err)
		}
		w.millis.Add(int64(d / time.Millisecond))
	case "down", "up":
		w.down = word == "down"
	case "refuse", "accept":
		w.refuse = word == "refuse"
	case "aws":
		w.onAWS(t, rest)
	case "interrupt":
		w.interrupt = rest
	case "options":
		w.faults, _ = strconv.Atoi(rest)
	case "fail":
		w.during = withCode(t, rest)
	case "flow":
		w.startFlow(t, rest)
	case "keys":
		w.encrypt(t, rest)
	case "plain", "orders", "mail":
		w.plain, w.orders = word == "plain", word == "orders"
	default:
		t.Fatalf("unknown directive %q", word)
	}
}

// withCode is a handler whose error has the code mailbox_full.
func withCode(t *testing.T, way string) func(context.Context, runlane.RunID) error {
	t.Helper()
	const full = runlane.ErrorCode("mailbox_full")
	typed := &runlane.Error{Code: full, Message: "the mailbox is full"}
	err, known := map[string]error{
		"alone":   full,
		"first":   fmt.Errorf("%w: that of ada", full),
		"last":    fmt.Errorf("the mailbox of ada: %w", full),
		"typed":   typed,
		"wrapped": fmt.Errorf("send: %w", typed),
		"unlike":  errors.New("mailbox_fuller than full"),
	}[way]
	if !known {
		t.Fatalf("unknown way to fail %q", way)
	}
	return func(context.Context, runlane.RunID) error { return runlane.Permanent(err) }
}

// fields splits a command as a shell does, as far as quotes go.
func fields(t *testing.T, text string) []string {
	t.Helper()
	var words []string
	word, quote, open := "", rune(0), false
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word += string(r)
		case r == '\'' || r == '"':
			quote, open = r, true
		case r == ' ':
			if word != "" || open {
				words = append(words, word)
			}
			word, open = "", false
		default:
			word += string(r)
		}
	}
	if quote != 0 {
		t.Fatalf("a quote is open: %s", text)
	}
	if word != "" || open {
		words = append(words, word)
	}
	return words
}

func answer(r result) string {
	var b strings.Builder
	for _, stream := range []struct{ mark, text string }{{">", r.stdout}, {"!", r.stderr}} {
		for line := range strings.Lines(stream.text) {
			line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\x1b", `\e`)
			b.WriteString(strings.TrimRight(stream.mark+" "+line, " ") + "\n")
		}
	}
	if r.code != 0 {
		fmt.Fprintf(&b, "= %d\n", r.code)
	}
	return b.String()
}
