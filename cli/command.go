package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
)

type action func(ctx context.Context, s *session, args []string) error

// command is a node of the command tree: a group of subcommands, or an action.
type command struct {
	name     string
	usage    string // the arguments, like "RUN"
	short    string // one line, for the group's list
	long     string // further paragraphs of its own help
	examples []string
	min, max int // number of arguments; max -1 means any
	words    func(ctx context.Context, s *session) []string
	act      func(flags *flag.FlagSet) action // nil for a group
	below    []*command
	hidden   bool
	local    bool // does not look for the file of dev

	makesFile bool // may create the file of its lane
}

func commandTree() *command {
	return &command{below: []*command{
		initCommand(), devCommand(), runsCommand(), flowsCommand(), triggerCommand(), tasksCommand(),
		schedulesCommand(), queuesCommand(), functionsCommand(), deadLettersCommand(), idempotencyCommand(),
		tickCommand(), workerCommand(), serveCommand(), tokenCommand(), mcpCommand(),
		backupCommand(), restoreCommand(), exportCommand(), importCommand(), benchCommand(),
		doctorCommand(), versionCommand(), completionCommand(), completeCommand(),
	}}
}

// find walks down the tree until the first argument that is not a command. Global flags between the names are moved
// behind them.
func (s *session) find(args []string) (found *command, path string, rest []string) {
	global := flag.NewFlagSet("", flag.ContinueOnError)
	(&session{variables: s.variables, values: map[string]*string{}}).globalFlags(global)
	found = commandTree()
	var moved []string
	for len(args) > 0 && found.act == nil {
		if args[0] == "help" {
			moved, args = append(moved, "--help"), args[1:]
			continue
		}
		if n := flagArguments(global, args); n > 0 {
			moved, args = append(moved, args[:n]...), args[n:]
			continue
		}
		index := slices.IndexFunc(found.below, func(b *command) bool { return b.name == args[0] })
		if index < 0 {
			break
		}
		found, args = found.below[index], args[1:]
		path = strings.TrimSpace(path + " " + found.name)
	}
	if len(moved) == 0 {
		return found, path, args
	}
	return found, path, append(moved, args...)
}

// flagArguments returns how many of the first arguments are a flag of the set and its value.
func flagArguments(set *flag.FlagSet, args []string) int {
	name, isFlag := strings.CutPrefix(args[0], "-")
	name, _, inline := strings.Cut(strings.TrimPrefix(name, "-"), "=")
	if name == "h" {
		name = "help"
	}
	known := set.Lookup(name)
	switch {
	case !isFlag || known == nil:
		return 0
	case inline || isBool(known) || len(args) == 1:
		return 1
	default:
		return 2
	}
}

func (c *command) names() []string {
	var names []string
	for _, b := range c.below {
		if !b.hidden {
			names = append(names, b.name)
		}
	}
	return names
}

func (c *command) arity(args []string) error {
	switch {
	case len(args) < c.min:
		return usagef("", "%s missing: %s", plural(c.min-len(args), "argument is", "arguments are"), c.usage)
	case c.max >= 0 && len(args) > c.max:
		return usagef("", "there is one argument too many: %s", quoted(args[c.max]))
	default:
		return nil
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// maxQuoted limits text of users and programs in messages.
const maxQuoted = 300

// quoted makes a text safe for a terminal and limits its length.
func quoted(text string) string {
	if len(text) > maxQuoted {
		text = strings.ToValidUTF8(text[:maxQuoted], "") + "…"
	}
	return fmt.Sprintf("%q", text)
}

// nameHelp completes the hint of a usage error that has none of its own.
func nameHelp(err error, program, path string) error {
	e, ok := errors.AsType[*usageError](err)
	if ok && (e.next == "" || strings.HasSuffix(e.next, " ")) {
		return &usageError{message: e.message, next: e.next + helpHint(program, path)}
	}
	return err
}

func helpHint(program, path string) string {
	return "see: " + strings.Join(strings.Fields(program+" "+path+" --help"), " ")
}

// didYouMean suggests the nearest known name, or "".
func didYouMean(typed string, known []string) string {
	if name, ok := nearest(typed, known); ok {
		return "did you mean " + quoted(name) + "? "
	}
	return ""
}

// otherNames are what people of other tools type for a command.
var otherNames = map[string]string{
	"ls": "list", "ps": "list", "show": "get", "describe": "get", "inspect": "get", "view": "get",
	"rm": "prune", "delete": "prune", "stop": "cancel", "kill": "cancel", "create": "trigger", "tail": "watch",
}

// commandName is what a word of another tool is called here.
func commandName(typed string, known []string) string {
	if name := otherNames[typed]; slices.Contains(known, name) {
		return name
	}
	return typed
}

// nearest finds the closest name, if it is close enough to be a typing error.
func nearest(typed string, known []string) (name string, ok bool) {
	if len(typed) > maxQuoted {
		return "", false // no name is that long, and the comparison would be slow
	}
	best := 1 + max(1, len(typed)/3)
	for _, k := range known {
		d := distance(strings.ToLower(typed), strings.ToLower(k))
		if len(typed) >= 3 && strings.HasPrefix(k, typed) {
			d = min(d, 1)
		}
		if d < best {
			best, name, ok = d, k, true
		}
	}
	return name, ok
}

// distance counts the letters to insert, remove, replace or swap with the next one to turn a into b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
