// Package docstest reads the fenced blocks of the project's documents. Its tests execute those that are marked, in the
// order of their document, and hold what they print against what the document says; the others are held against the
// parsers of Go and of the command line. The kinds below have the marks.
package docstest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Kind is what is done with a block.
type Kind string

// The kinds of blocks.
const (
	// KindText is shown, and never executed.
	KindText Kind = "text"
	// KindShell is executed by bash: "sh run", or "sh run aws" on local AWS.
	KindShell Kind = "shell"
	// KindBackground is executed beside what follows: "sh run background". Ctrl-C ends it with the document.
	KindBackground Kind = "background"
	// KindGo is a whole program, or a whole file of tests: "go run".
	KindGo Kind = "go"
	// KindFile is written to a file of the document's folder: "LANGUAGE file PATH". "diff file PATH" changes the file.
	KindFile Kind = "file"
	// KindOutput is what the block before prints: "text output". There "..." is anything.
	KindOutput Kind = "output"
)

// Block is one fenced block of a document.
type Block struct {
	Line     int    // of its fence
	Language string // the first word of the fence
	Kind     Kind
	AWS      bool   // its commands need local AWS
	Path     string // of KindFile
	Text     string
	Output   *Block // what it prints, of the kinds that are executed; nil when the document does not say
}

// Executed reports whether the block is a step of its document.
func (b *Block) Executed() bool {
	return slices.Contains([]Kind{KindShell, KindBackground, KindGo, KindFile}, b.Kind)
}

var (
	fence      = regexp.MustCompile("^( *)(`{3,})([^`]*)$")
	filePath   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$`)
	exits      = regexp.MustCompile(`^(.*\S)\s+# exits with (\d+)\s*$`)
	blankRuns  = regexp.MustCompile(` {2,}`)
	everything = "..."
)

// Parse finds the blocks of a Markdown text. A mark that does not exist is an error: a block that looks executed has to
// be.
func Parse(text string) ([]*Block, error) {
	var blocks []*Block
	var open *Block
	var closing string
	for i, line := range strings.Split(text, "\n") {
		match := fence.FindStringSubmatch(line)
		switch {
		case open != nil && match != nil && strings.TrimSpace(match[3]) == "" && len(match[2]) >= len(closing):
			blocks = append(blocks, open)
			open = nil
		case open != nil:
			open.Text += line + "\n"
		case match != nil:
			if match[1] != "" {
				return nil, fmt.Errorf("line %d: a block that is indented: begin its fence with the line", i+1)
			}
			b, err := newBlock(i+1, match[3])
			if err != nil {
				return nil, err
			}
			open, closing = b, match[2]
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: the block does not end", open.Line)
	}
	return blocks, attachOutputs(blocks)
}

func newBlock(line int, info string) (*Block, error) {
	words := strings.Fields(info)
	b := &Block{Line: line, Kind: KindText}
	if len(words) == 0 {
		return b, nil
	}
	b.Language = words[0]
	marks := words[1:]
	switch {
	case len(marks) == 0, info == "console account": // internal/tools/runbook checks the latter
	case b.Language == "text" && slices.Equal(marks, []string{"output"}):
		b.Kind = KindOutput
	case b.Language == "go" && slices.Equal(marks, []string{"run"}):
		b.Kind = KindGo
	case marks[0] == "file" && len(marks) == 2 && filePath.MatchString(marks[1]):
		b.Kind, b.Path = KindFile, marks[1]
	case b.Language == "sh" && marks[0] == "run":
		b.Kind = KindShell
		for _, mark := range marks[1:] {
			switch {
			case mark == "aws" && !b.AWS:
				b.AWS = true
			case mark == "background" && b.Kind == KindShell:
				b.Kind = KindBackground
			default:
				return nil, fmt.Errorf("line %d: a block marked %q: nothing is called %s", line, info, mark)
			}
		}
	default:
		return nil, fmt.Errorf("line %d: a block marked %q: see CONTRIBUTING.md, Documentation", line, info)
	}
	return b, nil
}

// Interrupts reports whether the reader first types Ctrl-C for what runs beside: the block begins with that comment.
func (b *Block) Interrupts() bool { return strings.HasPrefix(b.Text, "# Ctrl-C") }

// Change applies a "diff" block to the text of its file. It has lines that begin with " ", "-" or "+", without numbers, and "@@"
// between its parts. What a part replaces stands once in the file.
func (b *Block) Change(text string) (string, error) {
	for part := range strings.SplitSeq(b.Text, "@@\n") {
		var before, after strings.Builder
		for line := range strings.Lines(part) {
			if line[0] != '+' {
				before.WriteString(line[1:])
			}
			if line[0] != '-' {
				after.WriteString(line[1:])
			}
		}
		if n := strings.Count(text, before.String()); n != 1 {
			return "", fmt.Errorf("line %d: what changes stands %d times in %s:\n%s", b.Line, n, b.Path, before.String())
		}
		text = strings.Replace(text, before.String(), after.String(), 1)
	}
	return text, nil
}

// attachOutputs gives each output to the block before it, which has to be one that prints.
func attachOutputs(blocks []*Block) error {
	var last *Block
	for _, b := range blocks {
		switch {
		case b.Kind == KindOutput && (last == nil || last.Kind == KindFile || last.Output != nil):
			return fmt.Errorf("line %d: the output of nothing", b.Line)
		case b.Kind == KindOutput:
			last.Output = b
		case b.Executed():
			if last != nil && last.Kind == KindBackground && last.Output == nil {
				return fmt.Errorf(
					"line %d: a command beside the others has no output, which tells when it is ready",
					last.Line,
				)
			}
			last = b
		}
	}
	if last != nil && last.Kind == KindBackground && last.Output == nil {
		return fmt.Errorf("line %d: a command beside the others has no output, which tells when it is ready", last.Line)
	}
	return nil
}

// Script is the text for bash: a line that ends in "# exits with N" has to end that way, every other one with 0.
func (b *Block) Script() string {
	var script strings.Builder
	for line := range strings.Lines(b.Text) {
		match := exits.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if match == nil {
			script.WriteString(line)
			continue
		}
		fmt.Fprintf(&script, "if %s; then code=0; else code=$?; fi\n", match[1])
		fmt.Fprintf(
			&script,
			"[ $code = %s ] || { echo \"exits with $code, not with %s\"; exit 1; }\n",
			match[2],
			match[2],
		)
	}
	return script.String()
}

// Shows reports whether an output is what a document says of it. In the document "..." stands for anything within a
// line and, alone on a line, for any number of lines; where it has two spaces or more, there may be more or fewer of
// them, but for one.
func Shows(document, output string) bool { return shown(document).MatchString(tidy(output)) }

// Begins reports whether an output begins with what a document says of it.
func Begins(document, output string) bool {
	lines := strings.SplitAfter(tidy(output), "\n")
	for i := range lines {
		if shown(document).MatchString(strings.Join(lines[:i+1], "")) {
			return true
		}
	}
	return false
}

func shown(document string) *regexp.Regexp {
	var pattern strings.Builder
	pattern.WriteString(`\A`)
	for line := range strings.Lines(tidy(document)) {
		line = strings.TrimSuffix(line, "\n")
		if line == everything {
			pattern.WriteString(`(?:[^\n]*\n)*?`)
			continue
		}
		parts := strings.Split(line, everything)
		for i, part := range parts {
			parts[i] = blankRuns.ReplaceAllLiteralString(regexp.QuoteMeta(part), ` {2,}`)
		}
		pattern.WriteString(strings.Join(parts, `[^\n]*?`) + `\n`)
	}
	return regexp.MustCompile(pattern.String() + `\z`)
}

// tidy removes spaces at the ends of lines and empty lines at both ends.
func tidy(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimRight(line, " \t\r\n"))
	}
	text = strings.Trim(strings.Join(lines, "\n"), "\n")
	if text == "" {
		return ""
	}
	return text + "\n"
}
