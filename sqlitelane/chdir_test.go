package sqlitelane_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/sqlitelane"
)

// A relative path is of the folder in which the lane was opened, wherever the process goes before the lane starts.
func TestOpen_RelativePath_AndAnotherFolder(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	t.Chdir(one)
	l, err := sqlitelane.Open(t.Context(), "a.db", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(two)
	rt, err := core.Open(t.Context(), l, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := rt.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(two); err != nil || len(left) > 0 {
		t.Errorf("%v is in the other folder: %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(one, "a.db")); err != nil {
		t.Error(err)
	}
}
