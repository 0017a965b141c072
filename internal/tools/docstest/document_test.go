package docstest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go/internal/tools/docstest"
)

func TestParse_FindsMarks(t *testing.T) {
	t.Parallel()
	blocks, err := docstest.Parse(strings.Join([]string{
		"# One", "```sh run", "a", "b", "```", "prints", "```text output", "c", "```", "```", "d", "```", "```go run", "package p", "```",
		"````markdown", "```sh run", "inner", "```", "````", "```go file a/b_test.go", "package a", "```", "```sh run aws background", "e", "```",
		"```text output", "f", "```", "```go", "g()", "```", "```console account", "aws", "```", "",
	}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	output := &docstest.Block{Line: 7, Language: "text", Kind: docstest.KindOutput, Text: "c\n"}
	ready := &docstest.Block{Line: 27, Language: "text", Kind: docstest.KindOutput, Text: "f\n"}
	want := []*docstest.Block{
		{Line: 2, Language: "sh", Kind: docstest.KindShell, Text: "a\nb\n", Output: output},
		output,
		{Line: 10, Kind: docstest.KindText, Text: "d\n"},
		{Line: 13, Language: "go", Kind: docstest.KindGo, Text: "package p\n"},
		{Line: 16, Language: "markdown", Kind: docstest.KindText, Text: "```sh run\ninner\n```\n"},
		{Line: 21, Language: "go", Kind: docstest.KindFile, Path: "a/b_test.go", Text: "package a\n"},
		{Line: 24, Language: "sh", Kind: docstest.KindBackground, AWS: true, Text: "e\n", Output: ready},
		ready,
		{Line: 30, Language: "go", Kind: docstest.KindText, Text: "g()\n"},
		{Line: 33, Language: "console", Kind: docstest.KindText, Text: "aws\n"},
	}
	if diff := cmp.Diff(want, blocks); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestParse_RefusesWhatWouldNotBeExecuted(t *testing.T) {
	t.Parallel()
	for what, text := range map[string]string{
		"a mark with a fault":            "```sh runn\na\n```\n",
		"a mark of another language":     "```bash run\na\n```\n",
		"a mark too many":                "```go run fast\na\n```\n",
		"an unknown circumstance":        "```sh run docker\na\n```\n",
		"a mark twice":                   "```sh run" + strings.Repeat(" aws", 2) + "\na\n```\n",
		"a file elsewhere":               "```go file ../a.go\na\n```\n",
		"a file at a separate place":     "```go file /" + "a.go\na\n```\n",
		"a file without a name":          "```go file\na\n```\n",
		"an output of nothing":           "```text output\na\n```\n",
		"an output of a file":            "```go file a.go\na\n```\n```text output\na\n```\n",
		"two outputs":                    "```sh run\na\n```\n```text output\na\n```\n```text output\na\n```\n",
		"a block without an end":         "```sh run\na\n",
		"an indented block":              "- x\n\n  ```sh run\n  a\n  ```\n",
		"nothing to wait for":            "```sh run background\na\n```\n",
		"nothing to wait for, then more": "```sh run background\na\n```\n```sh run\nb\n```\n```text output\na\n```\n",
	} {
		if blocks, err := docstest.Parse(text); err == nil {
			t.Errorf("%s was accepted: %v", what, blocks)
		}
	}
}

func TestShows_ComparesWithTheDocument(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, document, output string
		want                   bool
	}{
		{"the same", "a\nb\n", "a\nb\n", true},
		{"no end of line", "a\n", "a", true},
		{"spaces at the end", "a\n", "a  \n\n", true},
		{"nothing", "", "", true},
		{"something for nothing", "", "a\n", false},
		{"nothing for something", "a\n", "", false},
		{"another line", "a\n", "b\n", false},
		{"a line more", "a\n", "a\nb\n", false},
		{"a line less", "a\nb\n", "a\n", false},
		{"within a line", "run_... failed\n", "run_01 failed\n", true},
		{"not beyond the line", "run_... failed\n", "run_01\n failed\n", false},
		{"lines", "a\n...\nz\n", "a\nb\nc\nz\n", true},
		{"no lines", "a\n...\nz\n", "a\nz\n", true},
		{"lines, and another end", "a\n...\nz\n", "a\nb\n", false},
		{"the rest", "a\n...\n", "a\nb\nc\n", true},
		{"columns that are wider", "ID  STATUS\n", "ID     STATUS\n", true},
		{"columns that are none", "ID  STATUS\n", "ID STATUS\n", false},
		{"letters that mean something elsewhere", "a.c [x] (1)*\n", "a.c [x] (1)*\n", true},
		{"letters that must not mean it", "a.c\n", "abc\n", false},
	} {
		if got := docstest.Shows(c.document, c.output); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
	if !docstest.Begins("ready ...\n", "ready at 1\nmore\nand more\n") || docstest.Begins("ready ...\n", "not ready\n") || docstest.Begins("a\n", "") {
		t.Error("Begins looks at something else than the beginning")
	}
}

func TestScript_KeepsExitCodes(t *testing.T) {
	t.Parallel()
	b := docstest.Block{Text: "one\ntwo --x 'y' # exits with 3\n"}
	want := "one\nif two --x 'y'; then code=0; else code=$?; fi\n[ $code = 3 ] || { echo \"exits with $code, not with 3\"; exit 1; }\n"
	if diff := cmp.Diff(want, b.Script()); diff != "" {
		t.Error(diff)
	}
}
