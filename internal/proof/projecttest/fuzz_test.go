package projecttest

import (
	"strings"
	"testing"
)

// A worker that dies gives no reason, and CI's machine goes with its files: the log has to have both.
func TestFuzzScript_InputThatKillsAWorker_IsPrintedAndRunByItself(t *testing.T) {
	t.Parallel()
	b := newWorkbench(t)
	b.put("scripts/fuzz.sh", read(t, "scripts", "fuzz.sh"))
	b.put("doom/a_test.go", "package doom\n")
	b.put("program", `#!/usr/bin/env bash
case "$*" in
  *"-test.list ^Fuzz"*) printf 'FuzzDies\nFuzzLives\n' ;;
  *"-test.fuzz ^FuzzDies$"*)
    mkdir -p testdata/fuzz/FuzzDies
    echo '[]byte("the last words")' >testdata/fuzz/FuzzDies/44ab
    printf '    fuzzing process hung or terminated unexpectedly: exit status 2\n    Failing input written to testdata/fuzz/FuzzDies/44ab\n'
    exit 1 ;;
  *"-test.run ^FuzzDies\$/^44ab\$ "*) echo "panic: a stack that is read" >&2; seq -f 'frame %g' 100; exit 2 ;;
  *"-test.fuzz ^FuzzLives$"*) echo "FuzzLives was run" ;;
  *) echo "unknown call: $*" >&2; exit 3 ;;
esac
`)
	b.put("bin/go", `#!/usr/bin/env bash
case "$1" in
  test) while [ "$1" != -o ]; do shift; done; cp ../program "$2" ;;
  *) echo folder ;;
esac
`)
	out, status := b.run(nil, "scripts/fuzz.sh", "--package", "doom", "10")
	if status != 1 {
		t.Errorf("exit status %d", status)
	}
	for _, want := range []string{"the last words", "panic: a stack that is read", "frame 39\n", "FuzzLives was run"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not printed", want)
		}
	}
	if strings.Contains(out, "frame 40\n") || strings.Contains(out, "unknown call") || t.Failed() {
		t.Errorf("printed:\n%s", out)
	}
}
