package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
)

// action is what a command does once its flags are parsed.
type action func(ctx context.Context, s *session, args []string) error

// command is one name of the tree: a group of others, or an action.
type command struct {
	name     string
	usage    string // of the arguments, "RUN"
	short    string // one line, for the list of the group
	long     string // paragraphs below it, for its own help
	examples []string
	min, max int // how many arguments; max -1 means any number
	words    func(ctx context.Context, s *session) []string
	act      func(flags *flag.FlagSet) action // nil for a group
	below    []*command
	hidden   bool
	local    bool // does not look for the file of dev

	makesFile bool // a lane in a file may begin with it
}

// commandTree has all commands.
func commandTree() *command {
	return &command{below: []*command{
		initCommand(), devCommand(), runsCommand(), flowsCommand(), triggerCommand(), tasksCommand(),
		schedulesCommand(), queuesCommand(), functionsCommand(), deadLettersCommand(), idempotencyCommand(),
		tickCommand(), workerCommand(), serveCommand(), tokenCommand(), mcpCommand(),
		backupCommand(), restoreCommand(), exportCommand(), importCommand(), benchCommand(),
		doctorCommand(), versionCommand(), completionCommand(), completeCommand(),
	}}
}

// find walks down the tree by the arguments before the first one that is no command. Flags of every command may stand
// between them: they are moved behind.
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

// flagArguments is how many of the first arguments are a flag of the set with its value.
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

// names are those of the commands below, without hidden ones.
func (c *command) names() []string {
	var names []string
	for _, b := range c.below {
		if !b.hidden {
			names = append(names, b.name)
		}
	}
	return names
}

// arity checks the number of arguments.
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

// maxQuoted bounds how much is repeated of a text that a user typed or a program gave.
const maxQuoted = 300

// quoted repeats a text so that it cannot control a terminal and fits a screen.
func quoted(text string) string {
	if len(text) > maxQuoted {
		text = strings.ToValidUTF8(text[:maxQuoted], "") + "…"
	}
	return fmt.Sprintf("%q", text)
}

// nameHelp adds what to do next to a usage error that does not say enough.
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

// didYouMean suggests the known name that is nearest to the typed one; "" when none is near.
func didYouMean(typed string, known []string) string {
	if name, ok := nearest(typed, known); ok {
		return "did you mean " + quoted(name) + "? "
	}
	return ""
}

// nearest finds the closest of the names, if it is close enough to be a typing error.
func nearest(typed string, known []string) (name string, ok bool) {
	if len(typed) > maxQuoted {
		return "", false // no name is that long, and comparing takes its time
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

// distance counts the letters to insert, remove, replace or swap with the next one to get from a to b.
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
