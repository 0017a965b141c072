package projecttest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Programs and archives say by their first bytes what they are. A `go build` in the wrong folder leaves a program that
// `git add -A` takes along.
var builtFiles = []struct{ kind, magic string }{
	{"a program (ELF)", "\x7fELF"},
	{"a program (Mach-O)", "\xfe\xed\xfa\xce"},
	{"a program (Mach-O)", "\xfe\xed\xfa\xcf"},
	{"a program (Mach-O)", "\xce\xfa\xed\xfe"},
	{"a program (Mach-O)", "\xcf\xfa\xed\xfe"},
	{"a program (Mach-O) or a Java class", "\xca\xfe\xba\xbe"},
	{"a program (Windows)", "MZ"},
	{"a library (ar)", "!<arch>"},
	{"an archive (zip)", "PK\x03\x04"},
}

// largest is what a file may have unless it is in largeFiles, with the reason.
const largest = 1 << 20

var largeFiles []string

// contentFault says why a file does not belong into the repository; "" if it does.
func contentFault(name string, content []byte) string {
	for _, built := range builtFiles {
		if bytes.HasPrefix(content, []byte(built.magic)) {
			return fmt.Sprintf("%s is %s: what is built is not committed", name, built.kind)
		}
	}
	if len(content) > largest && !slices.Contains(largeFiles, name) {
		return fmt.Sprintf("%s has %d bytes, more than %d, and is not in largeFiles", name, len(content), largest)
	}
	return ""
}

func TestFiles_AreNeitherBuiltNorLarge(t *testing.T) {
	t.Parallel()
	for _, file := range projectFiles(t) {
		content, err := os.ReadFile(filepath.Join(root(t), file))
		if err != nil {
			t.Fatal(err)
		}
		if fault := contentFault(file, content); fault != "" {
			t.Error(fault)
		}
	}
}
