package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/tools/deployment"
)

// world is a stack whose program changes, and what is known of its runs without asking it.
type world struct {
	root, place, name string
	broken            bool // today's program is

	out        io.Writer
	log        *os.File
	old, today *version
	serving    *version // whose stack is deployed
	ledger     ledger
}

// version is a program with its stack.
type version struct {
	name    string
	sources string
	folder  string // of the project that is deployed: template and Makefile
	program string
	stack   *deployment.Stack
}

// parameters are those of every deployment: what the old template has by default is not what today's has.
var parameters = map[string]string{
	"BridgeTimeout": "30", "StandardQueue": "default", "FifoQueue": "orders", "WebhookSecret": "unused",
}

// The names of the versions, which their notes have.
const (
	old   = "old"
	today = "today"
)

// patience is how long anything may take on a slow machine, the lease of a worker that died included.
const patience = 10 * time.Minute

// build makes a version ready to be deployed.
func (w *world) build(ctx context.Context, name, sources string) (*version, error) {
	v := &version{name: name, sources: sources, folder: filepath.Join(w.place, name)}
	v.program = filepath.Join(v.folder, "program")
	template, err := os.ReadFile(filepath.Join(sources, "template.yaml"))
	if err != nil {
		return nil, err
	}
	bootstrap := filepath.Join(v.folder, "bootstrap")
	makefile := "build-Bridge build-Relay build-Tick build-Server:\n\tcp " + bootstrap + " $(ARTIFACTS_DIR)/bootstrap\n"
	if err := writeAll(v.folder, []file{{"template.yaml", template}, {"Makefile", []byte(makefile)}}); err != nil {
		return nil, err
	}
	if err := errors.Join(w.compile(ctx, v, "", v.program), w.compile(ctx, v, functionTag, bootstrap)); err != nil {
		return nil, err
	}
	v.stack, err = deployment.Build(ctx, deployment.Options{Name: w.name, Root: w.root, Folder: v.folder, Log: w.log})
	return v, err
}

// compile builds the test's program with a version's sources.
func (w *world) compile(ctx context.Context, v *version, tags, file string) error {
	flags := "-s -w -X main.built=" + v.name + " -X main.folder=" + w.place
	overlay, err := w.overlay(v)
	if err != nil {
		return err
	}
	command := exec.CommandContext(
		ctx, "go", "build", "-overlay", overlay, "-trimpath", "-buildvcs=false", "-tags", tags, "-ldflags", flags,
		"-o", file, "./"+programFolder,
	)
	command.Dir, command.Env = v.sources, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("the %s program: %w\n%s", v.name, err, said)
	}
	return nil
}

// overlay is a file that says which sources are others than in the checkout: none, or the one that breaks today's.
func (w *world) overlay(v *version) (string, error) {
	replaced := map[string]string{}
	if w.broken && v.name == today {
		const attribute, renamed = "`dynamodbav:\"na,omitempty\"`", "`dynamodbav:\"nx,omitempty\"`"
		source := filepath.Join(v.sources, "dynamostore", "internal", "rows", "run.go")
		text, err := os.ReadFile(source)
		if err != nil {
			return "", err
		}
		if bytes.Count(text, []byte(attribute)) != 1 {
			return "", fmt.Errorf("%s has no attribute to rename", source)
		}
		replaced[source] = filepath.Join(v.folder, "run.go")
		text = bytes.ReplaceAll(text, []byte(attribute), []byte(renamed))
		if err := os.WriteFile(replaced[source], text, 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	file := filepath.Join(v.folder, "overlay.json")
	return file, os.WriteFile(file, text, 0o600)
}

// deploy makes a version the one that serves.
func (w *world) deploy(ctx context.Context, v *version) error {
	if err := v.stack.Update(ctx, parameters); err != nil {
		return err
	}
	w.serving = v
	return nil
}

// call runs a version's program against the stack, and returns what it said.
func (w *world) call(ctx context.Context, v *version, input io.Reader, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, v.program, arguments...)
	command.Dir, command.Stdin = v.folder, input
	command.Env = append(os.Environ(), strings.Fields(w.serving.stack.Outputs["Variables"])...)
	var out, said bytes.Buffer
	command.Stdout, command.Stderr = &out, &said
	if err := command.Run(); err != nil {
		line := v.name + "'s program " + strings.Join(arguments, " ")
		return out.Bytes(), fmt.Errorf("%s: %w\n%s%s", line, err, out.Bytes(), said.Bytes())
	}
	return out.Bytes(), nil
}

// load has a version's program trigger orders, and writes down what was acknowledged.
func (w *world) load(ctx context.Context, v *version, orders ...order) error {
	var input bytes.Buffer
	encoder := json.NewEncoder(&input)
	for i := range orders {
		if err := encoder.Encode(&orders[i]); err != nil {
			return err
		}
	}
	out, err := w.call(ctx, v, &input, "load")
	acknowledged, bad := decode[acknowledgement](out)
	if err = errors.Join(err, bad); err == nil && len(acknowledged) != len(orders) {
		err = fmt.Errorf("%d of %d triggers were acknowledged", len(acknowledged), len(orders))
	}
	for i := range acknowledged {
		w.ledger.acknowledge(&orders[i], &acknowledged[i])
	}
	return err
}

// look asks a version's program for every run.
func (w *world) look(ctx context.Context, v *version) ([]seen, error) {
	out, err := w.call(ctx, v, nil, "look")
	if err != nil {
		return nil, err
	}
	return decode[seen](out)
}

// statuses asks it for the status of every run.
func (w *world) statuses(ctx context.Context, v *version) (map[runlane.RunID]runlane.Status, error) {
	out, err := w.call(ctx, v, nil, "glance")
	if err != nil {
		return nil, err
	}
	runs, err := decode[seen](out)
	all := map[runlane.RunID]runlane.Status{}
	for i := range runs {
		all[runs[i].Run] = runs[i].Status
	}
	return all, err
}

// notes are what handlers wrote down.
func (w *world) notes() ([]note, error) {
	text, err := os.ReadFile(filepath.Join(w.place, "notes"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decode[note](text)
}

// pass opens a gate, for which handlers wait.
func (w *world) pass(gate string) error {
	return os.WriteFile(filepath.Join(w.place, gate), nil, 0o600)
}

// until repeats a look, and a tick before it where that is wanted, until nothing is amiss.
func (w *world) until(ctx context.Context, ticks bool, amiss func() (string, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for found := ""; ; {
		if ticks {
			// A tick whose time is over is cut off, as in an account, and the next one goes on with it.
			err := w.serving.stack.Tick(ctx)
			if err != nil && !strings.Contains(err.Error(), string(runlane.ErrOperationCancelled)) {
				return fmt.Errorf("%w; before that: %s", err, found)
			}
		}
		var err error
		if found, err = amiss(); err != nil || found == "" {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("after %s: %s", patience, found)
		}
	}
}

// decode reads lines of JSON.
func decode[T any](text []byte) (all []T, err error) {
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var one T
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return all, err
		}
		all = append(all, one)
	}
}
