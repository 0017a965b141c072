// Package cli is the command line: runs, schedules, queues and dead letters for people and for scripts. [Main] gives a
// program these commands for its own tasks; cmd/runlane is the same without tasks.
//
// Results are written to stdout and everything else to stderr. The output of --json is described in docs/json.md, the
// commands are in docs/commands.md, and the exit codes are the Exit constants.
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

// Opener builds the program's runtime; the command line closes it. It is called once, by commands that need a runtime,
// after the flags that stand for environment variables (--table, --env and the like) were applied to the process's
// environment.
type Opener = func(ctx context.Context) (*core.Runtime, error)

// Options of [Run]. nil means none.
type Options struct {
	// Args are the arguments without the program's name. nil means os.Args[1:].
	Args []string
	// Folder is where the command is called: relative file names start there, and the file of dev is searched
	// for in it and in the folders above. "" means the working folder of the process, without a search for a session
	// when Args are given.
	Folder string
	// Project makes dev build the program in the folder, which then takes the place of this process, or runs as its
	// child where a system has no such thing: for programs that define no tasks.
	Project bool
	// Checks are what doctor tries besides its own checks, in their order.
	Checks []Check
	// MCP makes what "mcp" serves, and "serve" at /mcp, for language models: New of package mcp, a separate module. The
	// names are those of tools that may change something. nil means that the program has none.
	MCP func(allow []string) (MCP, error)
	// Getenv and Setenv reach the environment. nil means os.Getenv and os.Setenv.
	Getenv func(name string) string
	// Setenv, see Getenv.
	Setenv func(name, value string) error
	// Name is the program's, in help and messages. "" means that of the process's file.
	Name string
	// Now is the clock by which times are called "3m ago". nil means time.Now.
	Now func() time.Time
	// Stdin, Stdout and Stderr are nil for those of the process.
	Stdin io.Reader
	// Stdout, see Stdin.
	Stdout io.Writer
	// Stderr, see Stdin.
	Stderr io.Writer
	// Variables are more flags of every command that stand for environment variables which Open reads, besides --table
	// and the like.
	Variables []Variable

	terminal func(stream any) (width int, ok bool) // what a stream is; tests replace it
}

// MCP is a server of the Model Context Protocol on the HTTP API of package server, which api is.
type MCP interface {
	// Handler speaks the protocol over HTTP.
	Handler(api http.Handler) http.Handler
	// Serve speaks it over two streams, until in ends or the context does.
	Serve(ctx context.Context, api http.Handler, in io.Reader, out io.Writer) error
}

// Variable is a flag that sets an environment variable for the command.
type Variable struct {
	// Flag is its name without the dashes, Name that of the variable.
	Flag, Name string
	// Usage is for help; it begins with a word in capitals for the value.
	Usage string
}

// Main runs the command line of the process and returns its exit code, for a main that is
//
//	func main() { os.Exit(cli.Main(context.Background(), open)) }
//
// An interrupt ends the command in an orderly way; a second one ends the process.
func Main(ctx context.Context, open Opener) int { return Run(ctx, open, nil) }

// Run is [Main] with options. It is safe to call concurrently if the calls share no streams or environment.
func Run(ctx context.Context, open Opener, options *Options) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	ended := context.AfterFunc(ctx, stop) // a second interrupt has its usual effect
	defer ended()

	return newSession(open, options).run(ctx)
}

// run is a whole call: the command, and the end of its output.
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

// execute finds the command, runs it and reports errors.
func (s *session) execute(ctx context.Context) int {
	cmd, path, args := s.find(s.args)
	if cmd.act == nil {
		return s.group(ctx, cmd, path, args)
	}
	return s.finish(ctx, s.perform(ctx, cmd, path, args))
}

// perform runs one command.
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
		if !cmd.hidden && (s.devAbove || given != "" && given != s.choice) { // where it may surprise
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

// group answers a command that only has others below it.
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
		case taken > 0: // a flag of every command: it has no say here
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
	next := didYouMean(unknown, cmd.names())
	if strings.HasPrefix(unknown, "-") {
		message, next = "there is no flag "+quoted(unknown)+" of every command", flagSuggestion(
			global,
			strings.TrimLeft(unknown, "-"),
		)
	}
	return s.finish(ctx, &usageError{message: message, next: next + helpHint(s.name, path)})
}
