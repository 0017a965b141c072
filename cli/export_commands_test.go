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
func Commands() (found []Command) {
	eachCommand(func(cmd *command, path string) {
		if cmd.act == nil {
			return
		}
		own := flag.NewFlagSet("", flag.ContinueOnError)
		cmd.act(own)
		c := Command{Path: path, Usage: cmd.usage, Min: cmd.min, Max: cmd.max}
		own.VisitAll(func(f *flag.Flag) { c.Flags = append(c.Flags, f.Name) })
		found = append(found, c)
	})
	return found
}
