// Package localstack_test runs the scripts of this folder the way a user does.
package localstack_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shell is one user's shell: a separate environment, and a state folder.
type shell struct {
	env   map[string]string
	state string
}

// newShell inherits what programs need to work, and nothing of AWS or of Runlane: the tests must not depend on whether a local
// AWS is in use outside.
func newShell(t *testing.T) *shell {
	t.Helper()
	// Reading the scripts tells go test that its cached result depends on them.
	for _, pattern := range []string{"*.sh", "compose.yaml", "requirements.*", "executor/*", "java/*", "bootstrap/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if _, err := os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	env := map[string]string{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "AWS_") && !strings.HasPrefix(name, "RUNLANE_") {
			env[name] = value
		}
	}
	for _, name := range []string{"AWS_CA_BUNDLE"} { // how this machine reaches its package index
		if value, ok := os.LookupEnv(name); ok {
			env[name] = value
		}
	}
	s := &shell{env: env, state: filepath.Join(t.TempDir(), "state")}
	env["RUNLANE_LOCAL_DIR"] = s.state
	return s
}

func (s *shell) command(ctx context.Context, script string) *exec.Cmd {
	command := exec.CommandContext(ctx, "bash", script)
	for name, value := range s.env {
		command.Env = append(command.Env, name+"="+value)
	}
	return command
}

// run returns what the script said on both outputs, and whether it succeeded.
func (s *shell) run(t *testing.T, script string) (string, bool) {
	t.Helper()
	out, err := s.command(t.Context(), script).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Logf("%s:\n%s", script, out)
	return string(out), err == nil
}

func (s *shell) mustRun(t *testing.T, script string) string {
	t.Helper()
	out, ok := s.run(t, script)
	if !ok {
		t.Fatalf("%s failed", script)
	}
	return out
}

// file returns a file of the state folder, trimmed; "" when there is none.
func (s *shell) file(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(s.state, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(content))
}

// variables parses KEY=VALUE lines of a file of the state folder.
func (s *shell) variables(t *testing.T, name string) map[string]string {
	t.Helper()
	variables := map[string]string{}
	for line := range strings.Lines(s.file(t, name)) {
		key, value, found := strings.Cut(strings.TrimSpace(line), "=")
		if !found {
			t.Errorf("%s: line %q is not KEY=VALUE", name, line)
		}
		variables[key] = value
	}
	return variables
}

// restrictPath leaves the shell with the programs that every system has, and Go, and then those that the test adds. It also takes
// away the home folder, where more could be found.
func (s *shell) restrictPath(t *testing.T, programs map[string]string) {
	t.Helper()
	bin, home := t.TempDir(), t.TempDir()
	basic := []string{
		"bash", "cat", "cksum", "cp", "dirname", "env", "flock", "gcc", "go", "grep", "ln", "mkdir", "mv",
		"ps", "rm", "sed", "sleep", "tail", "tar", "touch", "tr", "uname",
	}
	for _, name := range basic {
		if path, err := exec.LookPath(name); err == nil { // flock and gcc are not everywhere
			if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, script := range programs {
		writeProgram(t, filepath.Join(bin, name), script)
	}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOFLAGS"} {
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		s.env[name] = strings.TrimSpace(string(value))
	}
	delete(s.env, "JAVA_HOME")
	delete(s.env, "XDG_CACHE_HOME")
	s.env["PATH"], s.env["HOME"] = bin, home
}

func writeProgram(t *testing.T, path, script string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/usr/bin/env bash\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// wantVariables are the names that every program of the project may rely on.
func wantVariables(t *testing.T, s *shell) map[string]string {
	t.Helper()
	got := s.variables(t, "env")
	want := []string{
		"AWS_ACCESS_KEY_ID", "AWS_DEFAULT_REGION", "AWS_EC2_METADATA_DISABLED", "AWS_ENDPOINT_URL", "AWS_REGION",
		"AWS_SECRET_ACCESS_KEY", "RUNLANE_ENV", "RUNLANE_LOCAL_DYNAMODB", "RUNLANE_QUEUES", "RUNLANE_TABLE",
	}
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		t.Errorf("env file has %v, want %v", names, want)
	}
	return got
}
