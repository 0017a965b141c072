package cli

import (
	"flag"
	"strings"
)

// Command is what tests have to know of a command that does something.
type Command struct {
	Path, Usage string
	Min, Max    int
	Flags       []string // its own
}

// Takes reports whether the command takes something of a name, as an argument or by a flag.
func (c *Command) Takes(name string) bool {
	for _, f := range c.Flags {
		if f == strings.ToLower(name) {
			return true
		}
	}
	return strings.Contains(c.Usage, name)
}

// Commands are those that do something, in the order of help.
func Commands() []Command {
	var found []Command
	var walk func(cmd *command, path string)
	walk = func(cmd *command, path string) {
		if cmd.hidden {
			return
		}
		if cmd.act != nil {
			own := flag.NewFlagSet("", flag.ContinueOnError)
			cmd.act(own)
			c := Command{Path: path, Usage: cmd.usage, Min: cmd.min, Max: cmd.max}
			own.VisitAll(func(f *flag.Flag) { c.Flags = append(c.Flags, f.Name) })
			found = append(found, c)
		}
		for _, below := range cmd.below {
			walk(below, strings.TrimSpace(path+" "+below.name))
		}
	}
	walk(commandTree(), "")
	return found
}
