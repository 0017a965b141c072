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

The ` + "`--help`" + ` of every command, written by ` + "`go test ./cli -update`" + `, without what the page has already. A heading is what follows
` + "`runlane`" + `.

A program with tasks has the same commands: ` + "`func main() { os.Exit(cli.Main(context.Background(), open)) }`" + `, where open
builds the runtime; ` + "`runlane init NAME`" + ` writes such a program. The binary of [cmd/runlane](../cmd/runlane) has no tasks: it
operates existing runs, triggers the tasks that ticks have stored, and knows queues by RUNLANE_QUEUES and RUNLANE_LIMITS
(` + "`--limits`" + `, name=number pairs). On AWS without RUNLANE_QUEUES it refuses what would wake a worker. Without the keys of
[encrypted payloads](encryption.md) it shows runs without payloads.

The lane is the first of: a flag (` + "`--lane`" + `, ` + "`--table`" + ` and the others that stand for a variable); RUNLANE_LANE, RUNLANE_TABLE or
RUNLANE_QUEUES; the file ` + "`.runlane/dev.db`" + ` of ` + "`runlane dev`" + ` in the current folder or one above it; the program's opener.
It is ` + "`sqlite:PATH`" + `, ` + "`aws:`" + ` or ` + "`mem:`" + ` ([sqlite.md](sqlite.md)); a named table means ` + "`aws:`" + ` unless RUNLANE_LANE says
otherwise. An empty flag (` + "`--table=`" + `) takes its variable away. ` + "`init`" + `, ` + "`dev`" + `, ` + "`token`" + `, ` + "`restore`" + `, ` + "`completion`" + `, ` + "`version`" + `
and ` + "`worker`" + ` do not look for the file; a worker without a lane executes what its opener's lane has.

Results go to stdout, everything else to stderr. Tables are for people, ` + "`--json`" + ` for programs ([json.md](json.md)).

## Shared flags

A command that gives one another meaning describes it. A command for many runs takes, without RUN, the runs of the filter, or with
` + "`--all`" + ` every run. It counts them first; without a terminal ` + "`--yes`" + ` is required.
`

// The sets of flags that commands share, by what the document calls them.
var (
	filterFlags = []string{"failure-code", "queue", "schedule", "since", "source", "status", "task", "until", "waiting"}
	manyFlags   = append([]string{"actor", "after", "all", "dry-run", "limit", "reason", "yes"}, filterFlags...)
)

// sharedNames lists shared flags of a command, with a name for each set that it has whole.
func sharedNames(names []string) string {
	var list []string
	for _, set := range []struct {
		name  string
		flags []string
	}{{"those for many runs", manyFlags}, {"the filter", filterFlags}} {
		has := func(flag string) bool { return slices.Contains(names, "--"+flag) }
		if !slices.ContainsFunc(set.flags, func(flag string) bool { return !has(flag) }) {
			names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(set.flags, name[2:]) })
			list = append(list, set.name)
		}
	}
	return strings.Join(append(list, names...), ", ")
}

// sharedList describes the shared flags, by their sets.
func sharedList(flags map[string]int) string {
	sets := [3]string{}
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		name, _, _ := strings.Cut(flag[2:], " ")
		switch {
		case slices.Contains(filterFlags, name):
			sets[0] += "  " + flag + "\n"
		case slices.Contains(manyFlags, name):
			sets[1] += "  " + flag + "\n"
		default:
			sets[2] += "  " + flag + "\n"
		}
	}
	return "The filter:\n" + sets[0] + "For many runs, with the filter:\n" + sets[1] + "Others:\n" + sets[2]
}

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

var (
	// manyRuns are the sentences that the help of each command for many runs has.
	manyRuns   = regexp.MustCompile(`(\n\nWithout RUN it applies|[ \n]The runs are counted)[^.]*\.(\nThe runs are[^.]*\.)?`)
	filledLine = regexp.MustCompile(`(?m)^.+$`)

	// commandList are the commands below one, each with its sentence.
	commandList = regexp.MustCompile(`\nCommands:\n(?:  .*\n)+`)
	// plainExample repeats the usage: it has no flag, and nothing for the shell.
	plainExample = regexp.MustCompile(`(?m)^  runlane( [\w.-]+)*\n`)
)

// shortened is a help text as the document has it: shared flags by name, no sentences of commands for many runs, no list of the commands
// below, at most one example, which does not repeat the usage, no last line; "" for a group whose help has one sentence.
func shortened(path, text string, flags map[string]int) string {
	if path == "" {
		_, text, _ = strings.Cut(commandList.ReplaceAllString(text, ""), "\n\n") // without the usage
		return "runlane\n\n" + text
	}
	text, _, _ = strings.Cut(text, "\nFlags of every command:")
	text = manyRuns.ReplaceAllString(strings.Replace(strings.TrimPrefix(text, "Usage: "), " [FLAGS]\n", "\n", 1), "")
	about, _, group := strings.Cut(text, "\n\nCommands:\n")
	if group && !strings.Contains(strings.Join(strings.Fields(about), " "), ". ") {
		return ""
	}
	text, examples, _ := strings.Cut(about, "\nExamples:\n")
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
		text = strings.TrimSuffix(text, "Flags:\n") + "Shared: " + sharedNames(names) + "\n"
	}
	if example, _, _ := strings.Cut(plainExample.ReplaceAllString(examples, ""), "\n"); example != "" {
		text += "\nExample:\n" + example
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
	b.WriteString("\n" + filledLine.ReplaceAllString(sharedList(flags), "    $0"))
	for _, path := range cli.Paths() {
		if shown := shortened(path, texts[path], flags); shown != "" {
			usage, about, _ := strings.Cut(shown, "\n\n")
			fmt.Fprintf(&b, "\n## %s\n\n%s", strings.TrimPrefix(usage, "runlane "), filledLine.ReplaceAllString(about, "    $0"))
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
