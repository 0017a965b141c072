package sqlitelane_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/sqlitelane"
)

// Each name of a file has a log of its name: processes that used two of them would lose each other's commits.
func TestOpen_FileWithTwoNames_IsRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path, other := filepath.Join(folder, "runlane.db"), filepath.Join(folder, "other.db")
	if _, err := sqlitelane.Open(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(path, other); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, other} {
		_, err := sqlitelane.Open(t.Context(), name, nil)
		if runlane.CodeOf(err) != runlane.ErrConfigurationInvalid || !strings.Contains(err.Error(), "has another name") {
			t.Errorf("%s: %v", filepath.Base(name), err)
		}
	}
}

// SQLite follows a symbolic link, and so do the folder that is judged and the one that is synced.
func TestOpen_SymbolicLink_IsFollowed(t *testing.T) {
	t.Parallel()
	folder, links := t.TempDir(), t.TempDir()
	link := filepath.Join(links, "runlane.db")
	if err := os.Symlink(filepath.Join(folder, "real.db"), link); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the file is made, then opened
		if _, err := sqlitelane.Open(t.Context(), link, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "real.db")); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(links)
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the link: %v, %v", entries, err)
	}
	if err := os.Remove(filepath.Join(folder, "real.db")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(folder); err == nil {
		if _, err := sqlitelane.Open(t.Context(), link, nil); err == nil {
			t.Error("a link into a folder that is gone is opened")
		}
	}
}
