package projecttest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestPureFolders_AskNoClock(t *testing.T) {
	t.Parallel()
	clock := regexp.MustCompile(`\btime\.(Now|Since|Until|After|AfterFunc|NewTimer|NewTicker|Tick|Sleep)\(`)
	for _, folder := range pureFolders {
		paths, err := filepath.Glob(filepath.Join(root(t), filepath.FromSlash(folder), "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d files, %v", folder, len(paths), err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if asked := clock.Find(text); asked != nil && !strings.HasSuffix(path, "_test.go") {
				t.Errorf("%s calls %s", path, asked)
			}
		}
	}
}
