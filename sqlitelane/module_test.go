package sqlitelane_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The translated C runtime has to be exactly the version that SQLite's module requires: a newer one may not fit, and
// `go get -u` raises it.
func TestModule_HasTheRuntimeThatSQLiteRequires(t *testing.T) {
	t.Parallel()
	listed := func(arguments ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "go", append([]string{"list", "-m"}, arguments...)...)
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	gomod, err := os.ReadFile(filepath.Join(listed("-f", "{{.Dir}}", "modernc.org/sqlite"), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	required := regexp.MustCompile(`modernc\.org/libc (v\S+)`).FindStringSubmatch(string(gomod))
	if required == nil {
		t.Fatal("SQLite's module requires no libc")
	}
	if have := listed("-f", "{{.Version}}", "modernc.org/libc"); have != required[1] {
		t.Errorf("libc is %s, SQLite requires %s: go get modernc.org/libc@%s", have, required[1], required[1])
	}
}

// An application may raise its version of the main module and keep that of this one, so the product goes by what the
// main module exports, and by internal/embedded, which it shares with memlane: a change of that package which this
// module does not build with asks for both modules in the same version.
func TestModule_ProductUsesExportedPackagesAndTheSharedOne(t *testing.T) {
	t.Parallel()
	c := exec.CommandContext(t.Context(), "go", "list", "-deps", ".")
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	const main = "github.com/runlane/runlane-go"
	allowed := map[string]bool{main: true, main + "/lane": true, main + "/internal/embedded": true}
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name)
		if strings.HasPrefix(name, main) && !strings.HasPrefix(name, main+"/sqlitelane") && !allowed[name] {
			t.Errorf("it depends on %s", name)
		}
	}
}
