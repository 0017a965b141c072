package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
)

// exported is a file of an environment with runs that ended and runs that wait, in a lane on SQLite.
func exported(t *testing.T) (p *program, file string) {
	t.Helper()
	p, path := onFile(t)
	t.Run("before", func(t *testing.T) { // its worker has ended with it
		writer(t, path, 4)
		p.run(t, 0, "trigger", "greet", `"ada"`, "--id", "done", "--idempotency-key", "k", "--wait")
	})
	p.run(t, 0, "trigger", "greet", `"bob"`, "--id", "waits")
	p.run(t, 0, "trigger", "greet", `"cyd"`, "--id", "later", "--delay", "1h")
	out, _ := p.run(t, 0, "export")
	file = filepath.Join(t.TempDir(), "state.ndjson")
	if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	return p, file
}

func TestMove_FromAFileToAnother_RunsGoOn(t *testing.T) { // it has no subtests: the linter takes the program for one
	t.Parallel()
	_, file := exported(t)
	to, path := onFile(t)
	if out, _ := to.run(t, 0, "import", file); !strings.HasPrefix(out, "read 3 runs, of which 3 had to be written; 1 schedule, 1 task") {
		t.Error(out)
	}
	if out, _ := to.run(t, 0, "import", file); !strings.Contains(out, "of which 0 had to be written") {
		t.Error(out)
	}
	to.run(t, 0, "doctor", "--all")
	rt := writer(t, path, 4)
	if run, err := rt.Wait(t.Context(), "waits"); err != nil || run.Status != runlane.StatusSucceeded {
		t.Errorf("%+v, %v", run, err)
	}
	if out, _ := to.run(t, 0, "trigger", "greet", `"ada"`, "--idempotency-key", "k", "--json"); !strings.Contains(out, `"done"`) {
		t.Errorf("the key's owner is another: %s", out)
	}
	to.run(t, 0, "runs", "cancel", "later")
	to.run(t, 0, "doctor", "--all")
}

// A file that is refused makes no lane, whatever is wrong with it.
func TestMove_ARefusedImport_LeavesNoFile(t *testing.T) { // as above
	t.Parallel()
	_, file := exported(t)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut.ndjson")
	if err := os.WriteFile(cut, text[:len(text)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	to, path := onFile(t)
	for _, args := range [][]string{{"import", cut}, {"import", file, "--env", "other"}, {"import", file + ".absent"}} {
		_, news := to.run(t, 2, args...)
		if files, err := filepath.Glob(path + "*"); err != nil || len(files) > 0 {
			t.Errorf("%v leaves %v, %v: %s", args, files, err, news)
		}
	}
	to.run(t, 0, "import", file)
}

// A killed import leaves nothing of what it read: it has payloads.
func TestMove_AKilledImport_LeavesNoDraft(t *testing.T) {
	t.Parallel()
	p, _ := onFile(t)
	folder := t.TempDir()
	command := exec.CommandContext(t.Context(), binary(), "import", "-")
	command.Env = append(append(os.Environ(), p.environment...), "TMPDIR="+folder)
	in, err := command.StdinPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write(make([]byte, 1<<20)); err != nil { // more than a pipe holds: it reads
		t.Error(err)
	}
	if err := command.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = command.Wait()
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}
