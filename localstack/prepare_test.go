package localstack_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// prepareOnce runs the cache's own rules with stand-ins for the two slow steps. The first notes each run; the second fails when told to.
const prepareOnce = `
set -euo pipefail
. ./common.sh
. ./versions.sh
. ./prepare.sh
PYTHON=$STUB_PYTHON
prepare_python() {
	echo run >>"$RUNS"
	mkdir -p "$CACHE/venv/bin"
	[ ! -e "$CACHE/half" ] || die "a half-made cache was used"
	touch "$CACHE/half"
	sleep 0.3
	ln -s "$STUB_PYTHON" "$CACHE/venv/bin/python"
}
prepare_dynamodb() { [ -z "${BREAK:-}" ] || exit 3; }
prepare_cache
[ -f "$CACHE/complete" ] && echo "usable: $CACHE"
`

func prepareShell(t *testing.T) (s *shell, runs func() int) {
	t.Helper()
	s = newShell(t)
	folder := t.TempDir()
	s.env["XDG_CACHE_HOME"] = filepath.Join(folder, "cache")
	s.env["RUNS"] = filepath.Join(folder, "runs")
	s.env["STUB_PYTHON"] = filepath.Join(folder, "python")
	writeProgram(t, s.env["STUB_PYTHON"], `[ "$1" != - ] || echo 0123456789abcdef`) // the key
	script := filepath.Join(folder, "prepare-once.sh")
	if err := os.WriteFile(script, []byte(prepareOnce), 0o644); err != nil {
		t.Fatal(err)
	}
	s.env["SCRIPT"] = script
	return s, func() int {
		content, err := os.ReadFile(s.env["RUNS"])
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.Count(string(content), "run")
	}
}

func TestPrepare_Interrupted_StartsAnew(t *testing.T) {
	t.Parallel()
	s, runs := prepareShell(t)
	s.env["BREAK"] = "1"
	if out, ok := s.run(t, s.env["SCRIPT"]); ok {
		t.Fatalf("the broken preparation succeeded: %s", out)
	}
	delete(s.env, "BREAK")
	if out := s.mustRun(t, s.env["SCRIPT"]); !strings.Contains(out, "usable: ") {
		t.Errorf("the second preparation said %q", out)
	}
	if got := runs(); got != 2 {
		t.Errorf("prepared %d times, want 2", got)
	}
}

func TestPrepare_ManyAtOnce_PreparesOnce(t *testing.T) {
	t.Parallel()
	s, runs := prepareShell(t)
	outputs := make([]string, 4)
	var group sync.WaitGroup
	for i := range outputs {
		group.Go(func() {
			out, _ := s.command(t.Context(), s.env["SCRIPT"]).CombinedOutput()
			outputs[i] = string(out)
		})
	}
	group.Wait()
	for _, out := range outputs {
		if !strings.Contains(out, "usable: ") {
			t.Errorf("one of them said %q", out)
		}
	}
	if got := runs(); got != 1 {
		t.Errorf("prepared %d times, want 1", got)
	}
}

// The Python that the cache was made from may be uninstalled later.
func TestPrepare_PythonGone_StartsAnew(t *testing.T) {
	t.Parallel()
	s, runs := prepareShell(t)
	out := s.mustRun(t, s.env["SCRIPT"])
	_, cache, _ := strings.Cut(strings.TrimSpace(out[strings.Index(out, "usable: "):]), " ")
	python := filepath.Join(cache, "venv", "bin", "python")
	if err := os.Remove(python); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/nonexistent/python", python); err != nil {
		t.Fatal(err)
	}
	s.mustRun(t, s.env["SCRIPT"])
	if got := runs(); got != 2 {
		t.Errorf("prepared %d times, want 2", got)
	}
}
