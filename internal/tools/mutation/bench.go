package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// copyModule copies what Git knows of the module, changes included, into dir.
func copyModule(ctx context.Context, dir string) error {
	list, err := exec.CommandContext(ctx, "git", "ls-files", "-co", "--exclude-standard", "-z").Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(list), "\x00"), "\x00") {
		// deleted, not yet committed
		if err := copyFile(name, filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// chunk is a set of tests that is run in one process.
type chunk struct {
	pattern string
	limit   time.Duration // a set that takes longer hangs
	took    time.Duration
	reaches map[int]bool // conditions
}

// bench is the built tests of dynamostore.
type bench struct {
	dir     string // the module
	without string // leaves out sets of tests
	output  io.Writer
	binary  string
	chunks  []*chunk
}

// build builds the tests into a folder.
func (b *bench) build(ctx context.Context, into string) error {
	b.binary = filepath.Join(into, "dynamostore.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", b.binary, "./dynamostore")
	build.Dir = b.dir
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("the tests do not build: %w\n%s", err, out)
	}
	return nil
}

var (
	// notHere are tests that say nothing about conditions, or say it more slowly than others.
	notHere    = regexp.MustCompile(`^(TestConformance_.*|Benchmark.*|Example.*|Fuzz.*)$`)
	groupStart = regexp.MustCompile(`(?m)^=== RUN +TestConformance/([A-Za-z]+)$`)
)

// learn finds out from a run with nothing taken out which set of tests reaches which condition.
func (b *bench) learn(ctx context.Context, conditions []*removal) error {
	list, err := b.command(ctx, "-test.list", ".").Output()
	if err != nil {
		return fmt.Errorf("list tests: %w", err)
	}
	for name := range strings.FieldsSeq(string(list)) {
		switch {
		case notHere.MatchString(name):
		case name == "TestConformance":
			groups, err := b.groups(ctx)
			if err != nil {
				return err
			}
			for _, group := range groups {
				b.chunks = append(b.chunks, &chunk{pattern: "^TestConformance$/^" + group + "$"})
			}
		default:
			b.chunks = append(b.chunks, &chunk{pattern: "^" + name + "$"})
		}
	}
	b.chunks = slices.DeleteFunc(b.chunks, func(c *chunk) bool {
		return b.without != "" && strings.Contains(c.pattern, b.without)
	})
	for _, c := range b.chunks {
		if err := b.learnSet(ctx, c); err != nil {
			return err
		}
	}
	slices.SortFunc(b.chunks, func(x, y *chunk) int { return int(x.took - y.took) })
	for _, r := range conditions {
		for _, c := range b.chunks {
			if c.reaches[r.id] {
				r.sets = append(r.sets, c)
			}
		}
	}
	return nil
}

// groups are the conformance suite's.
func (b *bench) groups(ctx context.Context) ([]string, error) {
	out, err := b.command(ctx, "-test.v", "-test.run", "^TestConformance$/^[A-Za-z]+$/^none$").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("list the conformance suite's groups: %w\n%s", err, out)
	}
	var names []string
	for _, match := range groupStart.FindAllSubmatch(out, -1) {
		names = append(names, string(match[1]))
	}
	if len(names) == 0 {
		return nil, errors.New("the conformance suite has no groups")
	}
	return names, nil
}

func (b *bench) learnSet(ctx context.Context, c *chunk) error {
	file, err := os.CreateTemp(b.dir, "reached-")
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	started := time.Now()
	command := b.command(ctx, "-test.run", c.pattern)
	command.Env = append(command.Env, reachedVariable+"="+file.Name())
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s fails without any change: %w\n%s", c.pattern, err, tail(out))
	}
	c.took = time.Since(started)
	c.limit = time.Minute + 5*c.took
	ids, err := os.ReadFile(file.Name())
	if err != nil {
		return err
	}
	c.reaches = map[int]bool{}
	for id := range bytes.FieldsSeq(ids) {
		n, err := strconv.Atoi(string(id))
		if err != nil {
			return err
		}
		c.reaches[n] = true
	}
	return nil
}

// miss runs the sets of tests that may miss a removal until one does, or fails for what is no answer of theirs. every:
// the tests of a set go on when one has failed, so that all are named.
func (b *bench) miss(ctx context.Context, r *removal, every bool) error {
	for _, c := range r.sets {
		arguments := []string{"-test.timeout", c.limit.String(), "-test.run", c.pattern}
		if !every {
			arguments = append(arguments, "-test.failfast")
		}
		limited, cancel := context.WithTimeout(ctx, c.limit)
		command := b.command(limited, arguments...)
		command.Env = append(command.Env, r.variable)
		out, err := command.CombinedOutput()
		hangs := limited.Err() != nil
		cancel()
		_, _ = b.output.Write(out)
		switch _, failed := errors.AsType[*exec.ExitError](err); {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			continue
		case !failed && !hangs:
			return err
		}
		if r.missedBy = failures(out); len(r.missedBy) == 0 { // a set that hangs has noticed as well
			r.missedBy = []string{c.pattern}
		}
		return nil
	}
	return nil
}

// failures are the names of the tests that failed.
func failures(out []byte) (names []string) {
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: "); ok {
			name, _, _ = strings.Cut(name, " (")
			names = append(names, name)
		}
	}
	return names
}

func (b *bench) command(ctx context.Context, arguments ...string) *exec.Cmd {
	// What waits for the emulator or for a pause needs no processor.
	c := exec.CommandContext(
		ctx,
		b.binary,
		append([]string{"-test.parallel", "8", "-test.timeout", "5m"}, arguments...)...,
	)
	c.Dir = filepath.Join(b.dir, "dynamostore")
	c.Env = os.Environ()
	return c
}

func tail(out []byte) []byte { return out[max(0, len(out)-4000):] }
