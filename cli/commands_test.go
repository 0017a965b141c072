package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/runlane/runlane-go/cli"
)

// TestCommandScripts plays testdata/commands/*.txt, a script for each command that does something.
func TestCommandScripts(t *testing.T) {
	t.Parallel()
	playAll(t, "testdata/commands/*.txt")
}

// block is a command of a script and what it answered.
type block struct {
	args           []string
	stdout, stderr string
	code           string // "0" where the script says none
	aws            string // the fault of the endpoint, "" for none
	columns        string // of the terminal, "0" for none
}

func (b *block) of(path string) bool {
	return strings.HasPrefix(strings.Join(b.args, " ")+" ", path+" ")
}
func (b *block) json() bool { return slices.Contains(b.args, "--json") }

func blocksOf(t *testing.T, file string) []block {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	state := block{code: "0", columns: "0"}
	for line := range strings.Lines(string(content)) {
		mark, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch word, value, _ := strings.Cut(rest, " "); {
		case mark == "$":
			next := state
			next.args = fields(t, rest)
			blocks = append(blocks, next)
		case mark == "@" && word == "aws":
			state.aws = strings.TrimPrefix(value, "none")
		case mark == "@" && word == "terminal":
			state.columns = value
		case mark == ">":
			blocks[len(blocks)-1].stdout += rest + "\n"
		case mark == "!":
			blocks[len(blocks)-1].stderr += rest + "\n"
		case mark == "=":
			blocks[len(blocks)-1].code = rest
		}
	}
	return blocks
}

func scriptsOf(t *testing.T, pattern string) map[string][]block {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatal(pattern, err)
	}
	scripts := map[string][]block{}
	for _, file := range files {
		scripts[strings.TrimSuffix(filepath.Base(file), ".txt")] = blocksOf(t, file)
	}
	return scripts
}

// What some commands do not have, and why.
var (
	oneForm = map[string]string{
		"completion": "what it writes is a script of another language",
		"version":    "what it writes depends on the machine: TestVersion_BothForms",
		"worker":     "it has no results",
	}
	elsewhere = map[string]string{ // commands whose cases are tests of another file
		"backup":        "backup_test.go, and of cmd/runlane",
		"dev":           "dev_test.go",
		"export":        "move_test.go, and of cmd/runlane",
		"import":        "move_test.go, and of cmd/runlane",
		"functions add": "project_edit_test.go",
		"init":          "init_test.go",
		"queues add":    "project_edit_test.go",
		"mcp":           "mcp_test.go, and of cmd/runlane",
		"restore":       "backup_test.go, and of cmd/runlane",
		"serve":         "serve_test.go",
		"token":         "serve_test.go",
	}
)

// TestCommands_EachHasItsCases holds the scripts against the tree of commands: a new command, or a new kind of argument, needs its cases.
// An endpoint with a fault is here where a command answers it in a form of its own. Each command meets each in cmd/runlane's
// TestBinary_EveryCommand_UnderEveryFault_SaysWhatToDo.
func TestCommands_EachHasItsCases(t *testing.T) {
	t.Parallel()
	scripts, others := scriptsOf(t, "testdata/commands/*.txt"), scriptsOf(t, "testdata/*.txt")
	for _, command := range cli.Commands() {
		name := strings.ReplaceAll(command.Path, " ", "-")
		if elsewhere[command.Path] != "" {
			continue
		}
		own := scripts[name]
		delete(scripts, name)
		var all []block
		for _, blocks := range others {
			all = append(all, blocks...)
		}
		all = append(all, own...)
		needs := func(what string, blocks []block, fits func(b *block) bool) {
			if !slices.ContainsFunc(blocks, func(b block) bool { return b.of(command.Path) && fits(&b) }) {
				t.Errorf("testdata/commands/%s.txt has no case of %s", name, what)
			}
		}
		usage := func(text string) func(*block) bool {
			return func(b *block) bool { return b.code == "2" && strings.Contains(b.stderr, text) }
		}
		needs("a wrong flag, with the nearest", own, func(b *block) bool {
			return usage("there is no flag")(b) && strings.Contains(b.stderr, "did you mean --")
		})
		if command.Min > 0 {
			needs("too few arguments", own, usage(" missing: "))
		}
		if command.Max >= 0 {
			needs("too many arguments", own, usage("one argument too many"))
		}
		if command.Takes("JSON") {
			needs("wrong JSON, with line and column", own, usage("line 3, column 1"))
		}
		if command.Takes("batch") {
			needs("wrong JSON in a batch, with its line and column", own, func(b *block) bool {
				return strings.Contains(b.stderr, "line 7:\nerror: no JSON: column 12")
			})
		}
		for _, named := range []string{"TASK", "SCHEDULE", "QUEUE"} {
			if command.Takes(named) {
				needs("an unknown "+named+", with the nearest", all, func(b *block) bool {
					return strings.Contains(strings.ReplaceAll(b.stderr, `\"`, `"`), `did you mean "`)
				})
			}
		}
		if command.Takes("RUN") {
			needs("the beginning of an id", own, func(b *block) bool { return slices.Contains(b.args, "single-run") && b.code != "2" })
			needs("an ambiguous beginning of an id", own, usage(`"shared" is the beginning of 2 runs`))
		}
		if command.Takes("yes") {
			needs("no terminal to confirm", all, usage("There is no terminal to ask on"))
		}
		needs("the table form", all, func(b *block) bool {
			return oneForm[command.Path] != "" || b.aws == "" && !b.json() && b.code != "2" && b.stdout != ""
		})
		needs("the JSON form", all, func(b *block) bool {
			return oneForm[command.Path] != "" || b.aws == "" && b.json() && strings.HasPrefix(b.stdout, `{"v":1,`)
		})
		needs("a terminal of 80 columns", own, func(b *block) bool { return oneForm[command.Path] != "" || b.columns == "80" && b.stdout != "" })
	}
	for name := range scripts {
		t.Errorf("testdata/commands/%s.txt is of no command", name)
	}
}

// TestScripts_KeepTheirManners looks at everything that any script shows.
func TestScripts_KeepTheirManners(t *testing.T) {
	t.Parallel()
	codes := map[string]bool{}
	for _, pattern := range []string{"testdata/*.txt", "testdata/commands/*.txt"} {
		for name, blocks := range scriptsOf(t, pattern) {
			for _, b := range blocks {
				codes[b.code] = true
				shown := b.stdout + b.stderr
				if strings.Contains(shown, "very-secret") {
					t.Errorf("%s: %v shows a secret", name, b.args)
				}
				if failed := b.code != "0" && strings.Contains(b.stderr, "error"); failed &&
					!strings.Contains(b.stderr, "next: ") && !strings.Contains(b.stderr, `"next":"`) {
					t.Errorf("%s: %v does not say what to do next", name, b.args)
				}
				columns, err := strconv.Atoi(b.columns)
				if err != nil {
					t.Fatal(err)
				}
				for line := range strings.Lines(escapes.ReplaceAllString(b.stdout, "")) {
					if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); columns > 0 && n > columns {
						t.Errorf("%s: %v writes a line of %d columns: %s", name, b.args, n, line)
					}
				}
				if columns == 0 && strings.Contains(shown, `\e[`) {
					t.Errorf("%s: %v is colored in a pipe", name, b.args)
				}
			}
		}
	}
	for _, code := range []int{
		cli.ExitOK, cli.ExitFailed, cli.ExitUsage, cli.ExitNotFound, cli.ExitConflict, cli.ExitUnavailable, cli.ExitInterrupted,
	} {
		if !codes[strconv.Itoa(code)] {
			t.Errorf("no script exits with %d", code)
		}
	}
}

var escapes = regexp.MustCompile(`\\e\[[0-9;]*m`)

func TestVersion_BothForms(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.columns = 80
	if r := w.run(t.Context(), "version"); r.code != cli.ExitOK || !strings.HasPrefix(r.stdout, "runlane devel (go") || len(r.stdout) > 80 {
		t.Errorf("%+v", r)
	}
	if r := w.run(t.Context(), "version", "--json"); r.code != cli.ExitOK || !strings.HasPrefix(r.stdout, `{"v":1,"kind":"version","version":"devel","go":"go`) {
		t.Errorf("%+v", r)
	}
}
