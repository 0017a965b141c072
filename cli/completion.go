package cli

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/runlane/runlane-go/internal/shown"
)

// completer is the hidden command that shells call with the words of the line after the program's name. The last one is
// unfinished.
const completer = "__complete"

// patience limits the time for completions.
const patience = 2 * time.Second

func completionCommand() *command {
	return &command{
		name:  "completion",
		local: true,
		usage: "bash|zsh|fish",
		short: "Write a shell's completion script",
		min:   1,
		max:   1,
		words: func(context.Context, *session) []string { return shells() },
		examples: []string{
			"completion bash > ~/.local/share/bash-completion/completions/NAME",
			"completion fish | source",
		},
		act: func(*flag.FlagSet) action {
			return func(_ context.Context, s *session, args []string) error {
				script, ok := completionScripts[args[0]]
				if !ok {
					return usagef(
						didYouMean(args[0], shells())+"give bash, zsh or fish",
						"there is no script for %s",
						quoted(args[0]),
					)
				}
				name := filepath.Base(s.name)
				function := "_" + strings.Map(func(r rune) rune {
					if r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
						return r
					}
					return '_'
				}, name)
				s.line(
					"%s",
					strings.NewReplacer("NAME", name, "FUNCTION", function, "COMPLETE", completer).Replace(script),
				)
				return nil
			}
		},
	}
}

func shells() []string { return []string{"bash", "zsh", "fish"} }

var completionScripts = map[string]string{
	"bash": `FUNCTION() {
	local IFS=$'\n'
	COMPREPLY=($(NAME COMPLETE -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F FUNCTION NAME`,
	"zsh": `#compdef NAME
FUNCTION() {
	local -a found
	found=("${(@f)$(NAME COMPLETE -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	compadd -a found
}
compdef FUNCTION NAME`,
	"fish": `complete -c NAME -f -a '(NAME COMPLETE -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'`,
}

func completeCommand() *command {
	return &command{
		name:   completer,
		short:  "Answer a shell",
		max:    -1,
		hidden: true,
		act: func(*flag.FlagSet) action {
			return func(ctx context.Context, s *session, args []string) error {
				ctx, cancel := context.WithTimeout(ctx, patience)
				defer cancel()
				if len(args) == 0 {
					args = []string{""}
				}
				for _, word := range s.completions(ctx, args[:len(args)-1], args[len(args)-1]) {
					s.line("%s", word)
				}
				return nil
			}
		},
	}
}

func (s *session) completions(ctx context.Context, before []string, typed string) []string {
	cmd, _, rest := s.find(before)
	var known []string
	switch {
	case cmd.act == nil && len(rest) > 0:
		return nil
	case cmd.act == nil:
		known = cmd.names()
	default:
		known = s.arguments(ctx, cmd, rest, typed)
	}
	known = slices.DeleteFunc(slices.Clone(known), func(word string) bool { return !strings.HasPrefix(word, typed) })
	slices.Sort(known)
	return known
}

// arguments returns the command's flags, the values of certain flags, or its words.
func (s *session) arguments(ctx context.Context, cmd *command, rest []string, typed string) []string {
	own := flag.NewFlagSet("", flag.ContinueOnError)
	cmd.act(own)
	set := (&session{variables: s.variables, values: map[string]*string{}}).withGlobalFlags(own)
	if len(rest) > 0 {
		name, isFlag := strings.CutPrefix(rest[len(rest)-1], "--")
		if known := set.Lookup(name); isFlag && known != nil && !isBool(known) {
			switch name {
			case "status":
				return shown.StatusWords()
			case "task":
				return taskNames(ctx, s)
			case "queue":
				return queueNames(ctx, s)
			default:
				return nil
			}
		}
	}
	if strings.HasPrefix(typed, "-") {
		var names []string
		set.VisitAll(func(f *flag.Flag) { names = append(names, fmt.Sprint("--", f.Name)) })
		return names
	}
	if cmd.words == nil {
		return nil
	}
	return cmd.words(ctx, s)
}
