package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// instruction is one of a Dockerfile.
type instruction struct{ name, arguments string }

// stage is what follows a FROM, that included.
type stage []instruction

// all returns the arguments of the instructions of a name.
func (s stage) all(name string) (arguments []string) {
	for _, i := range s {
		if i.name == name {
			arguments = append(arguments, i.arguments)
		}
	}
	return arguments
}

// list is the one instruction of a name in its JSON form.
func (s stage) list(t *testing.T, name string) (words []string) {
	t.Helper()
	found := s.all(name)
	if len(found) != 1 {
		t.Fatalf("%d times %s", len(found), name)
	}
	if err := json.Unmarshal([]byte(found[0]), &words); err != nil {
		t.Fatalf("%s %s: %v", name, found[0], err)
	}
	return words
}

// parseDockerfile splits a Dockerfile into stages. It knows neither continued lines nor here-documents: ours has none, and gets none.
func parseDockerfile(t *testing.T, text string) (stages []stage) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasSuffix(line, "\\") || strings.Contains(line, "<<") {
			t.Fatalf("%q goes on in the next line, which this test does not read", line)
		}
		name, arguments, _ := strings.Cut(line, " ")
		if name == "FROM" {
			stages = append(stages, nil)
		}
		if len(stages) == 0 {
			t.Fatalf("%s stands before FROM", name)
		}
		last := &stages[len(stages)-1]
		*last = append(*last, instruction{name, strings.TrimSpace(arguments)})
	}
	return stages
}

// image is what a container engine would make of the Dockerfile.
type image struct {
	build      stage
	final      stage
	entryPoint []string
	arguments  []string
}

func readImage(t *testing.T) image {
	t.Helper()
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	stages := parseDockerfile(t, string(text))
	if len(stages) != 2 {
		t.Fatalf("%d stages", len(stages))
	}
	i := image{build: stages[0], final: stages[1]}
	i.entryPoint, i.arguments = i.final.list(t, "ENTRYPOINT"), i.final.list(t, "CMD")
	return i
}

var buildCommand = regexp.MustCompile(`^(CGO_ENABLED=0 go build -C \S+ .*)-o (\S+) (\.)$`)

// program builds what the image contains, by the Dockerfile's own command, where everybody may execute it.
func (i image) program(t *testing.T) string {
	t.Helper()
	commands := i.build.all("RUN")
	match := buildCommand.FindStringSubmatch(commands[len(commands)-1])
	if match == nil {
		t.Fatalf("the last command of the build is %q", commands)
	}
	if want := []string{match[2]}; !slices.Equal(i.entryPoint, want) || !slices.Contains(i.final.all("COPY"), "--from=build "+match[2]+" "+i.entryPoint[0]) {
		t.Fatalf("built is %s, copied %v, run %v", match[2], i.final.all("COPY"), i.entryPoint)
	}
	folder := t.TempDir()
	for _, open := range []string{filepath.Dir(folder), folder} {
		if err := os.Chmod(open, 0o755); err != nil { // the image's user has no other rights
			t.Fatal(err)
		}
	}
	program := filepath.Join(folder, "worker")
	build := exec.CommandContext(t.Context(), "sh", "-c", match[1]+"-o '"+program+"' "+match[3])
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

func TestImage_IsAStaticProgramAndNobodysUser(t *testing.T) {
	t.Parallel()
	i := readImage(t)
	if from := i.build.all("FROM"); !strings.HasPrefix(from[0], "golang:"+goVersion(t)+" ") || !strings.HasSuffix(from[0], " AS build") {
		t.Errorf("the build begins from %v, and go.mod wants Go %s", from, goVersion(t))
	}
	if diff := cmp.Diff([]string{"scratch"}, i.final.all("FROM")); diff != "" {
		t.Error(diff)
	}
	command := i.build.all("RUN")[1]
	for _, flag := range []string{"CGO_ENABLED=0", "-trimpath", "-buildvcs=false", `-ldflags "-s -w"`} {
		if !strings.Contains(command, flag) {
			t.Errorf("%q is built without %s", command, flag)
		}
	}
	if !slices.ContainsFunc(i.final.all("COPY"), func(c string) bool { return strings.Contains(c, "ca-certificates.crt") }) {
		t.Error("without certificates it cannot talk to AWS")
	}
	if diff := cmp.Diff([]string{"65532:65532"}, i.final.all("USER")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"SIGTERM"}, i.final.all("STOPSIGNAL")); diff != "" {
		t.Error(diff)
	}
}

// goVersion is go.mod's, without its patch.
func goVersion(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(text))
	if match == nil {
		t.Fatal("go.mod names no version of Go")
	}
	return match[1]
}

// service is the worker's in the compose file.
type service struct {
	Build           string            `yaml:"build"`
	Environment     map[string]string `yaml:"environment"`
	StopGracePeriod string            `yaml:"stop_grace_period"`
	ReadOnly        bool              `yaml:"read_only"`
	CapDrop         []string          `yaml:"cap_drop"`
}

func readService(t *testing.T) service {
	t.Helper()
	text, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]service `yaml:"services"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	return file.Services["worker"]
}

func TestService_BuildsTheImageAndLetsItEnd(t *testing.T) {
	t.Parallel()
	s, i := readService(t), readImage(t)
	if _, err := os.Stat(filepath.Join(s.Build, "Dockerfile")); err != nil {
		t.Errorf("the service is built in %q: %v", s.Build, err)
	}
	at := slices.Index(i.arguments, "-grace")
	if at < 0 {
		t.Fatalf("the image's arguments are %v", i.arguments)
	}
	grace, err := time.ParseDuration(i.arguments[at+1])
	if err != nil {
		t.Fatal(err)
	}
	period, err := time.ParseDuration(s.StopGracePeriod)
	if err != nil || period < grace+closeTime {
		t.Errorf("the service is killed after %s (%v), its attempts may take %s", period, err, grace)
	}
	if !s.ReadOnly || !slices.Contains(s.CapDrop, "ALL") {
		t.Errorf("the service may do more than it needs: %+v", s)
	}
}
