package projecttest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const licensesDocument = "docs/licenses.md"

// knownLicenses are told by a sentence that only they have, in this order: a file may hold several.
var knownLicenses = []struct{ name, sentence string }{
	{"Apache-2.0", "Apache License Version 2.0"},
	{"MPL-2.0", "Mozilla Public License Version 2.0"},
	{"MIT", "Permission is hereby granted free of charge to any person obtaining a copy"},
	{"BSD-3-Clause", "Neither the name of"},
	{"BSD-2-Clause", "this list of conditions and the following disclaimer in the documentation"},
}

// acceptedLicenses are those that a program under MIT may link, and those that its tests may use without being distributed.
var acceptedLicenses = map[string][]string{
	"programs": {"Apache-2.0", "MIT", "BSD-3-Clause", "BSD-2-Clause"},
	"tests":    {"Apache-2.0", "MIT", "BSD-3-Clause", "BSD-2-Clause", "MPL-2.0"},
}

// licensesIn names the licenses whose text a file has.
func licensesIn(text string) (names []string) {
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, ",", "")), " ")
	for _, known := range knownLicenses {
		if strings.Contains(text, known.sentence) && !(known.name == "BSD-2-Clause" && slices.Contains(names, "BSD-3-Clause")) {
			names = append(names, known.name)
		}
	}
	return names
}

// licensesOf reads what a module's folder says of its license.
func licensesOf(folder string) ([]string, error) {
	for _, pattern := range []string{"LICENSE*", "COPYING*"} {
		files, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			return nil, err
		}
		if len(files) > 0 {
			text, err := os.ReadFile(files[0])
			return licensesIn(string(text)), err
		}
	}
	return nil, nil
}

// modulesOf are the modules whose packages are compiled, with their folders, by the module in a folder of this one.
func modulesOf(t *testing.T, folder string, arguments ...string) map[string]string {
	t.Helper()
	modules := map[string]string{}
	listed := run(t, filepath.Join(root(t), folder), nil, "go", append([]string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}\t{{.Dir}}{{end}}"}, arguments...)...)
	for line := range strings.Lines(listed) {
		if name, folder, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && !strings.HasPrefix(name, module) {
			modules[name] = folder
		}
	}
	return modules
}

// licenseFault is what is wrong with the licenses of a module.
func licenseFault(name, use string, licenses []string) (fault string) {
	if len(licenses) == 0 {
		fault = name + " has no license that is known here"
	}
	for _, license := range licenses {
		if !slices.Contains(acceptedLicenses[use], license) {
			fault = fmt.Sprintf("%s is under %s, which %s may not use", name, license, use)
		}
	}
	return fault
}

// Everything that is compiled into a program or a test has a license that allows it, and stands in the document. go test -update
// writes it.
func TestLicenses_OfEveryDependency_AreListedAndAllowed(t *testing.T) {
	t.Parallel()
	var products []string
	for _, p := range goPackages(t) {
		if !slices.Contains([]string{"internal", "lanetest"}, strings.SplitN(p.folder(), "/", 2)[0]) {
			products = append(products, p.ImportPath)
		}
	}
	programs := modulesOf(t, "", products...)
	all := modulesOf(t, "", "-test", "./...")
	for _, separate := range []string{"sqlitelane", "mcp", "otel"} {
		for name, folder := range modulesOf(t, separate, ".") {
			programs[name], all[name] = folder, folder
		}
	}
	if len(programs) < 10 || len(all) <= len(programs) {
		t.Fatalf("%d modules in programs, %d in all", len(programs), len(all))
	}
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	groups := map[string][]string{} // by use and licenses
	for _, name := range names {
		use := "tests"
		if programs[name] != "" {
			use = "programs"
		}
		licenses, err := licensesOf(all[name])
		if err != nil {
			t.Fatal(err)
		}
		if fault := licenseFault(name, use, licenses); fault != "" {
			t.Error(fault)
		}
		group := "In " + use + ", " + strings.Join(licenses, ", ")
		groups[group] = append(groups[group], "- `"+name+"`\n")
	}
	text := "# Licenses of the dependencies\n\nWritten by `go test ./internal/proof/projecttest -run TestLicenses -update` from the modules' own files. " +
		"The project itself is under\n[MIT](../LICENSE). What programs import or deploy is in programs, the rest in tests and in tools of this repository.\n"
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		text += "\n## " + group + "\n\n" + strings.Join(groups[group], "")
	}
	if *update {
		if err := os.WriteFile(filepath.Join(root(t), licensesDocument), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, licensesDocument) != text {
		t.Errorf("%s is not what the modules say: run go test ./internal/proof/projecttest -run TestLicenses -update", licensesDocument)
	}
}
