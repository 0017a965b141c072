package cli

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// session is one call of the command line.
type session struct {
	name    string
	args    []string
	checks  []Check
	stdin   io.Reader
	stderr  io.Writer
	stdout  io.Writer
	results *bufio.Writer // stdout; keeps its first error
	getenv  func(string) string
	setenv  func(string, string) error
	now     func() time.Time
	width   func(stream any) (int, bool)

	// Flags that every command takes.
	json, absolute, noColor, verbose, wantsHelp bool
	timeout                                     time.Duration
	variables                                   []Variable
	values                                      map[string]*string // by variable

	open    Opener
	runtime *core.Runtime
}

// closeTime bounds the end of the runtime.
const closeTime = 10 * time.Second

func newSession(open Opener, options *Options) *session {
	if options == nil {
		options = &Options{}
	}
	s := &session{
		name: options.Name, args: options.Args, checks: options.Checks, stdin: options.Stdin, stderr: options.Stderr,
		stdout: options.Stdout, getenv: options.Getenv, setenv: options.Setenv, now: options.Now, width: options.terminal, open: open,
		variables: append(slices.Clone(standardVariables), options.Variables...), values: map[string]*string{},
	}
	if s.name == "" {
		s.name = "runlane"
	}
	if s.args == nil && len(os.Args) > 0 {
		s.args = os.Args[1:]
	}
	if s.stdin == nil {
		s.stdin = os.Stdin
	}
	if s.stdout == nil {
		s.stdout = os.Stdout
	}
	if s.stderr == nil {
		s.stderr = os.Stderr
	}
	if s.getenv == nil {
		s.getenv = os.Getenv
	}
	if s.setenv == nil {
		s.setenv = os.Setenv
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.width == nil {
		s.width = terminalWidth
	}
	s.results = bufio.NewWriter(s.stdout)
	return s
}

// standardVariables are what openers read on AWS.
var standardVariables = []Variable{
	{"env", "RUNLANE_ENV", "NAME of the environment"},
	{"table", "RUNLANE_TABLE", "NAME of the DynamoDB table"},
	{"queues", "RUNLANE_QUEUES", "LIST of queue bindings, name=url with commas between"},
	{"region", "AWS_REGION", "NAME of the AWS region"},
	{"profile", "AWS_PROFILE", "NAME of a profile in AWS's shared files"},
	{"endpoint-url", "AWS_ENDPOINT_URL", "URL in place of AWS, like that of LocalStack"},
}

func (s *session) globalFlags(set *flag.FlagSet) {
	set.BoolVar(&s.json, "json", s.json, "one JSON object a line, see docs/json.md")
	set.BoolVar(&s.absolute, "absolute", false, "show instants in tables, not how long ago they are")
	set.BoolVar(&s.noColor, "no-color", false, "no color on a terminal, as NO_COLOR does")
	set.BoolVar(&s.verbose, "verbose", false, "log to stderr, in all detail")
	set.BoolVar(&s.wantsHelp, "help", s.wantsHelp, "show help and do nothing")
	durationFlag(set, &s.timeout, "timeout", "DURATION after which the command gives up")
	for _, v := range s.variables {
		s.values[v.Name] = new(string)
		set.StringVar(s.values[v.Name], v.Flag, "", v.Usage+"; else "+v.Name)
	}
}

func (s *session) applyEnvironment() error {
	for _, v := range s.variables {
		if value := *s.values[v.Name]; value != "" {
			if err := s.setenv(v.Name, value); err != nil {
				return usagef("", "--%s cannot be set: %v", v.Flag, err)
			}
		}
	}
	if s.verbose && s.stderr == os.Stderr { // of the whole process, not of a caller's buffer
		slog.SetDefault(slog.New(slog.NewTextHandler(s.stderr, &slog.HandlerOptions{Level: slog.LevelDebug})))
	}
	return nil
}

// rt opens the runtime on its first call.
func (s *session) rt(ctx context.Context) (*core.Runtime, error) {
	if s.runtime != nil {
		return s.runtime, nil
	}
	if s.open == nil {
		return nil, &runlane.Error{
			Code: runlane.ErrConfigurationInvalid, Message: "the program has no opener", Hint: "pass one to cli.Main",
		}
	}
	runtime, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	if runtime == nil {
		return nil, &runlane.Error{
			Code: runlane.ErrConfigurationInvalid, Message: "the opener returned no runtime", Hint: "return what core.Open returns",
		}
	}
	s.runtime = runtime
	return runtime, nil
}

func (s *session) close(ctx context.Context) error {
	if s.runtime == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	return s.runtime.Close(ctx)
}

// note tells people something that is no result.
func (s *session) note(format string, args ...any) { fmt.Fprintf(s.stderr, format+"\n", args...) }

// interactive reports whether a person can be asked.
func (s *session) interactive() bool {
	_, in := s.width(s.stdin)
	_, out := s.width(s.stderr)
	return in && out
}

// confirm asks a person, or wants --yes where there is none.
func (s *session) confirm(yes bool, question string) error {
	if yes {
		return nil
	}
	if !s.interactive() {
		return usagef("add --yes to go on without being asked, or --dry-run to only count", "%s Nobody is there to confirm", question)
	}
	fmt.Fprintf(s.stderr, "%s [y/N] ", question)
	answer, err := bufio.NewReader(s.stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer))) {
		s.note("nothing was changed")
		return &told{code: ExitFailed}
	}
	return nil
}
