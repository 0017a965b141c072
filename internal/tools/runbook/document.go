// Package runbook reads the commands of [Documents]. Its tests execute those that need no account on local AWS,
// hold the others against what exists, and prove what the document promises of the worst nights.
package runbook

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Documents are the pages of commands.
var Documents = []string{"docs/runbook.md", "docs/changes.md"}

// Read parses all of them in the folder of the project.
func Read(root string) ([]Block, error) {
	var all []Block
	for _, name := range Documents {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		blocks, err := Parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for i := range blocks {
			blocks[i].Document = name
		}
		all = append(all, blocks...)
	}
	return all, nil
}

// Block is one fenced block of commands.
type Block struct {
	Document string // of [Read]
	Section  string // its heading
	Account  bool   // its commands need an account: they are checked, not executed
	Steps    []Command
}

// Command is one line of a block, or one in the text between backticks.
type Command struct {
	Line  int // of the document
	Text  string
	Words []string
	Inner []Command // what stands in $( )
	Exit  int       // the code that a comment "exits with N" names
}

var (
	exits   = regexp.MustCompile(`#\s*exits with (\d+)\s*$`)
	spoken  = regexp.MustCompile("`(runlane [^`]+)`")
	heading = regexp.MustCompile(`^#{1,6} +(.+?)\s*$`)
)

// Parse finds the blocks marked console, and the commands of runlane in the text, which count as marked account. Blocks
// of another kind, or of none, are an error: what is to be typed is to be tested.
func Parse(text string) ([]Block, error) {
	var blocks []Block
	section, fenced := "", false
	for i, line := range strings.Split(text, "\n") {
		number := i + 1
		switch mark, fence := strings.CutPrefix(line, "```"); {
		case fence && fenced:
			fenced = false
		case fence:
			words := strings.Fields(mark)
			if len(words) == 0 || words[0] != "console" || len(words) > 2 || len(words) == 2 && words[1] != "account" {
				return nil, fmt.Errorf("line %d: a block marked %q: mark it console, or console account", number, mark)
			}
			fenced = true
			blocks = append(blocks, Block{Section: section, Account: len(words) == 2})
		case fenced:
			command, err := parseCommand(number, line)
			if err != nil {
				return nil, err
			}
			if len(command.Words) > 0 {
				last := &blocks[len(blocks)-1]
				last.Steps = append(last.Steps, command)
			}
		case heading.MatchString(line):
			section = heading.FindStringSubmatch(line)[1]
		default:
			for _, match := range spoken.FindAllStringSubmatch(line, -1) {
				command, err := parseCommand(number, match[1])
				if err != nil {
					return nil, err
				}
				blocks = append(blocks, Block{Section: section, Account: true, Steps: []Command{command}})
			}
		}
	}
	if fenced {
		return nil, fmt.Errorf("the last block does not end")
	}
	return blocks, nil
}

func parseCommand(number int, line string) (Command, error) {
	command := Command{Line: number, Text: line}
	if match := exits.FindStringSubmatch(line); match != nil {
		code, err := strconv.Atoi(match[1])
		if err != nil {
			return command, fmt.Errorf("line %d: %w", number, err)
		}
		command.Exit = code
	}
	if strings.HasSuffix(line, `\`) {
		return command, fmt.Errorf("line %d: one command a line, without a continuation", number)
	}
	words, inner, err := split(line)
	if err != nil {
		return command, fmt.Errorf("line %d: %w", number, err)
	}
	command.Words = words
	for _, text := range inner {
		c, err := parseCommand(number, text)
		if err != nil {
			return command, err
		}
		command.Inner = append(command.Inner, c)
	}
	return command, nil
}

// split takes a line apart as a shell would: quotes, comments, and $( ), whose text is returned apart. What else a
// shell knows is refused outside quotes, because nothing here would understand it.
func split(line string) (words, inner []string, err error) {
	var word strings.Builder
	begun, quote := false, byte(0)
	end := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != '\'' && strings.HasPrefix(line[i:], "$("):
			length := strings.LastIndexByte(line[i:], ')')
			if length < 0 {
				return nil, nil, fmt.Errorf("$( does not end: %s", line)
			}
			inner = append(inner, line[i+2:i+length])
			begun = true
			i += length
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(c)
		case c == '\'' || c == '"':
			quote, begun = c, true
		case c == ' ':
			end()
		case c == '#' && !begun:
			return words, inner, nil
		case strings.IndexByte("|&;<>`$*?(){}", c) >= 0:
			return nil, nil, fmt.Errorf("%q outside quotes: %s", c, line)
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	if quote != 0 {
		return nil, nil, fmt.Errorf("a quote does not end: %s", line)
	}
	end()
	return words, inner, nil
}

// Fill replaces placeholders in the words of a command. Only whole words of capitals are placeholders.
func (c *Command) Fill(values map[string]string) []string {
	words := slices.Clone(c.Words)
	for i, word := range words {
		words[i] = placeholder.ReplaceAllStringFunc(word, func(name string) string {
			if value, ok := values[name]; ok {
				return value
			}
			return name
		})
	}
	return words
}

var placeholder = regexp.MustCompile(`\b[A-Z][A-Z_]+\b`)
