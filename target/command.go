package target

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
)

type commandEntry struct {
	Run       []string          `yaml:"run"`
	Dir       string            `yaml:"dir"`
	Env       map[string]string `yaml:"env"`
	NoStdin   bool              `yaml:"noStdin"`
	Permanent codes             `yaml:"permanent"`
}

const (
	// commandGrace is how long a command may take to end after a TERM. Then its process group is killed. It is shorter
	// than the time after which a runtime gives up waiting for a handler.
	commandGrace = 3 * time.Second
	// maxTail is how much of each output a receipt has.
	maxTail = 4 << 10
)

// inherited are the worker's variables that commands get. Others may hold its credentials.
var inherited = []string{"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR"}

var variableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

type command struct {
	args      []template
	dir       string
	env       map[string]template
	noStdin   bool
	permanent codes
	keeps     bool
	hidden    *hidden
}

// command builds the work of a task from its entry.
func (b *builder) command(e *taskEntry) work {
	c := &command{
		dir: e.Command.Dir, env: map[string]template{}, noStdin: e.Command.NoStdin, permanent: e.Command.Permanent,
		keeps: e.Receipt.Output == nil || *e.Receipt.Output, hidden: &b.hidden,
	}
	if !hasGroups {
		b.fault("run the worker on Linux, macOS or another Unix", "commands need process groups")
	}
	if e.Receipt.Headers != nil || e.Receipt.Body {
		b.fault("leave them out", "the receipt of a command has no headers and no body")
	}
	for i, text := range e.Command.Run {
		c.args = append(c.args, b.template(fmt.Sprintf("argument %d", i), text))
	}
	if len(c.args) == 0 || len(c.args[0]) != 1 || c.args[0][0].text == "" {
		b.fault("write it like [pg_dump, --file, backup.sql]", "run does not begin with a program")
	}
	b.scripts(c.args)
	for name, value := range e.Command.Env {
		if !variableForm.MatchString(name) {
			b.fault("use letters, digits and _", "the variable %.40q cannot be set", name)
		}
		c.env[name] = b.template("variable "+name, value)
	}
	return c.do
}

// interpreter is the name of a program that takes a program as an argument, behind an option like -c or -e.
var (
	interpreter  = regexp.MustCompile(`^(sh|bash|dash|ash|ksh|zsh|fish|pwsh|python|perl|ruby|node|php|lua)[0-9.]*$`)
	scriptOption = regexp.MustCompile(`^-([a-zA-Z]*[ceEpr]|-eval|-print)$`)
)

// scripts refuses placeholders in a script among the arguments, where a value would be program text.
func (b *builder) scripts(args []template) {
	interpreted, script := false, false
	for i, t := range args {
		if script && slices.ContainsFunc(t, func(p part) bool { return p.of != "" }) {
			b.fault("pass the value behind it, like [sh, -c, 'echo \"$1\"', sh, \"${payload.id}\"]",
				"argument %d is a script, in which a value would be executed", i)
		}
		literal := ""
		if len(t) == 1 {
			literal = t[0].text
		}
		interpreted = interpreted || interpreter.MatchString(filepath.Base(literal))
		script = interpreted && scriptOption.MatchString(literal)
	}
}

func (c *command) made(ctx context.Context, a *runlane.Attempt, payload json.RawMessage) (*exec.Cmd, error) {
	v, err := valuesOf(a, payload)
	if err != nil {
		return nil, err
	}
	args := make([]string, len(c.args))
	for i, t := range c.args {
		if args[i], err = t.render(v, nil); err != nil {
			return nil, err
		}
	}
	made := exec.CommandContext(ctx, args[0], args[1:]...)
	made.Dir, made.Env = c.dir, []string{}
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			made.Env = append(made.Env, name+"="+value)
		}
	}
	for name, value := range v.run {
		made.Env = append(made.Env, "RUNLANE_RUN_"+strings.ToUpper(name)+"="+value)
	}
	for name, t := range c.env {
		value, err := t.render(v, nil)
		if err != nil {
			return nil, err
		}
		made.Env = append(made.Env, name+"="+value)
	}
	for _, text := range slices.Concat(args, made.Env) {
		if strings.ContainsRune(text, 0) {
			return nil, failed("an argument or variable has a zero byte", nil)
		}
	}
	if !c.noStdin {
		made.Stdin = bytes.NewReader(payload)
	}
	return made, nil
}

func (c *command) do(ctx context.Context, a *runlane.Attempt, payload json.RawMessage) error {
	made, err := c.made(ctx, a, payload)
	if err != nil {
		return err
	}
	limit := maxTail + c.hidden.longest() // hiding a part of a secret at the cut leaves enough
	stdout, stderr := &tail{limit: limit}, &tail{limit: limit}
	made.Stdout, made.Stderr = stdout, stderr
	made.WaitDelay = commandGrace
	ownGroup(made)
	receipt := runlane.Receipt{
		Target: runlane.ReceiptCommand, StartedAt: time.Now(), Command: c.hidden.replaced(filepath.Base(made.Path), false, false),
	}
	runtime.LockOSThread() // see dieWithWorker
	err = made.Run()
	runtime.UnlockOSThread()
	if made.Process != nil {
		killGroup(made.Process.Pid) // whatever it left behind
	}
	if errors.Is(err, exec.ErrWaitDelay) { // it ended well, and what it left behind held its output open
		err = nil
	}
	receipt.EndedAt = time.Now()
	outcome := c.judge(made, err, &receipt)
	if c.keeps {
		receipt.Stdout, receipt.Stderr = c.hidden.end(stdout), c.hidden.end(stderr)
		receipt.Cut = stdout.cut || stderr.cut
	}
	a.SetReceipt(receipt)
	if ctx.Err() != nil && err != nil {
		return ctx.Err() // cancelled, shut down or timed out: the runtime knows which
	}
	return outcome
}

// judge converts the end of a command to the outcome of the attempt, and completes its receipt.
func (c *command) judge(made *exec.Cmd, err error, receipt *runlane.Receipt) error {
	state := made.ProcessState
	if state == nil {
		return &runlane.Error{
			Code: ErrFailed, Message: "the command did not start", Retryable: true, Cause: err,
			Hint: "install the program where the worker runs, and check dir",
		}
	}
	code := state.ExitCode()
	if receipt.Signal = endSignal(state); receipt.Signal == "" {
		receipt.ExitCode = &code
	}
	switch {
	case err == nil:
		return nil
	case receipt.Signal != "":
		return &runlane.Error{Code: ErrFailed, Message: "the command was ended by a signal: " + receipt.Signal, Retryable: true}
	case code == 0: // writing its input failed, for example, which its exit code does not mind
		return nil
	}
	message, meta := fmt.Sprintf("the command ended with exit code %d", code), map[string]string{"exitCode": strconv.Itoa(code)}
	if c.permanent.has(code) {
		return failed(message, meta)
	}
	return &runlane.Error{Code: ErrFailed, Message: message, Retryable: true, Meta: meta}
}

// tail keeps the end of what is written to it.
type tail struct {
	limit int
	text  []byte
	cut   bool
}

// Write implements io.Writer. It never fails.
func (t *tail) Write(text []byte) (int, error) {
	t.text = append(t.text, text...)
	if over := len(t.text) - t.limit; over > 0 {
		t.cut = true
		if len(t.text) > 2*t.limit { // moves each byte once on average
			t.text = append(t.text[:0], t.text[over:]...)
		}
	}
	return len(text), nil
}

// end returns the end of an output without secrets.
func (h *hidden) end(t *tail) string {
	text := h.replaced(string(t.text[max(0, len(t.text)-t.limit):]), t.cut, true)
	if over := len(text) - maxTail; over > 0 {
		t.cut = true
		text = strings.ToValidUTF8(text[over:], "")
	}
	return text
}
