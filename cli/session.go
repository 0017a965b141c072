package cli

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

type session struct {
	name    string
	args    []string
	checks  []Check
	mcp     func(allow []string) (MCP, error)
	stdin   io.Reader
	stderr  io.Writer
	stdout  io.Writer
	results *bufio.Writer // stdout; keeps its first write error
	getenv  func(string) string
	setenv  func(string, string) error
	now     func() time.Time
	width   func(stream any) (int, bool)

	json, absolute, noColor, verbose, wantsHelp bool
	timeout                                     time.Duration
	variables                                   []Variable
	values                                      map[string]*string // by variable

	folder    string // of the call; "" is the process's working folder
	finds     bool   // searches the file of dev
	project   bool   // dev builds and runs the program in the folder
	makesFile bool   // the command may create the lane's file
	alone     bool   // the command is useless on a lane in its own memory
	choice    string // the flag or variable that chose the lane, for people
	elsewhere bool   // a lane was chosen: do not search the file of dev
	looksOnly bool   // the command has --dry-run
	devKey    string // for answer tokens, made by this dev session
	keepsFile bool   // this dev session works on its folder's file
	devAbove  bool   // the file of dev is in a parent folder
	input     func(name string) (io.ReadCloser, error)

	open    Opener
	runtime *core.Runtime
}

// closeTime limits the time to close the runtime.
const closeTime = 10 * time.Second

func newSession(open Opener, options *Options) *session {
	if options == nil {
		options = &Options{}
	}
	s := &session{
		name:      options.Name,
		args:      options.Args,
		checks:    options.Checks,
		mcp:       options.MCP,
		stdin:     options.Stdin,
		stderr:    options.Stderr,
		stdout:    options.Stdout,
		getenv:    options.Getenv,
		setenv:    options.Setenv,
		now:       options.Now,
		width:     options.terminal,
		open:      open,
		variables: append(slices.Clone(standardVariables), options.Variables...),
		values:    map[string]*string{},
		folder:    options.Folder,
		finds:     options.Args == nil || options.Folder != "",
		project:   options.Project,
	}
	s.input = s.openFile
	if s.name == "" {
		s.name = programName(os.Args)
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

// programName returns the program as it was called, so that a command of a hint can be repeated as it is.
func programName(args []string) string {
	switch {
	case len(args) == 0 || args[0] == "":
		return "runlane"
	case strings.Contains(filepath.ToSlash(args[0]), "/go-build"): // the temporary binary of go run
		return "go run ."
	default:
		return strings.TrimSuffix(args[0], ".exe")
	}
}

// withProgramName replaces "runlane" in a quoted command by this program's name.
func (s *session) withProgramName(text string) string {
	return strings.ReplaceAll(text, `"runlane `, `"`+s.name+" ")
}

// ownVariables is the prefix of our variables. AWS's variables alone do not choose a lane: many users always have some.
const ownVariables = "RUNLANE_"

const tableVariable = "RUNLANE_TABLE"

// standardVariables are the variables of the standard openers.
var standardVariables = []Variable{
	{"lane", lane.Variable, "NAME of the lane: sqlite:PATH, aws:"},
	{"env", lane.EnvironmentVariable, "NAME of the environment"},
	{"table", tableVariable, "NAME of the DynamoDB table"},
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
	timeoutFlag(set, &s.timeout, "timeout", "DURATION after which the command gives up")
	for _, v := range s.variables {
		s.values[v.Name] = new(string)
		set.StringVar(s.values[v.Name], v.Flag, "", v.Usage+"; else "+v.Name)
	}
}

// withGlobalFlags adds the flags of every command to a command's own. On equal names the command's own flag wins.
func (s *session) withGlobalFlags(own *flag.FlagSet) *flag.FlagSet {
	global := flag.NewFlagSet(own.Name(), flag.ContinueOnError)
	s.globalFlags(global)
	all := flag.NewFlagSet(own.Name(), flag.ContinueOnError)
	s.looksOnly = own.Lookup("dry-run") != nil
	for _, flags := range []*flag.FlagSet{own, global} {
		flags.VisitAll(func(f *flag.Flag) {
			if all.Lookup(f.Name) == nil {
				all.Var(f.Value, f.Name, f.Usage)
			}
		})
	}
	return all
}

// applyEnvironment sets the variables of the given flags. An empty value unsets the variable.
func (s *session) applyEnvironment(set, own *flag.FlagSet) error {
	given := map[string]bool{}
	set.Visit(func(f *flag.Flag) { given[f.Name] = own.Lookup(f.Name) == nil })
	for _, v := range s.variables {
		if !given[v.Flag] {
			continue
		}
		if err := s.setenv(v.Name, *s.values[v.Name]); err != nil {
			return usagef("", "--%s cannot be set: %v", v.Flag, err)
		}
		if *s.values[v.Name] != "" {
			s.chose(v.Name, "--"+v.Flag)
		}
	}
	for _, v := range standardVariables {
		if strings.HasPrefix(v.Name, ownVariables) && s.getenv(v.Name) != "" {
			s.chose(v.Name, v.Name)
		}
	}
	if err := s.chooseLane(given); err != nil {
		return err
	}
	if s.verbose && s.stderr == os.Stderr { // of the whole process, not of a caller's buffer
		slog.SetDefault(slog.New(slog.NewTextHandler(s.stderr, &slog.HandlerOptions{Level: slog.LevelDebug})))
	}
	return nil
}

// chose records what chose the lane. The environment alone does not: it may belong to the file of dev.
func (s *session) chose(variable, by string) {
	if s.choice == "" {
		s.choice = by
	}
	s.elsewhere = s.elsewhere || variable != lane.EnvironmentVariable
}

// chooseLane selects the lane on AWS if only a table is named, so that openers read one variable. A flag wins over a
// variable, and the lane over the table.
func (s *session) chooseLane(given map[string]bool) error {
	named := s.getenv(lane.Variable) != "" && (given["lane"] || !given["table"])
	if named || s.getenv(tableVariable) == "" {
		return nil
	}
	return s.setLane(onAWS)
}

// Names of lanes, or their prefixes. Package cli links no lane.
const (
	onAWS    = "aws:"
	inMemory = "mem:"
	fileLane = "sqlite:"
)

func (s *session) setLane(name string) error {
	if err := s.setenv(lane.Variable, name); err != nil {
		return usagef("", "%s cannot be set: %v", lane.Variable, err)
	}
	return nil
}

func inFile(name string) (path string, ok bool) {
	path, ok = strings.CutPrefix(name, fileLane)
	path, _, _ = strings.Cut(path, "?")
	return path, ok && path != ""
}

// laneIsNew reports a lane in a file that is missing, or empty with an empty log.
func (s *session) laneIsNew() bool {
	path, ok := inFile(s.getenv(lane.Variable))
	if !ok {
		return false
	}
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		log, err := os.Stat(path + "-wal")
		return err != nil || log.Size() == 0
	}
	return errors.Is(err, fs.ErrNotExist)
}

// fileExists refuses a lane in a missing file: opening would create it, and a mistyped path would seem to have no runs.
func (s *session) fileExists() error {
	if s.makesFile || !s.laneIsNew() {
		return nil
	}
	path, _ := inFile(s.getenv(lane.Variable))
	message := "there is no file " + path
	if _, err := os.Stat(path); err == nil {
		message = path + " is empty: no program has written a lane to it, or it was truncated"
	}
	return &runlane.Error{
		Code:    runlane.ErrConfigurationInvalid,
		Message: message,
		Hint: "check --lane and " + lane.Variable + "; \"runlane dev\", \"runlane worker\" and \"runlane import\" make the file; " +
			"\"runlane restore COPY\" goes back to a copy",
	}
}

func (s *session) rt(ctx context.Context) (*core.Runtime, error) {
	if s.runtime != nil {
		return s.runtime, nil
	}
	if s.open == nil {
		return nil, &runlane.Error{
			Code: runlane.ErrConfigurationInvalid, Message: "the program has no opener", Hint: "pass one to cli.Main",
		}
	}
	if err := s.fileExists(); err != nil {
		return nil, err
	}
	runtime, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	if runtime == nil {
		return nil, &runlane.Error{
			Code:    runlane.ErrConfigurationInvalid,
			Message: "the opener returned no runtime",
			Hint:    "return what core.Open returns",
		}
	}
	if s.alone && runtime.Lane().Storage.Capabilities().ProcessLocalState {
		return nil, errors.Join(s.memoryOnly(), runtime.Close(ctx))
	}
	s.runtime = runtime
	return runtime, nil
}

// memoryOnly is the error of a lane that would end with this command.
func (s *session) memoryOnly() error {
	const others = "RUNLANE_LANE (--lane sqlite:PATH) or RUNLANE_TABLE (--table NAME)"
	hint := "start \"runlane dev\" in this folder or above it, whose file this command then works on, or set " + others
	if s.elsewhere {
		hint = s.choice + " is set, so the file of dev is not searched: leave it out, or set " + others + " too"
	}
	return &runlane.Error{
		Code: runlane.ErrConfigurationInvalid, Hint: hint,
		Message: "there is no file of dev here, and the program keeps runs in its memory: they would end with this command",
	}
}

func (s *session) close(ctx context.Context) error {
	if s.runtime == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	return s.runtime.Close(ctx)
}

func (s *session) note(format string, args ...any) {
	fmt.Fprintln(s.stderr, s.withProgramName(fmt.Sprintf(format, args...)))
}

// interactive reports whether a user can be asked.
func (s *session) interactive() bool {
	_, in := s.width(s.stdin)
	_, out := s.width(s.stderr)
	return in && out
}

// confirm asks the user, or requires --yes if there is none.
func (s *session) confirm(ctx context.Context, yes bool, question string) error {
	if yes {
		return nil
	}
	if !s.interactive() {
		hint := "add --yes to go on without being asked"
		if s.looksOnly {
			hint += ", or --dry-run to only look"
		}
		return usagef(hint, "%s There is no terminal to ask on", question)
	}
	fmt.Fprintf(s.stderr, "%s [y/N] ", question)
	answer, err := bufio.NewReader(s.typed(ctx)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		s.note("\nnothing was changed")
		return err
	}
	if !slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer))) {
		s.note("nothing was changed")
		return &exitError{code: ExitFailed}
	}
	return nil
}
