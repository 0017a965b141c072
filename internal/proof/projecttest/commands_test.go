package projecttest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

var (
	makeTarget   = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):(.*)$`)
	phonyTarget  = regexp.MustCompile(`(?m)^\.PHONY: (\S+)$`)
	ciStep       = regexp.MustCompile(`(?m)^step ((?:-\S+ )*)([a-z][a-z0-9 -]*?)(?: #.*)?$`)
	makeCommand  = regexp.MustCompile(`^make ([a-z][a-z0-9-]*)$`)
	makeMention  = regexp.MustCompile("`make ([a-z][a-z0-9-]*)[^`]*`")
	pinnedAction = regexp.MustCompile(`^actions/[a-z-]+@[0-9a-f]{40}$`)
	// vulnerabilities is the one step that only the workflow has: it asks an online data base, whose answer changes by itself, and
	// .ci/run gives the same answer everywhere without a network.
	vulnerabilities = regexp.MustCompile(`^go run golang\.org/x/vuln/cmd/govulncheck@v\d+\.\d+\.\d+ \./\.\.\.$`)
	contribution    = regexp.MustCompile("(?m)^\\| `make ([a-z0-9-]+)[^`]*` \\|[^|]*\\| ([^|]+?) \\|")
)

// makeTargets maps the Makefile's targets to their description, "" for one without.
func makeTargets(makefile string) map[string]string {
	targets := map[string]string{}
	for _, match := range makeTarget.FindAllStringSubmatch(makefile, -1) {
		_, description, _ := strings.Cut(match[2], "## ")
		targets[match[1]] = description
	}
	return targets
}

// ciTargets are the make targets that .ci/run calls, in order.
func ciTargets(script string) []string {
	var targets []string
	for _, match := range ciStep.FindAllStringSubmatch(script, -1) {
		targets = append(targets, strings.Fields(match[2])...) // match[1] are flags: several targets at once
	}
	return targets
}

// workflowTargets are the make targets that a GitHub workflow calls, in order, and everything about it that is not allowed.
func workflowTargets(text string) (targets, faults []string, err error) {
	var workflow struct {
		Jobs map[string]struct {
			Strategy struct {
				Matrix struct{ Target []string }
			}
			Steps []struct {
				Uses string
				Run  string
				If   string
				Soft any `yaml:"continue-on-error"`
			}
		}
	}
	if err := yaml.Unmarshal([]byte(text), &workflow); err != nil {
		return nil, nil, err
	}
	if len(workflow.Jobs) != 1 {
		faults = append(faults, fmt.Sprintf("%d jobs: the order of targets is that of one", len(workflow.Jobs)))
	}
	for _, job := range workflow.Jobs {
		for _, step := range job.Steps {
			if step.Soft != nil {
				faults = append(faults, "a step may fail without failing the workflow: "+step.Run+step.Uses)
			}
			if step.Uses != "" {
				if !pinnedAction.MatchString(step.Uses) {
					faults = append(faults, step.Uses+" is not one of GitHub's own actions, pinned to a commit")
				}
				continue
			}
			if vulnerabilities.MatchString(strings.TrimSpace(step.Run)) {
				continue
			}
			if step.Run == "make ${{ matrix.target }}" {
				targets = append(targets, job.Strategy.Matrix.Target...)
				continue
			}
			match := makeCommand.FindStringSubmatch(strings.TrimSpace(step.Run))
			if match == nil {
				faults = append(faults, fmt.Sprintf("%q is not a make target: what CI does has to be a target too", step.Run))
				continue
			}
			targets = append(targets, match[1])
		}
	}
	return targets, faults, nil
}

func TestWorkflow_CallsTheTargetsOfTheCIScript(t *testing.T) {
	t.Parallel()
	targets, faults, err := workflowTargets(read(t, ".github", "workflows", "ci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range faults {
		t.Error(fault)
	}
	if !strings.Contains(read(t, ".github", "workflows", "ci.yml"), "govulncheck@") {
		t.Error("the workflow does not look for known vulnerabilities")
	}
	// The script stops local AWS in its exit trap.
	script := read(t, ".ci", "run")
	if !strings.Contains(script, "make local-down") {
		t.Error(".ci/run leaves local AWS running")
	}
	if diff := cmp.Diff(append(ciTargets(script), "local-down"), targets); diff != "" {
		t.Errorf("(-.ci/run +workflow)\n%s", diff)
	}
}

func TestWorkflow_TheRuleCanFail(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]string{
		"unpinned action":    "uses: actions/checkout@v7",
		"foreign action":     "uses: someone/thing@3d3c42e5aac5ba805825da76410c181273ba90b1",
		"own command":        "run: go test ./...",
		"unpinned tool":      "run: go run golang.org/x/vuln/cmd/govulncheck@latest ./...",
		"failure forgiven":   "run: make test, continue-on-error: true",
		"changed by a value": "run: make test GOFLAGS=-short",
		"another matrix":     "run: 'make ${{ matrix.go }}'",
	} {
		_, faults, err := workflowTargets("jobs: {a: {steps: [{" + step + "}]}}")
		if err != nil {
			t.Fatal(err)
		}
		if len(faults) != 1 {
			t.Errorf("%s: %v", name, faults)
		}
	}
	targets, faults, err := workflowTargets("jobs: {a: {steps: [{run: make one}, {run: make two}]}}")
	if err != nil || len(faults) > 0 || !slices.Equal(targets, []string{"one", "two"}) {
		t.Errorf("%v %v %v", targets, faults, err)
	}
	targets, faults, err = workflowTargets("jobs: {a: {strategy: {matrix: {target: [one, two]}}, steps: [{run: 'make ${{ matrix.target }}'}]}}")
	if err != nil || len(faults) > 0 || !slices.Equal(targets, []string{"one", "two"}) {
		t.Errorf("of a matrix: %v %v %v", targets, faults, err)
	}
}

// contributions maps the targets of CONTRIBUTING's table to where they run.
func contributions(t *testing.T) map[string]string {
	t.Helper()
	places := map[string]string{}
	for _, match := range contribution.FindAllStringSubmatch(read(t, "CONTRIBUTING.md"), -1) {
		places[match[1]] = match[2]
	}
	return places
}

func TestContributing_ListsWhatRunsAtNight(t *testing.T) {
	t.Parallel()
	targets, faults, err := workflowTargets(read(t, ".github", "workflows", "nightly.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range faults {
		t.Error(fault)
	}
	want := []string{"local-down"}
	for target, place := range contributions(t) {
		if strings.HasPrefix(place, "nightly") {
			want = append(want, target)
		}
	}
	slices.Sort(want)
	slices.Sort(targets)
	if diff := cmp.Diff(want, targets); diff != "" {
		t.Errorf("(-CONTRIBUTING +workflow)\n%s", diff)
	}
}

func TestContributing_ListsWhatCIRuns(t *testing.T) {
	t.Parallel()
	places := contributions(t)
	inCI := ciTargets(read(t, ".ci", "run"))
	if len(inCI) == 0 {
		t.Fatal(".ci/run calls no target")
	}
	for _, target := range inCI {
		if places[target] != "`.ci/run`" {
			t.Errorf("CONTRIBUTING's table says %q of make %s, which .ci/run calls", places[target], target)
		}
	}
	for target, place := range places {
		if place == "`.ci/run`" && !slices.Contains(inCI, target) {
			t.Errorf("CONTRIBUTING's table says that .ci/run calls make %s", target)
		}
	}
}

func TestMakefile_DescribesEveryTarget(t *testing.T) {
	t.Parallel()
	makefile := read(t, "Makefile") + read(t, "build.mk")
	targets := makeTargets(makefile)
	var phony []string
	for _, match := range phonyTarget.FindAllStringSubmatch(makefile, -1) {
		phony = append(phony, match[1])
	}
	for target, description := range targets {
		if description == "" {
			t.Errorf("make %s has no description", target)
		}
		if !slices.Contains(phony, target) {
			t.Errorf("make %s is not phony", target)
		}
	}
	listed := run(t, root(t), []string{"MAKEFLAGS="}, "make")
	for target := range targets {
		if !regexp.MustCompile(`(?m)^  ` + target + ` +\S`).MatchString(listed) {
			t.Errorf("make without arguments does not list %s", target)
		}
	}
}

func TestDocumentation_NamesExistingTargets(t *testing.T) {
	t.Parallel()
	targets := makeTargets(read(t, "Makefile") + read(t, "build.mk") + read(t, "cli/project/Makefile.txt")) // the last is a project's
	for name, text := range textFiles(t) {
		if !strings.HasSuffix(name, ".md") {
			continue
		}
		for _, match := range makeMention.FindAllStringSubmatch(text, -1) {
			if _, ok := targets[match[1]]; !ok {
				t.Errorf("%s mentions make %s, which does not exist", name, match[1])
			}
		}
	}
}

// deployment is a command line that is typed, not one that prose mentions.
var deployment = regexp.MustCompile(`(?m)^(?:\$ |[ \t]+)?sam deploy\b.*--guided.*$`)

// unnamedDeployments are first deployments that leave the stack's name to whatever the tool offers: the next one would not find it.
func unnamedDeployments(text string) (lines []string) {
	for _, line := range deployment.FindAllString(text, -1) {
		if !strings.Contains(line, "--stack-name ") {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestDocumentation_FirstDeploymentsNameTheirStack(t *testing.T) {
	t.Parallel()
	for name, text := range textFiles(t) {
		if !strings.HasSuffix(name, ".md") && !strings.HasPrefix(name, "cli/project/") {
			continue
		}
		for _, line := range unnamedDeployments(text) {
			t.Errorf("%s: %q has no --stack-name", name, line)
		}
	}
	if len(unnamedDeployments("x\n$ sam deploy --guided\n    sam deploy --guided\n\tsam deploy --guided --stack-name a\nSay `sam deploy --guided`.\n")) != 2 {
		t.Error("the rule does not find what it is about")
	}
}
