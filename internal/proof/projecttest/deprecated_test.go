package projecttest

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	deprecation = regexp.MustCompile(`(?m)^\s*// Deprecated:((?:.*\n\s*//[ \t]*\S)*.*)$`)
	replacement = regexp.MustCompile(`\b[Uu]se \[?[A-Za-z]`)
	since       = regexp.MustCompile(`\bv?\d+\.\d+(\.\d+)?\b`)
)

// deprecationFaults finds deprecations that do not say what to use, or since which version.
func deprecationFaults(name, source string) []string {
	var faults []string
	for _, at := range deprecation.FindAllStringSubmatchIndex(source, -1) {
		text := source[at[2]:at[3]]
		fault := func(what string) {
			faults = append(faults, fmt.Sprintf("%s:%d: Deprecated without %s", name, 1+strings.Count(source[:at[2]], "\n"), what))
		}
		if !replacement.MatchString(text) {
			fault("what to use instead")
		}
		if !since.MatchString(text) {
			fault("the version since which it is")
		}
	}
	return faults
}

func TestDeprecated_SaysWhatToUse(t *testing.T) {
	t.Parallel()
	for name, text := range textFiles(t) {
		if filepath.Ext(name) == ".go" && !strings.HasPrefix(name, "internal/proof/projecttest/") {
			for _, fault := range deprecationFaults(name, text) {
				t.Errorf("%s; docs/compatibility.md, Names of Go", fault)
			}
		}
	}
}

func TestDeprecated_TheRuleCanFail(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]int{
		"// Open opens.\nfunc Open() {}":                                       0,
		"// Deprecated: since 0.3.0, use [Connect].\nfunc Open() {}":           0,
		"// Deprecated: since 0.3.0 it does nothing new;\n// use [Connect].":   0,
		"// Deprecated: since 0.3.0 it is slow.\nfunc Open() {} // use it":     1,
		"\t// Deprecated: use Connect.\n\tOpen()":                              1,
		"// Deprecated: it goes.\nfunc Open() {}":                              2,
		"// Deprecated: use A, since 0.2.0.\nvar a int\n// Deprecated: bad.\n": 2,
	} {
		if faults := deprecationFaults("a.go", source); len(faults) != want {
			t.Errorf("%q: %q", source, faults)
		}
	}
}
