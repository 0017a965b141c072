package docstest_test

import (
	"bytes"
	"fmt"
	"go/format"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go/internal/tools/docstest"
)

// minimum is how many steps a document has at least, so that a mark that is lost does not go unnoticed.
var minimum = map[string]int{"README.md": 1, "docs/testing.md": 5, "docs/tutorial.md": 10}

// TestDocuments_AreTrue executes every marked block of every document, each document in a separate empty folder.
func TestDocuments_AreTrue(t *testing.T) {
	t.Parallel()
	for _, name := range documents(t) {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			t.Parallel()
			blocks, err := docstest.Parse(read(t, name))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			steps := slices.DeleteFunc(slices.Clone(blocks), func(b *docstest.Block) bool { return !b.Executed() })
			if len(steps) < minimum[name] {
				t.Errorf("%s has %d blocks that are executed, not %d or more", name, len(steps), minimum[name])
			}
			account := slices.IndexFunc(steps, func(b *docstest.Block) bool { return b.AWS })
			if account >= 0 && testing.Short() {
				steps = steps[:account] // the rest needs local AWS, or what comes of it
			}
			if len(steps) == 0 {
				return
			}
			s := newSession(t)
			if account >= 0 && !testing.Short() {
				s.aws = installation(t)
			}
			t.Cleanup(func() {
				if err := s.end(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
			for _, b := range steps {
				before := time.Now()
				if err := s.execute(t.Context(), b); err != nil {
					t.Fatalf("%s:%d: %v", name, b.Line, err)
				}
				t.Logf("%s:%d: %s", name, b.Line, time.Since(before).Round(10*time.Millisecond))
			}
		})
	}
	for name := range minimum {
		if !slices.Contains(documents(t), name) {
			t.Errorf("%s is not there", name)
		}
	}
}

// goFault says what is wrong with Go code in a document, which may be part of a file or of a function.
func goFault(b *docstest.Block) error {
	formatted, err := format.Source([]byte(b.Text))
	if err != nil {
		return err
	}
	if !bytes.Equal(formatted, []byte(b.Text)) {
		return fmt.Errorf("gofmt writes\n%s", formatted)
	}
	return nil
}

func TestGoBlocks_AreFormatted(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, name := range documents(t) {
		blocks, err := docstest.Parse(read(t, name))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, b := range blocks {
			if b.Language != "go" {
				continue
			}
			seen++
			if err := goFault(b); err != nil {
				t.Errorf("%s:%d: %v", name, b.Line, err)
			}
		}
	}
	if seen < 1 {
		t.Errorf("only %d blocks of Go", seen)
	}
}

// spoken are commands of runlane in a text, between backticks or on a line of a block, with a prompt or without.
var (
	spoken = regexp.MustCompile("`(runlane [a-z][^`]*)`")
	typed  = regexp.MustCompile(`(?m)^(?:\$ )?(runlane [a-z].*)$`)
	word   = regexp.MustCompile(`"[^"]*"|'[^']*'|[|&;<>#].*|[^\s"'|&;<>#]+`)
)

// commandsIn are the words of the commands of runlane that a document has outside the blocks that are executed.
func commandsIn(text string, blocks []*docstest.Block) [][]string {
	var lines []string
	for _, match := range spoken.FindAllStringSubmatch(text, -1) {
		lines = append(lines, match[1])
	}
	for _, b := range blocks {
		if b.Kind == docstest.KindText && (b.Language == "sh" || b.Language == "console") {
			for _, match := range typed.FindAllStringSubmatch(b.Text, -1) {
				lines = append(lines, match[1])
			}
		}
	}
	var commands [][]string
	for _, line := range lines {
		var words []string
		for _, w := range word.FindAllString(line, -1)[1:] {
			if strings.ContainsAny(w[:1], "|&;<>#") {
				break // from here on it is the shell's, or a comment
			}
			words = append(words, strings.Trim(w, `"'`))
		}
		commands = append(commands, words)
	}
	return commands
}

// parserFault asks the real parser of the command line, without executing anything: it reads all flags before it helps.
func parserFault(t *testing.T, words []string) string {
	t.Helper()
	binary, err := commandLine()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), binary, append(words, "--help")...).CombinedOutput(); err != nil {
		return fmt.Sprintf("%v\n%s", err, out)
	}
	return ""
}

// Commands that are shown and not executed exist with their flags.
func TestShownCommands_Exist(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, name := range documents(t) {
		blocks, err := docstest.Parse(read(t, name))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, words := range commandsIn(read(t, name), blocks) {
			line := strings.Join(words, " ")
			if seen[line] {
				continue
			}
			seen[line] = true
			if fault := parserFault(t, words); fault != "" {
				t.Errorf("%s: runlane %s: %s", name, line, fault)
			}
		}
	}
	if len(seen) < 20 {
		t.Errorf("only %d commands", len(seen))
	}
}
