package projecttest

import (
	"fmt"
	"go/token"
	"go/types"
	"regexp"
	"strings"
	"testing"
)

// units are those of docs/limits.md, as they are written in Go.
var units = map[string]string{"bytes": "1", "KiB": "1<<10", "MiB": "1<<20", "days": "24 * time.Hour", "day": "24 * time.Hour", "": "1"}

// Users find each limit of package runlane in one table, with its value.
func TestLimits_EachIsInTheDocument(t *testing.T) {
	t.Parallel()
	value := func(expression string) string {
		v, err := types.Eval(token.NewFileSet(), nil, token.NoPos, strings.ReplaceAll(expression, "time.Hour", "3600"))
		if err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
		return v.Value.ExactString()
	}
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| .+ \\| ([0-9,]+) ?([A-Za-z]*) \\| `(Max\\w+)` \\|$").FindAllStringSubmatch(read(t, "docs/limits.md"), -1) {
		documented[row[3]] = value(fmt.Sprintf("%s * (%s)", strings.ReplaceAll(row[1], ",", ""), units[row[2]]))
	}
	root, _, _ := strings.Cut(read(t, "internal/proof/projecttest/testdata/api.golden"), "\n# github.com/runlane/runlane-go/")
	constants := regexp.MustCompile(`(?m)^const (Max\w+) = (.+)$`).FindAllStringSubmatch(root, -1)
	for _, c := range constants {
		if got, want := documented[c[1]], value(c[2]); got != want {
			t.Errorf("docs/limits.md has %q for %s, which is %s", got, c[1], want)
		}
	}
	if len(constants) != len(documented) || len(constants) < 20 {
		t.Errorf("docs/limits.md has %d limits, package runlane %d", len(documented), len(constants))
	}
}
