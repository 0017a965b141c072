package projecttest

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	makeTarget  = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):(.*)$`)
	phonyTarget = regexp.MustCompile(`(?m)^\.PHONY: (\S+)$`)
	makeMention = regexp.MustCompile("`make ([a-z][a-z0-9-]*)[^`]*`")
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
		if !strings.HasSuffix(name, ".md") || name == "CHANGELOG.md" { // which tells of what was
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
