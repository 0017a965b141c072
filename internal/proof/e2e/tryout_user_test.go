//go:build e2e

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// user has an empty folder, a checkout in place of a release, and a terminal.
type user struct {
	root, place, project string

	environment []string // what the user exported
	stack       *stack
}

// call runs a program in the project's folder, or where that is not there yet, and returns its output.
func (u *user) call(ctx context.Context, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	if command.Dir = u.project; !isFolder(u.project) {
		command.Dir = u.place
	}
	command.Env = append(
		os.Environ(), "RUNLANE_SOURCE="+u.root, "GOWORK=off", "GOFLAGS=-mod=mod", "MAKEFLAGS=",
		"RUNLANE_TABLE=", "RUNLANE_QUEUES=", "LAMBDA_ARCH="+runtime.GOARCH,
	)
	command.Env = append(command.Env, u.environment...)
	var out, said bytes.Buffer
	command.Stdout, command.Stderr = &out, &said
	if err := command.Run(); err != nil {
		line := filepath.Base(name) + " " + strings.Join(args, " ")
		return "", fmt.Errorf("%s: %w\n%s%s", line, err, out.String(), said.String())
	}
	return out.String(), nil
}

// runlane is the command that the user installed.
func (u *user) runlane(ctx context.Context, args ...string) (string, error) {
	return u.call(ctx, filepath.Join(u.place, "runlane"), args...)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// write makes a file of the project.
func (u *user) write(name, text string) error {
	return os.WriteFile(filepath.Join(u.project, name), []byte(text), 0o600)
}

// edit replaces text that has to be there once.
func (u *user) edit(name, old, replacement string) error {
	text, err := os.ReadFile(filepath.Join(u.project, name))
	if err != nil {
		return err
	}
	if n := strings.Count(string(text), old); n != 1 {
		return fmt.Errorf("%s has %q %d times", name, old, n)
	}
	return u.write(name, strings.Replace(string(text), old, replacement, 1))
}

// sources are the project's files and their content, without what tools make.
func (u *user) sources() (map[string]string, error) {
	files := map[string]string{}
	if !isFolder(u.project) {
		return files, nil
	}
	return files, filepath.WalkDir(u.project, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(u.project, path)
		if err != nil || strings.HasPrefix(name, ".aws-sam") || name == "go.sum" {
			return err
		}
		text, err := os.ReadFile(path)
		files[name] = string(text)
		return err
	})
}

// differences names the files that are new, gone or changed.
func differences(before, after map[string]string) []string {
	var names []string
	for name, text := range after {
		if old, there := before[name]; !there || old != text {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, there := after[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// deploy is `make deploy` with `make variables`, to local AWS.
func (u *user) deploy(ctx context.Context) error {
	var log bytes.Buffer
	options := deployOptions{name: filepath.Base(u.project), root: u.root, folder: u.project, log: &log}
	u.stack = &stack{options: options, endpoint: os.Getenv("AWS_ENDPOINT_URL")}
	if err := onThisMachine(u.stack.endpoint); err != nil {
		return err
	}
	if _, err := u.local(ctx, "make", "deploy"); err != nil {
		return err
	}
	variables, err := u.local(ctx, "make", "--silent", "variables")
	if err != nil {
		return err
	}
	u.environment = strings.Fields(variables)
	if u.stack.outputs, err = readOutputs(ctx, options); err != nil {
		return fmt.Errorf("%w\n%s", err, log.String())
	}
	if err := u.stack.moveAliases(ctx); err != nil {
		return err
	}
	return u.stack.tick(ctx) // local AWS never fires the schedule
}

// local calls a program that finds the pinned command lines of AWS.
func (u *user) local(ctx context.Context, name string, args ...string) (string, error) {
	return u.call(ctx, filepath.Join(u.root, "scripts", "validate.sh"), append([]string{"--local", name}, args...)...)
}

// leave removes the stack.
func (u *user) leave(ctx context.Context) error {
	if u.stack == nil {
		return nil
	}
	return u.stack.delete(ctx)
}

// finished triggers a run and wants it to succeed with this output.
func (u *user) finished(ctx context.Context, task, payload, output string) error {
	answer, err := u.runlane(ctx, "trigger", task, payload, "--wait", "--timeout", "3m", "--json")
	if err != nil {
		return err
	}
	if !strings.Contains(compact(answer), `"status":"succeeded"`) || !strings.Contains(compact(answer), output) {
		return fmt.Errorf("the run of %s did not succeed with %s:\n%s", task, output, answer)
	}
	return nil
}

// compact takes the blanks out of JSON, a document a line.
func compact(text string) string {
	var out bytes.Buffer
	for line := range strings.Lines(text) {
		if err := json.Compact(&out, []byte(line)); err != nil {
			out.WriteString(line)
		}
	}
	return out.String()
}

var errNoAlarm = errors.New("no alarm notifies the topic")

// alarmed wants an alarm of the stack that notifies the topic.
func (u *user) alarmed(ctx context.Context, topic string) error {
	form := url.Values{"Action": {"DescribeAlarms"}, "Version": {"2010-08-01"}}.Encode()
	endpoint := os.Getenv("AWS_ENDPOINT_URL")
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", fmt.Sprintf(
		"AWS4-HMAC-SHA256 Credential=%s/20260101/%s/monitoring/aws4_request, SignedHeaders=host, Signature=0",
		os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_REGION"),
	))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if !strings.Contains(string(answer), topic) {
		return errNoAlarm
	}
	return nil
}
