package docstest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/runlane/runlane-go/internal/tools/docstest"
)

// patience is how long a step of a document may take.
const patience = 3 * time.Minute

// session executes the blocks of one document, as a reader would who follows it in one shell.
type session struct {
	folder string // of everything
	start  string // where the reader begins: an empty folder
	module string // of the programs that the document shows
	env    []string
	aws    []string // besides, for blocks that need local AWS
	beside []*process
	shown  int // Go blocks so far
}

// process is a command beside the others.
type process struct {
	block   *docstest.Block
	command *exec.Cmd
	output  *buffer
	ended   chan struct{}
	err     error // once ended is closed
}

// buffer may be read while it is written.
type buffer struct {
	mutex sync.Mutex
	bytes bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.bytes.Write(p)
}

func (b *buffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.bytes.String()
}

func newSession(t *testing.T) *session {
	t.Helper()
	s := &session{folder: t.TempDir()}
	for into, name := range map[*string]string{&s.start: "start", &s.module: "module"} {
		*into = filepath.Join(s.folder, name)
		if err := os.Mkdir(*into, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	home := filepath.Join(s.folder, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	readersModule(t, s.module)
	s.env = environment(t, home)
	return s
}

// execute does one step, and says what is not as the document has it.
func (s *session) execute(ctx context.Context, b *docstest.Block) error {
	var output string
	var err error
	if b.Interrupts() {
		if err := s.end(); err != nil {
			return err
		}
	}
	switch b.Kind {
	case docstest.KindFile:
		return s.write(b)
	case docstest.KindBackground:
		return s.begin(ctx, b)
	case docstest.KindGo:
		output, err = s.program(ctx, b)
	default:
		output, err = s.shell(ctx, b)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s\nprinted\n%s", err, b.Text, output)
	}
	if b.Output != nil && !docstest.Shows(b.Output.Text, output) {
		return fmt.Errorf("%s\nprints\n%s\nand the document says\n%s", b.Text, output, b.Output.Text)
	}
	return nil
}

// script is the block with the folder and the variables that the block before left behind. What stands for an account is not left
// to the next block.
func (s *session) script(b *docstest.Block) string {
	keep := "export -p > \"" + s.folder + "/variables\"; "
	if b.AWS {
		keep = ""
	}
	return fmt.Sprintf("set -euo pipefail\ncd '%[2]s'\n[ ! -f '%[1]s/variables' ] || . '%[1]s/variables'\n"+
		"[ ! -f '%[1]s/place' ] || cd \"$(cat '%[1]s/place')\"\n"+
		"trap 'status=$?; pwd > \"%[1]s/place\"; %[3]sexit $status' EXIT\n%[4]s", s.folder, s.start, keep, b.Script())
}

func (s *session) shell(ctx context.Context, b *docstest.Block) (string, error) {
	if _, err := commandLine(); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.run(ctx, s.start, s.variables(b), "bash", "-c", s.script(b))
}

func (s *session) variables(b *docstest.Block) []string {
	if b.AWS {
		return slices.Concat(s.env, s.aws)
	}
	return s.env
}

func (s *session) run(ctx context.Context, folder string, env []string, name string, args ...string) (string, error) {
	var output bytes.Buffer
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env, c.Stdout, c.Stderr = folder, env, &output, &output
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = 10 * time.Second
	err := c.Run()
	return output.String(), err
}

// place is where the reader's shell is.
func (s *session) place() string {
	if text, err := os.ReadFile(filepath.Join(s.folder, "place")); err == nil {
		return strings.TrimSpace(string(text))
	}
	return s.start
}

func (s *session) write(b *docstest.Block) error {
	path := filepath.Join(s.place(), filepath.FromSlash(b.Path))
	text := b.Text
	if b.Language == "diff" {
		before, err := os.ReadFile(path)
		if err == nil {
			text, err = b.Change(string(before))
		}
		if err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// program builds and executes a program, or vets and executes a file of tests, in the reader's module.
func (s *session) program(ctx context.Context, b *docstest.Block) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.shown++
	name, arguments := "main.go", []string{"run"}
	if strings.Contains(b.Text, "\t\"testing\"\n") {
		name, arguments = "shown_test.go", []string{"test"}
	}
	folder := fmt.Sprintf("shown%d", s.shown)
	if err := os.Mkdir(filepath.Join(s.module, folder), 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(s.module, folder, name), []byte(b.Text), 0o600); err != nil {
		return "", err
	}
	if output, err := s.run(ctx, s.module, s.env, "go", "vet", "-mod=mod", "./"+folder); err != nil {
		return output, err
	}
	return s.run(ctx, s.module, s.env, "go", append(arguments, "-mod=mod", "./"+folder)...)
}

// begin starts a command beside the others and waits until it has printed what the document shows.
func (s *session) begin(ctx context.Context, b *docstest.Block) error {
	if _, err := commandLine(); err != nil {
		return err
	}
	p := &process{block: b, output: &buffer{}, ended: make(chan struct{})}
	p.command = exec.CommandContext(context.WithoutCancel(ctx), "bash", "-c", s.script(b)) // end ends it, after the test's context
	p.command.Dir, p.command.Env, p.command.Stdout, p.command.Stderr = s.start, s.variables(b), p.output, p.output
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.command.WaitDelay = 10 * time.Second
	if err := p.command.Start(); err != nil {
		return err
	}
	s.beside = append(s.beside, p)
	go func() {
		defer close(p.ended)
		p.err = p.command.Wait()
	}()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for !docstest.Begins(b.Output.Text, p.output.String()) {
		select {
		case <-p.ended:
			return fmt.Errorf("%s\nended by itself (%w) and printed\n%s", b.Text, p.err, p.output)
		case <-deadline.C:
			return fmt.Errorf("%s\nis not ready: the document says\n%s\nand it printed\n%s", b.Text, b.Output.Text, p.output)
		case <-look.C:
		}
	}
	return nil
}

// exitCode is what a shell would say.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// end types Ctrl-C for each command beside the others. All of them have to end by that.
func (s *session) end() error {
	var faults []error
	for _, p := range s.beside {
		if err := syscall.Kill(-p.command.Process.Pid, syscall.SIGINT); err != nil && !errors.Is(err, syscall.ESRCH) {
			faults = append(faults, err)
		}
		select {
		case <-p.ended:
			if code := exitCode(p.command.ProcessState); code != 0 && code != 130 {
				faults = append(faults, fmt.Errorf("%s\nends with %d after Ctrl-C and printed\n%s", p.block.Text, code, p.output))
			}
		case <-time.After(patience):
			faults = append(faults, fmt.Errorf("%s\ndoes not end after Ctrl-C and printed\n%s", p.block.Text, p.output),
				syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL))
			<-p.ended
		}
	}
	s.beside = nil
	return errors.Join(faults...)
}
