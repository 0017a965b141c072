package localstack_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// recordingDocker is a docker with a running engine and Compose that does nothing but note its arguments, one call a line.
const recordingDocker = `printf '%s\n' "$*" >>"$DOCKER_CALLS"`

// calls returns what the recording docker was asked, without the questions whether it works.
func calls(t *testing.T, s *shell) []string {
	t.Helper()
	content, err := os.ReadFile(s.env["DOCKER_CALLS"])
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" || line == "info" || line == "compose version" })
}

func withDocker(t *testing.T, script string) *shell {
	t.Helper()
	s := newShell(t)
	s.restrictPath(t, map[string]string{"docker": script})
	s.env["DOCKER_CALLS"] = filepath.Join(t.TempDir(), "calls")
	return s
}

func TestUp_EndpointGiven_StartsNothingAndStopsNothing(t *testing.T) {
	t.Parallel()
	endpoint := newFakeAWS(t)
	s := withDocker(t, recordingDocker)
	s.env["AWS_ENDPOINT_URL"] = endpoint.URL + "/"
	s.env["RUNLANE_LOCAL_QUEUES"] = "default,orders.fifo"
	s.env["RUNLANE_TABLE"] = "shared"
	for range 2 {
		s.mustRun(t, "up.sh")
	}

	got := wantVariables(t, s)
	for name, want := range map[string]string{
		"AWS_ENDPOINT_URL": endpoint.URL, "RUNLANE_LOCAL_DYNAMODB": endpoint.URL, "RUNLANE_TABLE": "shared",
		"RUNLANE_QUEUES": "default=" + endpoint.URL + "/queue/shared-default,orders=" + endpoint.URL + "/queue/shared-orders.fifo",
	} {
		if got[name] != want {
			t.Errorf("%s=%s, want %s", name, got[name], want)
		}
	}
	if len(endpoint.tables) != 1 || len(endpoint.queues) != 4 {
		t.Errorf("the endpoint has %d tables and %d queues, want 1 and 4", len(endpoint.tables), len(endpoint.queues))
	}
	if endpoint.ttl["shared"] != "xt" {
		t.Errorf("time to live attribute %q, want xt", endpoint.ttl["shared"])
	}

	if out := s.mustRun(t, "down.sh"); !strings.Contains(out, "nothing to stop") {
		t.Errorf("down said %q, want that there is nothing to stop", out)
	}
	if s.file(t, "env") != "" || s.file(t, "mode") != "" {
		t.Error("down left the env file or the mode behind")
	}
	if asked := calls(t, s); len(asked) > 0 {
		t.Errorf("docker was asked %q, want nothing", asked)
	}
	if s.file(t, "pid") != "" || s.file(t, "log") != "" {
		t.Error("a server was started")
	}
}

func TestUp_EndpointDoesNotAnswer_SaysSoAndLeavesNoEnvFile(t *testing.T) {
	t.Parallel()
	s := withDocker(t, recordingDocker)
	s.env["AWS_ENDPOINT_URL"] = "http://127.0.0.1:1" // a port that nothing listens on
	out, ok := s.run(t, "up.sh")
	if ok || !strings.Contains(out, "AWS_ENDPOINT_URL names an endpoint that does not answer") {
		t.Errorf("up said %q, want that the endpoint does not answer", out)
	}
	if s.file(t, "env") != "" {
		t.Error("an env file was written")
	}
}

func TestUp_WithDocker_StartsAndStopsItsOwnProject(t *testing.T) {
	t.Parallel()
	endpoint := newFakeAWS(t) // stands where the container would publish its port
	s := withDocker(t, recordingDocker)
	s.env["RUNLANE_LOCAL_PORT"] = endpoint.port()
	s.mustRun(t, "up.sh")
	project, ports := s.file(t, "project"), s.file(t, "ports")
	if !regexp.MustCompile(`^runlane-[0-9]+$`).MatchString(project) {
		t.Errorf("project %q, want runlane-<number>", project)
	}
	got := wantVariables(t, s)
	if want := "http://127.0.0.1:" + endpoint.port(); got["AWS_ENDPOINT_URL"] != want {
		t.Errorf("AWS_ENDPOINT_URL=%s, want %s", got["AWS_ENDPOINT_URL"], want)
	}
	published := s.variables(t, "ports")
	if want := "http://127.0.0.1:" + published["RUNLANE_LOCAL_DYNAMODB_PORT"]; got["RUNLANE_LOCAL_DYNAMODB"] != want {
		t.Errorf("RUNLANE_LOCAL_DYNAMODB=%s, want %s", got["RUNLANE_LOCAL_DYNAMODB"], want)
	}

	s.env["RUNLANE_LOCAL_PORT"] = "1" // the second time the ports are those of the running containers
	s.env["AWS_ENDPOINT_URL"] = got["AWS_ENDPOINT_URL"]
	s.mustRun(t, "up.sh")
	if s.file(t, "project") != project || s.file(t, "ports") != ports {
		t.Error("the second up has another project or other ports")
	}

	s.mustRun(t, "down.sh")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	compose := "compose --project-name " + project + " --file " + here + "/compose.yaml --env-file " + s.state + "/ports "
	want := []string{compose + "up --detach", compose + "up --detach", compose + "down --volumes"}
	if asked := calls(t, s); !slices.Equal(asked, want) {
		t.Errorf("docker was asked\n%q, want\n%q", asked, want)
	}
	if s.file(t, "env") != "" || s.file(t, "mode") != "" || s.file(t, "project") != "" {
		t.Error("down left its state behind")
	}
	s.mustRun(t, "down.sh") // once more is harmless
	if asked := calls(t, s); len(asked) != len(want) {
		t.Errorf("the second down asked docker %q", asked[len(want):])
	}
}

func TestUp_AfterAnInterruptedStart_GoesOn(t *testing.T) {
	t.Parallel()
	endpoint := newFakeAWS(t)
	s := withDocker(t, recordingDocker)
	s.env["RUNLANE_LOCAL_PORT"] = endpoint.port()
	s.mustRun(t, "up.sh")
	project := s.file(t, "project")
	if err := os.Remove(filepath.Join(s.state, "env")); err != nil { // it is written last
		t.Fatal(err)
	}
	s.mustRun(t, "up.sh")
	wantVariables(t, s)
	if got := s.file(t, "project"); got != project {
		t.Errorf("project %q, then %q", project, got)
	}
}

// A shell that loaded the env file, then ran down and up again, means the one that was its own.
func TestUp_EndpointOfTheLastOne_IsIgnored(t *testing.T) {
	t.Parallel()
	endpoint := newFakeAWS(t)
	s := withDocker(t, recordingDocker)
	s.env["RUNLANE_LOCAL_PORT"] = endpoint.port()
	s.mustRun(t, "up.sh")
	s.env["AWS_ENDPOINT_URL"] = wantVariables(t, s)["AWS_ENDPOINT_URL"]
	s.mustRun(t, "down.sh")
	s.mustRun(t, "up.sh")
	if mode := s.file(t, "mode"); mode != "docker" {
		t.Errorf("mode %q, want docker: the endpoint of the stopped one was taken for another user's", mode)
	}
}

func TestUp_RunningElsewhereThanAskedFor_IsRefused(t *testing.T) {
	t.Parallel()
	endpoint, other := newFakeAWS(t), newFakeAWS(t)
	s := withDocker(t, recordingDocker)
	s.env["RUNLANE_LOCAL_PORT"] = endpoint.port()
	s.mustRun(t, "up.sh")
	s.env["AWS_ENDPOINT_URL"] = other.URL
	if out, ok := s.run(t, "up.sh"); ok || !strings.Contains(out, "make local-down") {
		t.Errorf("up said %q, want a refusal with its remedy", out)
	}
	if len(other.tables) > 0 {
		t.Error("the other endpoint was used")
	}
}

// The stubs answer just what the scripts ask.
const (
	noEngine   = `exit 1`
	brokenShim = `echo "pyenv: python3.13: command not found" >&2; exit 127`
	goodPython = `case "$*" in *sys.executable*) echo "$0" ;; esac`
	oldPython  = `exit 1`
	goodNode   = `echo 99`
	oldJava    = `echo "    java.home = /nowhere"; echo "    java.specification.version = 11"`
	jre        = `echo "    java.home = /nowhere"; echo "    java.specification.version = 21"`
)

func TestUp_MissingTools_AreNamedOneLineEach(t *testing.T) {
	t.Parallel()
	const python, java, node = "Python 3.13 with venv is missing: install", "a JDK 17 or newer is missing: install", "Node.js with npm is missing: install"
	cases := map[string]struct {
		programs map[string]string
		inHome   map[string]string
		want     []string
	}{
		"nothing there":                 {map[string]string{}, nil, []string{python, java, node}},
		"old ones":                      {map[string]string{"python3": oldPython, "java": oldJava, "node": goodNode, "npm": goodNode}, nil, []string{python, java}},
		"a JRE is no JDK":               {map[string]string{"python3.13": goodPython, "java": jre, "node": goodNode, "npm": goodNode}, nil, []string{java}},
		"a pyenv shim that fails":       {map[string]string{"python3.13": brokenShim, "node": goodNode, "npm": goodNode}, nil, []string{python, java}},
		"behind it a pyenv Python":      {map[string]string{"python3.13": brokenShim}, map[string]string{".pyenv/versions/3.13.9/bin/python3": goodPython}, []string{java, node}},
		"Node without npm":              {map[string]string{"python3": goodPython, "node": goodNode}, nil, []string{java, node}},
		"a docker client but no engine": {map[string]string{"docker": noEngine, "python3": goodPython}, nil, []string{java, node}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			s.restrictPath(t, c.programs)
			for path, script := range c.inHome {
				writeProgram(t, filepath.Join(s.env["HOME"], path), script)
			}
			out, ok := s.run(t, "up.sh")
			if ok {
				t.Error("up succeeded")
			}
			var got []string
			for line := range strings.Lines(out) {
				for _, tool := range []string{python, java, node} {
					if strings.Contains(line, tool) {
						got = append(got, tool)
					}
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("named %q, want %q", got, c.want)
			}
			if s.file(t, "mode") != "" || s.file(t, "env") != "" {
				t.Error("a start was recorded")
			}
		})
	}
}

// Mode tests needs no Python, and Docker takes the place of a JDK.
func TestUp_ModeTests_WithoutItsTools(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.restrictPath(t, nil)
	s.env["RUNLANE_LOCAL_MODE"] = "tests"
	out, ok := s.run(t, "up.sh")
	for _, tool := range []string{"a JDK 17", "Node.js with npm", "Maven"} {
		if ok || !strings.Contains(out, tool) || strings.Contains(out, "Python") {
			t.Errorf("up said %q, want that %s is missing, and nothing of Python", out, tool)
		}
	}

	endpoint := newFakeAWS(t)
	s = withDocker(t, recordingDocker)
	s.env["RUNLANE_LOCAL_MODE"], s.env["RUNLANE_LOCAL_PORT"] = "tests", endpoint.port()
	s.mustRun(t, "up.sh")
	if mode := s.file(t, "mode"); mode != "docker" {
		t.Errorf("mode %q, want docker", mode)
	}
}

func TestUp_WithoutGo_SaysSo(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.restrictPath(t, nil)
	if err := os.Remove(filepath.Join(s.env["PATH"], "go")); err != nil {
		t.Fatal(err)
	}
	if out, ok := s.run(t, "up.sh"); ok || !strings.Contains(out, "Go is missing: install it") {
		t.Errorf("up said %q, want that Go is missing", out)
	}
}

func TestUp_DockerAskedForButNotThere_SaysSo(t *testing.T) {
	t.Parallel()
	s := withDocker(t, noEngine)
	s.env["RUNLANE_LOCAL_MODE"] = "docker"
	if out, ok := s.run(t, "up.sh"); ok || !strings.Contains(out, "start the Docker engine") {
		t.Errorf("up said %q, want that the engine is needed", out)
	}
}

// A pid file may outlive its process, and the number then belongs to another process: here to this very test.
func TestDown_PidOfAnotherProcess_IsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	if err := os.MkdirAll(s.state, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"mode": "host", "pid": strconv.Itoa(os.Getpid())} {
		if err := os.WriteFile(filepath.Join(s.state, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.mustRun(t, "down.sh") // had it believed the file, this test would have ended here
	if s.file(t, "pid") != "" {
		t.Error("the stale pid file is still there")
	}
}

func TestCompose_PublishesOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Image string
			Ports []string
		}
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Services) != 1 {
		t.Fatalf("%d services, want 1", len(file.Services))
	}
	given := regexp.MustCompile(`^127\.0\.0\.1:\$\{(RUNLANE_LOCAL_PORT|RUNLANE_LOCAL_DYNAMODB_PORT)\}:[0-9]+$`)
	for _, port := range file.Services["localstack"].Ports {
		if !given.MatchString(port) {
			t.Errorf("port %q is not a given one on 127.0.0.1", port)
		}
	}
	if len(file.Services["localstack"].Ports) != 2 {
		t.Errorf("ports %v, want LocalStack's and DynamoDB Local's", file.Services["localstack"].Ports)
	}
}

// One LocalStack version, whichever way it runs.
func TestVersions_AreTheSameEverywhere(t *testing.T) {
	t.Parallel()
	find := func(file, pattern string) string {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		match := regexp.MustCompile(pattern).FindSubmatch(content)
		if match == nil {
			t.Fatalf("%s has no %s", file, pattern)
		}
		return string(match[1])
	}
	want := find("versions.sh", `(?m)^LOCALSTACK_VERSION=(\S+)$`)
	for file, pattern := range map[string]string{
		"compose.yaml":      `image: localstack/localstack:(\S+)`,
		"requirements.in":   `(?m)^localstack-core\[runtime\]==(\S+)$`,
		"requirements.lock": `(?m)^localstack-core==(\S+) `,
	} {
		if got := find(file, pattern); got != want {
			t.Errorf("%s names LocalStack %s, versions.sh %s", file, got, want)
		}
	}
}

// What pip installs is exactly what was locked: every package with one version and at least one hash, and no foreign index.
func TestLock_PinsAndHashesEveryPackage(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("requirements.lock")
	if err != nil {
		t.Fatal(err)
	}
	pinned := regexp.MustCompile(`^[a-z0-9.-]+==[^ =<>]+ (\\\n    --hash=sha256:[0-9a-f]{64} ?)+$`)
	packages := 0
	for _, entry := range regexp.MustCompile(`(?m)^[^ #\n].*(\n    --hash.*)*`).FindAllString(string(content), -1) {
		packages++
		if !pinned.MatchString(entry) {
			t.Errorf("not pinned with hashes: %.80s", entry)
		}
	}
	if packages < 100 {
		t.Errorf("%d packages found, want LocalStack's hundred and more", packages)
	}
}
