// Package cli is the command line: runs, schedules, queues and dead letters for people and scripts. [Main] gives a
// program these commands for its own tasks; cmd/runlane is the same without tasks.
//
// Results go to stdout, everything else to stderr. docs/json.md describes --json, docs/commands.md the commands, and
// the Exit constants the exit codes.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/runlane/runlane-go/core"
)

// Opener builds the program's runtime, which the command line closes. It is called at most once, after flags such as
// --table and --env have set their environment variables.
type Opener = func(ctx context.Context) (*core.Runtime, error)

// Options of [Run]. nil means none.
type Options struct {
	// Args are the arguments without the program's name. nil means os.Args[1:].
	Args []string
	// Folder is the folder of the call: relative file names start there, and the file of dev is searched in it and its
	// parents. "" means the process's working folder, without that search if Args are given.
	Folder string
	// Project makes dev build the program in the folder and replace this process by it. It is for programs without
	// tasks.
	Project bool
	// Checks run after doctor's own checks, in this order.
	Checks []Check
	// MCP makes the tools for language models of "mcp", and of "serve" at /mcp: New of package mcp, a separate module.
	// allow names the tools that may change something. nil means no tools.
	MCP func(allow []string) (MCP, error)
	// Getenv and Setenv access the environment. nil means os.Getenv and os.Setenv.
	Getenv func(name string) string
	// Setenv, see Getenv.
	Setenv func(name, value string) error
	// Name is the program's name in help and messages. "" means the name of the executable.
	Name string
	// Now is the clock for relative times such as "3m ago". nil means time.Now.
	Now func() time.Time
	// Stdin, Stdout and Stderr default to the process's.
	Stdin io.Reader
	// Stdout, see Stdin.
	Stdout io.Writer
	// Stderr, see Stdin.
	Stderr io.Writer
	// Variables adds flags that set environment variables for Open to every command.
	Variables []Variable

	terminal func(stream any) (width int, ok bool) // reports a terminal; tests replace it
}

// MCP is a server of the Model Context Protocol. api is the HTTP API of package server.
type MCP interface {
	// Handler speaks the protocol over HTTP.
	Handler(api http.Handler) http.Handler
	// Serve speaks it over two streams until in or the context ends.
	Serve(ctx context.Context, api http.Handler, in io.Reader, out io.Writer) error
}

// Variable is a flag that sets an environment variable for the command.
type Variable struct {
	// Flag is the flag's name without dashes, Name the variable's.
	Flag, Name string
	// Usage is shown by help; it begins with a word in capitals for the value.
	Usage string
}

// Main runs the command line of the process and returns its exit code:
//
//	func main() { os.Exit(cli.Main(context.Background(), open)) }
//
// An interrupt ends the command in an orderly way; a second one kills the process.
func Main(ctx context.Context, open Opener) int { return Run(ctx, open, nil) }

// Run is [Main] with options. It is safe to call concurrently if the calls share no streams or environment.
func Run(ctx context.Context, open Opener, options *Options) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	ended := context.AfterFunc(ctx, stop) // so that a second interrupt kills the process
	defer ended()

	return newSession(open, options).run(ctx)
}

func (s *session) run(ctx context.Context) int {
	code := s.execute(ctx)
	if err := s.results.Flush(); err != nil && code == ExitOK && !errors.Is(err, syscall.EPIPE) {
		fmt.Fprintf(
			s.stderr,
			"error: the results cannot be written: %v\nnext: look at the disk, or at the program that reads them\n",
			err,
		)
		code = ExitFailed
	}
	return code
}

func (s *session) execute(ctx context.Context) int {
	cmd, path, args := s.find(s.args)
	if cmd.act == nil {
		return s.group(ctx, cmd, path, args)
	}
	return s.finish(ctx, s.perform(ctx, cmd, path, args))
}

func (s *session) perform(ctx context.Context, cmd *command, path string, args []string) error {
	own := flag.NewFlagSet(path, flag.ContinueOnError)
	act := cmd.act(own)
	set := s.withGlobalFlags(own)
	positional, err := parseFlags(set, args)
	if err != nil {
		return nameHelp(err, s.name, path)
	}
	if s.wantsHelp {
		s.line("%s", strings.TrimSuffix(s.help(cmd, path), "\n"))
		return nil
	}
	if err := cmd.arity(positional); err != nil {
		return nameHelp(err, s.name, path)
	}
	if err := s.applyEnvironment(set, own); err != nil {
		return err
	}
	if s.finds && !cmd.local && !s.elsewhere {
		given := s.choice
		if err := s.findDevState(); err != nil {
			return err
		}
		if !cmd.hidden && (s.devAbove || given != "" && given != s.choice) { // if it may surprise
			s.note("this works on %s", s.choice)
		}
	}
	s.alone = s.finds && !cmd.local && !cmd.hidden
	s.makesFile = cmd.makesFile
	if s.timeout > 0 {
		limit := &unfinished{
			message: "the time limit of " + s.timeout.String() + " is over",
			next:    "raise --timeout, or leave it out",
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.timeout, limit)
		defer cancel()
	}
	err = act(ctx, s, positional)
	if cause, ok := errors.AsType[*unfinished](context.Cause(ctx)); ok && err != nil {
		err = cause
	}
	return errors.Join(nameHelp(err, s.name, path), s.close(ctx))
}

// group answers a call of a command that only has subcommands.
func (s *session) group(ctx context.Context, cmd *command, path string, args []string) int {
	var unknown string
	global := flag.NewFlagSet("", flag.ContinueOnError)
	s.globalFlags(global)
	for len(args) > 0 {
		arg, taken := args[0], flagArguments(global, args)
		args = args[max(1, taken):]
		switch {
		case arg == "--json":
			s.json = true
		case arg == "--help" || arg == "-h":
			s.wantsHelp = true
		case taken > 0: // a flag of every command, which has no effect here
		case unknown == "":
			unknown = arg
		}
	}
	if unknown == "" && (s.wantsHelp || path == "") {
		s.line("%s", strings.TrimSuffix(s.help(cmd, path), "\n"))
		return ExitOK
	}
	message := "there is no command " + quoted(strings.TrimSpace(path+" "+unknown))
	if unknown == "" {
		message = quoted(path) + " needs a command"
	}
	next := didYouMean(commandName(unknown, cmd.names()), cmd.names())
	if strings.HasPrefix(unknown, "-") {
		message, next = "there is no flag "+quoted(unknown)+" of every command", flagSuggestion(
			global,
			strings.TrimLeft(unknown, "-"),
		)
	}
	return s.finish(ctx, &usageError{message: message, next: next + helpHint(s.name, path)})
}
