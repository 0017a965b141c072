package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/lane"
)

// inFile is a storage that can be copied and examined, as one in a file.
type inFile struct {
	lane.Storage

	copied   string
	restored string
	findings []lane.Finding
	fault    error
}

func (f *inFile) Unwrap() lane.Storage { return f.Storage }

func (f *inFile) CopyTo(_ context.Context, path string) (int64, error) {
	f.copied = path
	return 12_345_678, f.fault
}

func (f *inFile) RestoreTo(_ context.Context, path string) (int64, error) {
	f.restored = path
	return 12_345_678, f.fault
}

func (f *inFile) Examine(context.Context) ([]lane.Finding, error) { return f.findings, f.fault }

func worldInFile() (*world, *inFile) {
	w, f := newWorld(), &inFile{}
	w.wrap = func(s lane.Storage) lane.Storage {
		f.Storage = s
		return f
	}
	return w, f
}

func TestBackup_SaysWhatItMade(t *testing.T) {
	t.Parallel()
	w, f := worldInFile()
	r := w.run(t.Context(), "backup", "copy.db")
	if r.code != cli.ExitOK || r.stdout != "copy.db has a copy of lane memory: 12.3 MB\n" || f.copied != "copy.db" {
		t.Errorf("%+v", r)
	}
	r = w.run(t.Context(), "backup", "copy.db", "--json")
	if r.code != cli.ExitOK || r.stdout != `{"v":1,"kind":"backup","file":"copy.db","bytes":12345678}`+"\n" {
		t.Errorf("%+v", r)
	}
	folder := t.TempDir()
	if r := runWith(t.Context(), w, &cli.Options{Args: []string{"backup", "copy.db"}, Folder: folder}); r.code != cli.ExitOK ||
		f.copied != filepath.Join(folder, "copy.db") {
		t.Errorf("%s: %+v", f.copied, r)
	}
}

func TestBackup_ThatCannotBeMade_SaysWhy(t *testing.T) {
	t.Parallel()
	w, f := worldInFile()
	f.fault = &runlane.Error{Code: runlane.ErrValidationFailed, Message: "copy.db is there already", Hint: "name another file"}
	if r := w.run(t.Context(), "backup", "copy.db"); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "name another file") {
		t.Errorf("%+v", r)
	}
	if r := newWorld().run(t.Context(), "backup", "copy.db"); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "lane memory is not a file") {
		t.Errorf("%+v", r)
	}
	if r := w.run(t.Context(), "backup"); r.code != cli.ExitUsage {
		t.Errorf("%+v", r)
	}
	w.down = true
	if r := w.run(t.Context(), "backup", "copy.db", "--json"); r.code != cli.ExitUnavailable {
		t.Errorf("%+v", r)
	}
}

func TestDoctor_ShowsWhatTheStorageFinds(t *testing.T) {
	t.Parallel()
	w, f := worldInFile()
	f.findings = []lane.Finding{
		{Check: "file", Detail: "12.0 MB"},
		{Check: "room", Detail: "1.0 MB are left", Fix: "make room"},
		{Check: "pages", Detail: "one is damaged", Fix: "restore a backup", Broken: true},
	}
	r := w.run(t.Context(), "doctor")
	if r.code != cli.ExitUnavailable {
		t.Errorf("%+v", r)
	}
	for _, want := range []string{
		"ok       file: 12.0 MB\n", "warning  room: 1.0 MB are left\n         fix: make room\n",
		"failed   pages: one is damaged\n         fix: restore a backup\n", "histories",
	} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in\n%s", want, r.stdout)
		}
	}
	f.findings = f.findings[:2]
	if r := w.run(t.Context(), "doctor"); r.code != cli.ExitOK {
		t.Errorf("%+v", r)
	}
	f.fault = &runlane.Error{Code: runlane.ErrStorageUnavailable, Message: "no page can be read"}
	if r := w.run(t.Context(), "doctor", "--json"); r.code != cli.ExitUnavailable || !strings.Contains(r.stdout, "no page can be read") {
		t.Errorf("%+v", r)
	}
}

func TestRestore_ReplacesTheFileOfTheLane(t *testing.T) {
	t.Parallel()
	w, f := worldInFile()
	folder := t.TempDir()
	copied := filepath.Join(folder, "copy.db")
	if err := os.WriteFile(copied, []byte("a copy"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := w.run(t.Context(), "restore", copied, "--lane", "sqlite:state.db?sync=normal", "--yes")
	if r.code != cli.ExitOK || r.stdout != "state.db is what "+copied+" is: 12.3 MB\n" || f.restored != "state.db" {
		t.Errorf("%+v", r)
	}
	r = w.run(t.Context(), "restore", copied, "--lane", "sqlite:state.db", "--yes", "--json")
	if r.code != cli.ExitOK || r.stdout != `{"v":1,"kind":"restore","file":"state.db","from":"`+copied+`","bytes":12345678}`+"\n" {
		t.Errorf("%+v", r)
	}
}

func TestRestore_ThatCannotBeDone_SaysWhy(t *testing.T) {
	t.Parallel()
	w, f := worldInFile()
	copied := filepath.Join(t.TempDir(), "copy.db")
	r := w.run(t.Context(), "restore", copied, "--lane", "sqlite:state.db", "--yes")
	if r.code != cli.ExitUsage || !strings.Contains(r.stderr, "there is no file "+copied) {
		t.Errorf("%+v", r)
	}
	if err := os.WriteFile(copied, []byte("a copy"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := w.run(t.Context(), "restore", copied, "--lane", "sqlite:state.db"); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "--yes") ||
		f.restored != "" {
		t.Errorf("%+v", r)
	}
	if r := w.run(t.Context(), "restore", copied, "--lane", "aws:", "--yes"); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "is not a file") {
		t.Errorf("%+v", r)
	}
	if r := newWorld().run(t.Context(), "restore", copied, "--lane", "sqlite:state.db", "--yes"); r.code != cli.ExitUsage ||
		!strings.Contains(r.stderr, "lane memory is not a file") {
		t.Errorf("%+v", r)
	}
	f.fault = &runlane.Error{Code: runlane.ErrValidationFailed, Message: "state.db is open in another process"}
	if r := w.run(t.Context(), "restore", copied, "--lane", "sqlite:state.db", "--yes"); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "is open") {
		t.Errorf("%+v", r)
	}
}
