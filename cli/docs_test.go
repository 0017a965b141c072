package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go/cli"
)

const commandsIntroduction = `# Commands

What ` + "`runlane COMMAND --help`" + ` says, for reading. A test holds the two equal: ` + "`go test ./cli -update`" + ` writes this page.

A program with tasks has the same commands: ` + "`func main() { os.Exit(cli.Main(context.Background(), open)) }`" + `, where open
builds the runtime; ` + "`runlane init NAME`" + ` writes such a program. The binary of ` + "[cmd/runlane](../cmd/runlane)" + ` has no tasks:
it operates what others triggered, triggers the tasks that ticks have stored, and knows of other queues what RUNLANE_QUEUES and
RUNLANE_LIMITS (` + "`--limits`" + `, name=number pairs) tell it. On AWS without RUNLANE_QUEUES it reads, cancels and prunes; what would have
to wake a worker is refused. Keys of encrypted payloads are read from RUNLANE_KEYS or RUNLANE_KEYS_FILE ([encryption.md](encryption.md));
without, runs are shown without them. Those of answer tokens are read from RUNLANE_TOKEN_KEYS ([signals.md](signals.md)).

A lane is chosen, in this order: by a flag of those that stand for a variable (` + "`--lane`" + `, ` + "`--table`" + ` and the others); by
RUNLANE_LANE, RUNLANE_TABLE or RUNLANE_QUEUES; by the file ` + "`.runlane/dev.db`" + ` of ` + "`runlane dev`" + ` in the current folder
or in one above it, while a session runs and without one; else by the program's opener. A lane is ` + "`sqlite:PATH`, `aws:` or `mem:`" + ` ([sqlite.md](sqlite.md)); a table that is named
means ` + "`aws:`" + `, unless RUNLANE_LANE says another. Variables of AWS alone choose nothing. A flag that is given empty
(` + "`--table=`" + `) takes its variable away. ` + "`init`, `dev`, `token`, `restore`, `completion`" + ` and ` + "`version`" + ` look for no such file, and
` + "`worker`" + ` does not: a worker without a lane executes what its own opener's lane has.

Results are written to stdout, everything else to stderr. Tables are for people; programs use ` + "`--json`" + ` ([json.md](json.md)).
A run's id can be given by its beginning, of six characters at least, when no other run shares it.
`

func TestCommandsDocument_IsTheHelp(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "docs", "commands.md")
	var b strings.Builder
	b.WriteString(commandsIntroduction)
	texts := cli.Help()
	for _, path := range cli.Paths() {
		fmt.Fprintf(&b, "\n## %s\n\n```text\n%s```\n", strings.TrimSpace("runlane "+path), texts[path])
		for line := range strings.Lines(texts[path]) {
			if len([]rune(strings.TrimSuffix(line, "\n"))) > 80 && !strings.HasPrefix(line, "  runlane ") {
				t.Errorf("%s: help has a line of more than 80 columns: %s", path, line)
			}
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(content), "\n"), strings.Split(b.String(), "\n")); diff != "" {
		t.Errorf("docs/commands.md differs from --help: go test ./cli -update (-document +help)\n%s", diff)
	}
}

// TestJSONDocument_NamesWhatScriptsSaw holds docs/json.md against every object in the scripts: each kind has a section, and each
// field of the object stands in it.
func TestJSONDocument_NamesWhatScriptsSaw(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile(filepath.Join("..", "docs", "json.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for section := range strings.SplitSeq(string(document), "\n### ") {
		title, text, _ := strings.Cut(section, "\n")
		for _, kind := range strings.Split(title, ", ") {
			sections[strings.Trim(kind, "`")] = text
		}
	}
	var files []string
	for _, pattern := range []string{"testdata/*.txt", "testdata/commands/*.txt"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	seen := map[string]bool{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			if len(line) < 3 || !strings.HasPrefix(line[2:], `{"v":`) {
				continue
			}
			var fields map[string]any
			if err := json.Unmarshal([]byte(line[2:]), &fields); err != nil {
				t.Fatalf("%s: %s: %v", file, line, err)
			}
			kind, _ := fields["kind"].(string)
			seen[kind] = true
			text, documented := sections[kind]
			if !documented {
				t.Errorf("docs/json.md has no section %q", kind)
				continue
			}
			for name := range fields {
				if name != "v" && name != "kind" && !strings.Contains(text, "`"+name+"`") {
					t.Errorf("docs/json.md, %s, does not name %q", kind, name)
				}
			}
		}
	}
	for kind, text := range sections {
		if !seen[kind] && !strings.HasPrefix(kind, "#") && !slices.Contains([]string{"backup", "begin", "dev", "edit", "import", "restore", "serve", "token", "version"}, kind) && !strings.Contains(text, "/v1/") { // these have separate tests
			t.Errorf("docs/json.md describes %q, which no script shows", kind)
		}
	}
}
