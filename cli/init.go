package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/cli/internal/samfile"
)

// project holds the files of a new project. Files that Go or Git would interpret here end in .txt.
//
//go:embed project
var project embed.FS

// renamed maps names that an embedded file cannot have.
var renamed = map[string]string{"gitignore": ".gitignore"}

const sourceVariable = "RUNLANE_SOURCE"

// standardNames are first path elements that Go reserves: a module of that name would not build.
const standardNames = "arena archive bufio builtin bytes cmd cmp compress container context crypto database debug " +
	"embed encoding errors expvar flag fmt go hash html image index internal io iter log main maps math mime net os " +
	"path plugin reflect regexp runtime simd slices sort std strconv strings structs sync syscall testing text time " +
	"unicode unique unsafe vendor weak"

// projectName is the syntax of a project's name. It becomes part of file names and of the Go module's path.
var projectName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

func initCommand() *command {
	return &command{
		name:  "init",
		usage: "NAME",
		short: "Write a new project: a task, a schedule, a test, a template",
		min:   1,
		max:   1,
		local: true,
		long: "NAME is the folder to make: one Go program with the commands of runlane and its own tasks, and a " +
			"template.yaml that deploys it with alarms, a dashboard and gradual deployments. --minimal has none of " +
			"these three, nor \"functions add\" and FIFO queues. Nothing is overwritten.",
		examples: []string{
			"init hello", "init hello --minimal", "init hello --module example.org/hello --replace ../runlane-go",
		},
		act: func(flags *flag.FlagSet) action {
			var p newProject
			flags.BoolVar(&p.minimal, "minimal", false, "write the smallest template that loses nothing")
			flags.StringVar(&p.module, "module", "", "PATH of the Go module; NAME unless given")
			flags.StringVar(
				&p.source,
				"replace",
				"",
				"FOLDER of a checkout of runlane-go to use in place of a release; else "+sourceVariable,
			)
			return func(ctx context.Context, s *session, args []string) error {
				p.folder = s.path(args[0])
				return s.writeProject(ctx, &p)
			}
		},
	}
}

type newProject struct {
	folder, module, source string
	minimal                bool

	version string // of this module
}

type written struct {
	Folder string   `json:"folder"`
	Module string   `json:"module"`
	Files  []string `json:"files"`
}

// writeProject writes the folder under a temporary name and then renames it, so that an unfinished folder is never
// visible.
func (s *session) writeProject(ctx context.Context, p *newProject) error {
	if err := p.judge(s); err != nil {
		return err
	}
	parent, name := filepath.Split(p.folder)
	staged := filepath.Join(parent, "."+name+"-"+strings.ToLower(rand.Text()[:12]))
	defer os.RemoveAll(staged)
	files, err := p.write(staged, name)
	var unbuildable error
	if err == nil && p.source == "" {
		unbuildable = fetchSums(ctx, staged)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = replaceEmpty(staged, p.folder)
	}
	if err != nil {
		return unwritable(p.folder, err)
	}
	result := written{Folder: p.folder, Module: p.module, Files: files}
	if s.json {
		return cmp.Or(s.emit("project", &result), unbuildable)
	}
	s.line("wrote %s: %s", name, strings.Join(files, ", "))
	if err := s.results.Flush(); err != nil { // first, even into a pipe
		return err
	}
	if unbuildable == nil {
		s.note("next: go to %s, and there: go test ./... && go run . dev", name)
	}
	return unbuildable
}

func unwritable(folder string, err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	} else if link, ok := errors.AsType[*os.LinkError](err); ok {
		err = link.Err
	}
	return usagef("choose a folder that exists and that you may write into", "%s cannot be made: %v", folder, err)
}

// judge checks the arguments and applies defaults.
func (p *newProject) judge(s *session) error {
	name := filepath.Base(p.folder)
	if !projectName.MatchString(name) {
		return usagef(
			"use up to 40 small letters, digits and '-', with a letter first; ",
			"%s is not a name for a project",
			quoted(name),
		)
	}
	if p.module == "" {
		p.module = name
	}
	if first, _, _ := strings.Cut(p.module, "/"); slices.Contains(strings.Fields(standardNames), first) {
		return usagef(
			"give a path of yours, like --module example.org/"+name+"; ",
			"%s belongs to Go's standard library, and would not build",
			quoted(p.module),
		)
	}
	if strings.ContainsAny(p.module, " \t\n\"'`\\:@") {
		return usagef(
			"use a path like example.org/hello with --module; ",
			"%s is not a path for a Go module",
			quoted(p.module),
		)
	}
	entries, err := os.ReadDir(p.folder)
	switch {
	case err == nil && len(entries) > 0:
		return usagef("choose another name, or empty it first", "%s exists and is not empty", p.folder)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return unwritable(p.folder, err)
	}
	if p.source == "" {
		p.source = s.getenv(sourceVariable)
	}
	if p.source != "" {
		return p.judgeSource(s)
	}
	info, _ := debug.ReadBuildInfo()
	if p.version = moduleVersion(info); p.version == "devel" || strings.HasSuffix(p.version, "+dirty") {
		return usagef("name the checkout with --replace FOLDER, or with "+sourceVariable,
			"this program was built from a checkout of runlane-go: there is no release that a project could use")
	}
	return nil
}

func (p *newProject) judgeSource(s *session) (err error) {
	p.version = "v0.0.0"
	if p.source, err = filepath.Abs(s.path(p.source)); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(p.source, "go.mod"))
	if err != nil || !slices.Contains(strings.Fields(string(text)), modulePath) {
		return usagef("name the folder that holds its go.mod; ", "%s is not a checkout of %s", p.source, modulePath)
	}
	return nil
}

func (p *newProject) write(folder, name string) (names []string, err error) {
	if err := os.Mkdir(folder, 0o777); err != nil {
		return nil, err
	}
	template := "project/template.yaml"
	about := "all that it needs on AWS: table, queues, functions, alarms, a dashboard"
	if p.minimal {
		template, about = "project/minimal/template.yaml", "the smallest installation on AWS that loses nothing"
	}
	values := strings.NewReplacer(
		"__NAME__", name, "__MODULE__", p.module, "__VERSION__", p.version, "__TEMPLATE__", about,
	)
	if err := os.Mkdir(filepath.Join(folder, "tasks"), 0o777); err != nil {
		return nil, err
	}
	entries, _ := fs.Glob(project, "project/*.*")
	tasks, _ := fs.Glob(project, "project/tasks/*")
	for _, path := range append(entries, tasks...) {
		name := strings.TrimSuffix(strings.TrimPrefix(path, "project/"), ".txt")
		if other, ok := renamed[name]; ok {
			name = other
		}
		if name == "template.yaml" {
			path = template
		}
		text, err := project.ReadFile(path)
		if err != nil {
			return nil, err
		}
		content := values.Replace(samfile.WithoutExample(string(text)))
		if name == "go.mod" && p.source != "" {
			for _, module := range []string{modulePath, mcpModule, fileModule} {
				at := filepath.Join(p.source, strings.TrimPrefix(module, modulePath))
				content += fmt.Sprintf("\nreplace %s => %s\n", module, goModPath(at))
			}
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o666); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

func goModPath(path string) string {
	if strings.ContainsAny(path, " \t\"'`(),\\") {
		return strconv.Quote(path)
	}
	return path
}

// fetchSums completes go.sum, which cannot contain the checksum of the release that includes it. Without a network the
// user must do this later.
func fetchSums(ctx context.Context, folder string) error {
	tidy := exec.CommandContext(ctx, "go", "mod", "tidy")
	tidy.Dir = folder
	out, err := tidy.CombinedOutput()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil {
		return nil
	}
	last := strings.TrimSpace(string(out))
	last = last[strings.LastIndex(last, "\n")+1:]
	return &runlane.Error{
		Code: runlane.ErrConfigurationInvalid,
		Message: "the project is written, and cannot be built yet: \"go mod tidy\" did not work in it: " +
			shortened(strings.TrimSpace(last+" "+err.Error()), maxCause),
		Hint: "repeat it there; for a version that is not a release, remove the project and give --replace FOLDER, " +
			"a checkout of runlane-go, or " + sourceVariable,
		Cause: err,
	}
}

func replaceEmpty(from, to string) error {
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(from, to)
}
