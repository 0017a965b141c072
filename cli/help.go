package cli

import (
	"flag"
	"fmt"
	"path/filepath"
	"strings"
)

// helpWidth is fixed, whatever the terminal: help is also docs/commands.md.
const helpWidth = 80

func (s *session) help(cmd *command, path string) string {
	var b strings.Builder
	full := strings.TrimSpace(s.name + " " + path)
	switch {
	case path == "":
		b.WriteString("Usage: " + full + " COMMAND [FLAGS]\n\nDurable runs, from the command line.\n")
	case cmd.act == nil:
		fmt.Fprintf(&b, "Usage: %s COMMAND [FLAGS]\n\n%s\n", full, wrapped(cmd.short+". "+cmd.long, "", helpWidth))
	default:
		fmt.Fprintf(
			&b,
			"Usage: %s\n\n%s\n",
			strings.Join(strings.Fields(full+" "+cmd.usage+" [FLAGS]"), " "),
			wrapped(cmd.short+".", "", helpWidth),
		)
		if cmd.long != "" {
			b.WriteString("\n" + wrapped(cmd.long, "", helpWidth) + "\n")
		}
	}
	if len(cmd.below) > 0 {
		b.WriteString("\nCommands:\n")
		width := 0
		for _, name := range cmd.names() {
			width = max(width, len(name))
		}
		for _, below := range cmd.below {
			if !below.hidden {
				fmt.Fprintf(&b, "  %-*s  %s\n", width, below.name, below.short)
			}
		}
	}
	if cmd.act != nil {
		own := flag.NewFlagSet("", flag.ContinueOnError)
		cmd.act(own)
		b.WriteString(flagHelp("\nFlags:\n", own))
	}
	if len(cmd.examples) > 0 {
		b.WriteString("\nExamples:\n")
		for _, example := range cmd.examples {
			b.WriteString("  " + s.name + " " + strings.ReplaceAll(example, "/NAME", "/"+filepath.Base(s.name)) + "\n")
		}
	}
	if path == "" {
		global := flag.NewFlagSet("", flag.ContinueOnError)
		(&session{variables: s.variables, values: map[string]*string{}}).globalFlags(global)
		b.WriteString(flagHelp("\nFlags of every command:\n", global))
		b.WriteString("\n" + wrapped(exitHelp, "", helpWidth) + "\n")
	} else {
		fmt.Fprintf(&b, "\nFlags of every command: %s --help\n", s.name)
	}
	return b.String()
}

const exitHelp = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 conflict, 5 storage or transport " +
	"unavailable, 130 interrupted."

// flagHelp lists flags. A usage that begins with a word in capitals names the value.
func flagHelp(title string, set *flag.FlagSet) string {
	type entry struct{ name, usage string }
	var entries []entry
	width := 0
	set.VisitAll(func(f *flag.Flag) {
		name, usage := "--"+f.Name, f.Usage
		if value, rest, _ := strings.Cut(usage, " "); !isBool(f) && value == strings.ToUpper(value) {
			name, usage = name+" "+value, rest
		}
		entries = append(entries, entry{name, usage})
		width = max(width, len(name))
	})
	if len(entries) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(title)
	for _, e := range entries {
		indent := strings.Repeat(" ", width+4)
		fmt.Fprintf(&b, "  %-*s  %s\n", width, e.name, strings.TrimLeft(wrapped(e.usage, indent, helpWidth), " "))
	}
	return b.String()
}

// wrapped breaks a text at spaces and indents every line. Empty lines divide paragraphs.
func wrapped(text, indent string, width int) string {
	var paragraphs []string
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		var lines []string
		line := indent
		for _, word := range strings.Fields(paragraph) {
			if len(line)+len(word) > width && strings.TrimSpace(line) != "" {
				lines, line = append(lines, strings.TrimRight(line, " ")), indent
			}
			line += word + " "
		}
		paragraphs = append(paragraphs, strings.Join(append(lines, strings.TrimRight(line, " ")), "\n"))
	}
	return strings.Join(paragraphs, "\n\n")
}
