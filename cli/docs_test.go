package cli_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go/cli"
)

const commandsIntroduction = `# Commands

The ` + "`--help`" + ` of every command, written by ` + "`go test ./cli -update`" + `. [Shared flags](#shared-flags) are those of two commands or more. A command that gives
one another meaning describes it.

A program with tasks has the same commands: ` + "`func main() { os.Exit(cli.Main(context.Background(), open)) }`" + `, where open
builds the runtime; ` + "`runlane init NAME`" + ` writes such a program. The binary of ` + "[cmd/runlane](../cmd/runlane)" + ` has no tasks: it
operates existing runs, triggers the tasks that ticks have stored, and knows queues by RUNLANE_QUEUES and RUNLANE_LIMITS
(` + "`--limits`" + `, name=number pairs). On AWS without RUNLANE_QUEUES it reads, cancels and prunes, and refuses what would wake a worker. It reads keys of
encrypted payloads from RUNLANE_KEYS or RUNLANE_KEYS_FILE ([encryption.md](encryption.md)) and shows runs without payloads if there are none, and
keys of answer tokens from RUNLANE_TOKEN_KEYS ([signals.md](signals.md)).

The lane is the first of: a flag (` + "`--lane`" + `, ` + "`--table`" + ` and the others that stand for a variable); RUNLANE_LANE, RUNLANE_TABLE or
RUNLANE_QUEUES; the file ` + "`.runlane/dev.db`" + ` of ` + "`runlane dev`" + ` in the current folder or one above it, with or without a session; the
program's opener. It is ` + "`sqlite:PATH`, `aws:` or `mem:`" + ` ([sqlite.md](sqlite.md)); a named table means ` + "`aws:`" + ` unless RUNLANE_LANE says
otherwise. Variables of AWS alone choose nothing. An empty flag (` + "`--table=`" + `) takes its variable away. ` + "`init`, `dev`, `token`, `restore`, `completion`, `version`" + `
and ` + "`worker`" + ` do not look for the file; a worker without a lane executes what its opener's lane has.

Results go to stdout, everything else to stderr. Tables are for people, ` + "`--json`" + ` for programs ([json.md](json.md)).
A run's ID may be given by its first six characters or more if no other run shares them.
`

// flagLine is a flag of a help text with its usage, which may go on in lines that are indented further.
var flagLine = regexp.MustCompile(`(?m)^  (--\S+(?: [^a-z\s]\S*)?) {2,}(.*(?:\n {4,}\S.*)*)\n`)

// sharedFlags are the flags that stand alike in two help texts or more, with the commonest meaning of each name, and their number of texts.
func sharedFlags(texts map[string]string) map[string]int {
	flags := map[string]int{}
	for _, text := range texts {
		_, text, _ = strings.Cut(text, "\nFlags:\n")
		for _, flag := range flagLine.FindAllStringSubmatch(text, -1) {
			flags[flag[1]+"  "+strings.Join(strings.Fields(flag[2]), " ")]++
		}
	}
	maps.DeleteFunc(flags, func(_ string, texts int) bool { return texts < 2 })
	most := map[string]int{} // by name, the texts of its commonest meaning
	for flag, texts := range flags {
		name, _, _ := strings.Cut(flag, " ")
		most[name] = max(most[name], texts)
	}
	maps.DeleteFunc(flags, func(flag string, texts int) bool {
		name, _, _ := strings.Cut(flag, " ")
		return texts < most[name]
	})
	return flags
}

// shortened is a help text as the document has it: shared flags by name, no list of the commands below, no last line; "" for a group whose
// help has one sentence, which the list of all commands has too.
func shortened(path, text string, flags map[string]int) string {
	if path == "" {
		return text
	}
	text, _, _ = strings.Cut(text, "\nFlags of every command:")
	text = strings.TrimPrefix(text, "Usage: ")
	about, _, group := strings.Cut(text, "\n\nCommands:\n")
	if group && !strings.Contains(strings.Join(strings.Fields(about), " "), ". ") {
		return ""
	}
	text = about
	var names []string
	text = flagLine.ReplaceAllStringFunc(text, func(line string) string {
		flag := flagLine.FindStringSubmatch(line)
		if flags[flag[1]+"  "+strings.Join(strings.Fields(flag[2]), " ")] == 0 {
			return line
		}
		name, _, _ := strings.Cut(flag[1], " ")
		names = append(names, name)
		return ""
	})
	if len(names) > 0 {
		own, examples, _ := strings.Cut(text, "\nExamples:\n")
		own = strings.TrimSuffix(own, "Flags:\n") + "Shared flags: " + strings.Join(names, ", ") + "\n"
		if text = own; examples != "" {
			text += "\nExamples:\n" + examples
		}
	}
	return strings.TrimRight(text, "\n") + "\n"
}

func TestCommandsDocument_IsTheHelp(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "docs", "commands.md")
	var b strings.Builder
	b.WriteString(commandsIntroduction)
	texts := cli.Help()
	flags := sharedFlags(texts)
	b.WriteString("\n## Shared flags\n\n```text\n" + strings.Join(slices.Sorted(maps.Keys(flags)), "\n") + "\n```\n")
	for _, path := range cli.Paths() {
		if shown := shortened(path, texts[path], flags); shown != "" {
			fmt.Fprintf(&b, "\n## %s\n\n```text\n%s```\n", strings.TrimSpace("runlane "+path), shown)
		}
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

// described are the kinds of docs/openapi.json with their fields.
func described(t *testing.T) map[string]map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var api struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]any `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &api); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]map[string]any{}
	for kind, schema := range api.Components.Schemas {
		kinds[kind] = schema.Properties
	}
	return kinds
}

// TestJSONDocument_NamesWhatScriptsSaw holds docs/json.md against every object in the scripts: each kind has a section, or a row and a schema
// of the API, and each field of the object stands in one of these.
func TestJSONDocument_NamesWhatScriptsSaw(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile(filepath.Join("..", "docs", "json.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections, api := map[string]string{}, described(t)
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
				_, rows, _ := strings.Cut(string(document), "\n| Kind |")
				for row := range strings.Lines(rows) {
					if cells := strings.Split(row, "|"); len(cells) > 1 && strings.Contains(cells[1], "`"+kind+"`") {
						text = row
					}
				}
			}
			if text == "" {
				t.Errorf("docs/json.md has no section or row %q", kind)
				continue
			}
			for name := range fields {
				if _, known := api[kind][name]; !known && name != "v" && name != "kind" && !strings.Contains(text, "`"+name+"`") {
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
