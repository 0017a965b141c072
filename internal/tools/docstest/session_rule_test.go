package docstest_test

import (
	"strings"
	"testing"

	"github.com/runlane/runlane-go/internal/tools/docstest"
)

// play executes a text as a document, and returns the first fault.
func play(t *testing.T, text string) error {
	t.Helper()
	blocks, err := docstest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(t)
	for _, b := range blocks {
		if !b.Executed() {
			continue
		}
		if err := s.execute(t.Context(), b); err != nil {
			if e := s.end(); e != nil {
				t.Error(e)
			}
			return err
		}
	}
	return s.end()
}

func TestSession_ExecutesWhatIsMarked(t *testing.T) {
	t.Parallel()
	text := strings.Join([]string{
		"```sh run", "mkdir a", "cd a", "export WHO='you and me'", "ls -A", "```",
		"```text file names/first.txt", "Ada", "```",
		"```sh run", "cat names/first.txt", "echo \"$WHO\"", "false # exits with 1", "runlane runs get # exits with 2", "```",
		"```text output", "Ada", "you and me", "...", "```",
		// Without the trap bash would go on when the interrupt meets a cat that ends well.
		"```sh run background", "trap 'exit 0' INT", "while :; do cat names/*.txt; sleep 0.1; done", "```", "```text output", "Ada", "...", "```",
		"```sh run", "cd ..", "```", "```sh run", "ls", "```", "```text output", "a", "```",
		"```go run", "package main", "", "func main() { println(\"written\") }", "```", "```text output", "written", "```", "",
	}, "\n")
	if err := play(t, text); err != nil {
		t.Error(err)
	}
}

func TestSession_FindsWhatIsNotTrue(t *testing.T) {
	t.Parallel()
	for what, text := range map[string]string{
		"a command that fails":                  "```sh run\nfalse\n```\n",
		"one in the middle":                     "```sh run\nfalse\ntrue\n```\n",
		"one within a pipe":                     "```sh run\nfalse | cat\n```\n",
		"one that does not exist":               "```sh run\nrunlane tik\n```\n",
		"a variable that is not set":            "```sh run\necho \"$NOBODY\"\n```\n",
		"another output":                        "```sh run\necho a\n```\n```text output\nb\n```\n",
		"another exit code":                     "```sh run\ntrue # exits with 1\n```\n",
		"a program that does not build":         "```go run\npackage main\n\nfunc main() { nothing() }\n```\n",
		"a program that go vet dislikes":        "```go run\npackage main\n\nimport \"fmt\"\n\nfunc main() { fmt.Printf(\"%d\\n\", \"a\") }\n```\n",
		"a program that fails":                  "```go run\npackage main\n\nimport \"os\"\n\nfunc main() { os.Exit(1) }\n```\n",
		"a program's other output":              "```go run\npackage main\n\nfunc main() { print(\"a\") }\n```\n```text output\nb\n```\n",
		"a test that fails":                     "```go run\npackage p_test\n\nimport (\n\t\"testing\"\n)\n\nfunc TestA(t *testing.T) { t.Error(\"no\") }\n```\n",
		"a command beside the others that ends": "```sh run background\necho a\n```\n```text output\nb\n```\n",
		"one that fails after Ctrl-C":           "```sh run background\ntrap 'exit 7' INT\necho a\nwhile :; do sleep 0.05; done\n```\n```text output\na\n```\n",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			if err := play(t, text); err == nil {
				t.Error("it was taken for true")
			}
		})
	}
}
