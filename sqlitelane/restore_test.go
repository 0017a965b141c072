package sqlitelane_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/sqlitelane"
)

// Going back to a copy replaces a file with its log, also one that cannot be opened, and not while anybody uses it.
func TestRestoreTo(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(t *testing.T, k *remains){
		"a file with a log":  func(*testing.T, *remains) {},
		"a replaced file":    func(t *testing.T, k *remains) { t.Helper(); put(t, k.path, k.early) },
		"no file":            func(t *testing.T, k *remains) { t.Helper(); k.path = newPath(t) },
		"no file of SQLite":  func(t *testing.T, k *remains) { t.Helper(); put(t, k.path, strings.Repeat("x", 9000)) },
		"an abandoned empty": func(t *testing.T, k *remains) { t.Helper(); put(t, k.path, "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newRemains(t)
			before(t, &k)
			copied := newPath(t)
			put(t, copied, k.saved)
			if size, err := started(t, copied, 0).RestoreTo(t.Context(), k.path); err != nil || size == 0 {
				t.Fatal(size, err)
			}
			s := started(t, k.path, 0)
			page, err := s.ListRuns(t.Context(), &lane.RunQuery{PageQuery: lane.PageQuery{Environment: "default", Limit: 500}})
			if err != nil || len(page.Items) != 20 {
				t.Errorf("%v, %v", page, err)
			}
			for _, left := range names(t, filepath.Dir(k.path)) {
				if strings.Count(left, ".") > 1 {
					t.Errorf("%s is left", left)
				}
			}
		})
	}
}

// use lets another process write the file until the test ends.
func use(t *testing.T, path string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	user := exec.CommandContext(t.Context(), program)
	user.Env = append(os.Environ(), childVariable+"="+path)
	out, err := user.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := user.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = user.Process.Kill(), user.Wait() })
	if _, err := out.Read(make([]byte, 1)); err != nil { // it has committed something
		t.Fatal(err)
	}
}

// The lock of this process itself does not hinder it: another process has the file open.
func TestRestoreTo_FileThatAnotherProcessUses_IsRefused(t *testing.T) {
	t.Parallel()
	path, copied := newPath(t), withRuns(t, 3)
	use(t, path)
	s := started(t, copied, 0)
	_, err := s.RestoreTo(t.Context(), path)
	if e, ok := errors.AsType[*runlane.Error](err); !ok || e.Code != runlane.ErrValidationFailed || !strings.Contains(e.Message, "open in another process") {
		t.Error(err)
	}
	if _, err = s.RestoreTo(t.Context(), copied); runlane.CodeOf(err) != runlane.ErrValidationFailed {
		t.Error(err)
	}
}

// restoreVariable makes this program a child that goes back to a copy, and dies.
const restoreVariable = "SQLITELANE_TEST_RESTORE"

// restoration is what such a child is to do: to die before the step of this number, counted from 1, or not at all.
type restoration struct {
	Copy, Path string
	Die        int
}

// restoreChild names the steps that it comes to.
func restoreChild(text string) error {
	var r restoration
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	n := 0
	s := sqlitelane.NewSteppedStorage(r.Copy, func(name string) error {
		if n++; n == r.Die {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // nothing is done after this
		}
		_, err := fmt.Println(name)
		return err
	})
	if err := s.Start(context.Background()); err != nil {
		return err
	}
	_, err := s.RestoreTo(context.Background(), r.Path)
	return errors.Join(err, s.Close(context.Background()))
}

// restored lets a child go back to the copy, and returns the steps that it came to the end of.
func restored(t *testing.T, r *restoration) (steps []string) {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), program)
	child.Env = append(os.Environ(), restoreVariable+"="+string(text))
	var faults strings.Builder
	child.Stderr = &faults
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		steps = append(steps, lines.Text())
	}
	if err := child.Wait(); (err != nil) != (r.Die > 0) || faults.Len() > 0 {
		t.Fatalf("%+v: %v %s", r, err, faults.String())
	}
	return steps
}

// oldOrNew fails unless the file is sound, and is the old one with all its commits, or the copy.
func oldOrNew(t *testing.T, k *remains) (isNew bool) {
	t.Helper()
	s := started(t, k.path, 0)
	page, err := s.ListRuns(t.Context(), &lane.RunQuery{PageQuery: lane.PageQuery{Environment: "default", Limit: 500}})
	if err != nil || len(page.Items) != 20 {
		t.Errorf("%v, %v", page, err)
	}
	runs, err := s.GetRuns(t.Context(), &lane.RunsQuery{Environment: later, IDs: k.last})
	if err != nil || len(runs) != len(k.last) && len(runs) != 0 {
		t.Errorf("%d of %d runs that were made after the copy, %v", len(runs), len(k.last), err)
	}
	if fault, err := s.Sound(); fault != "" || err != nil {
		t.Error(fault, err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return len(runs) == 0
}

// saved is a file with the copy that a restore goes back to.
func saved(t *testing.T) (k remains, copied string) {
	t.Helper()
	k, copied = newRemains(t), newPath(t)
	put(t, copied, k.saved)
	return k, copied
}

// A restore that is killed before or after any of its steps leaves the old file with the commits of its log, or the new
// one, and can be done again.
func TestRestoreTo_KilledAtEachStep_LeavesTheOldFileOrTheNewOne(t *testing.T) {
	t.Parallel()
	k, copied := saved(t)
	steps := restored(t, &restoration{Copy: copied, Path: k.path})
	if !oldOrNew(t, &k) || len(steps) < 10 {
		t.Fatalf("the copy is not there after %q", steps)
	}
	renamed := false
	for n := range steps {
		t.Run(fmt.Sprintf("%d before %s", n, steps[n]), func(t *testing.T) {
			t.Parallel()
			k, copied := saved(t)
			r := restoration{Copy: copied, Path: k.path, Die: n + 1}
			if reached := restored(t, &r); len(reached) != n {
				t.Fatalf("it came to %q", reached)
			}
			if isNew := oldOrNew(t, &k); isNew != (steps[n] == "sync") {
				t.Errorf("killed before %q: the file is the new one: %t", steps[n], isNew)
			}
			if restored(t, &restoration{Copy: copied, Path: k.path}); !oldOrNew(t, &k) {
				t.Error("the copy is not there after a second restore")
			}
		})
		renamed = renamed || steps[n] == "rename"
	}
	if !renamed {
		t.Errorf("the steps are %q", steps)
	}
}

// A restore of which a step fails leaves the old file with the commits of its log, and nothing beside it.
func TestRestoreTo_EachStepFails_LeavesTheOldFile(t *testing.T) {
	t.Parallel()
	for _, failing := range []string{
		"make", "move the log", "open", "lock", "keep the rights", "remove the log", "remove the shared memory",
		"remove the journal", "rename",
	} {
		t.Run(failing, func(t *testing.T) {
			t.Parallel()
			k, copied := saved(t)
			s := stepped(t, copied, func(name string) error {
				if name == failing {
					return syscall.EIO
				}
				return nil
			})
			if _, err := s.RestoreTo(t.Context(), k.path); !errors.Is(err, syscall.EIO) {
				t.Fatal(err)
			}
			if oldOrNew(t, &k) {
				t.Error("the file is the new one")
			}
			for _, left := range names(t, filepath.Dir(k.path)) {
				if strings.Count(left, ".") > 1 {
					t.Errorf("%s is left", left)
				}
			}
		})
	}
}

func stepped(t *testing.T, path string, step func(name string) error) *sqlitelane.Storage {
	t.Helper()
	s := sqlitelane.NewSteppedStorage(path, step)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// A file that was used or replaced between the moves of its log and its lock is left alone.
func TestRestoreTo_FileThatIsUsedMeanwhile_IsRefused(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(t *testing.T, k *remains, log, copied string){
		"it has a log again": func(t *testing.T, k *remains, log, _ string) {
			t.Helper()
			put(t, k.path+"-wal", log)
		},
		"another restore": func(t *testing.T, k *remains, _, copied string) {
			t.Helper()
			restored(t, &restoration{Copy: copied, Path: k.path})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, copied := saved(t)
			log, other := content(t, k.path+"-wal"), newPath(t)
			put(t, other, k.saved)
			var want os.FileInfo
			s := stepped(t, copied, func(name string) (err error) {
				if name == "lock" {
					meanwhile(t, &k, log, other)
					want, err = os.Stat(k.path)
				}
				return err
			})
			_, err := s.RestoreTo(t.Context(), k.path)
			if runlane.CodeOf(err) != runlane.ErrValidationFailed || !strings.Contains(fmt.Sprint(err), "open in another process") {
				t.Error(err)
			}
			if now, err := os.Stat(k.path); err != nil || !os.SameFile(now, want) {
				t.Error("the file was replaced", err)
			}
		})
	}
}

// A program that was stopped between opening the file and its first lock goes on with the file that is there now.
func TestOpen_FileThatIsReplacedBeforeTheFirstLock_IsOpenedAgain(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(t *testing.T, k *remains, copied string){
		"restored": func(t *testing.T, k *remains, copied string) {
			t.Helper()
			restored(t, &restoration{Copy: copied, Path: k.path})
		},
		"restored, and used": func(t *testing.T, k *remains, copied string) {
			t.Helper()
			restored(t, &restoration{Copy: copied, Path: k.path})
			use(t, k.path)
		},
		"removed": func(t *testing.T, k *remains, _ string) {
			t.Helper()
			for _, ending := range []string{"", "-wal", "-mark"} {
				if err := os.Remove(k.path + ending); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, copied := saved(t)
			opened := 0
			s := stepped(t, k.path, func(string) error {
				if opened++; opened == 1 {
					replace(t, &k, copied)
				}
				return nil
			})
			if opened != 2 {
				t.Errorf("opened %d times", opened)
			}
			f := lanetest.NewFactory("after")
			c := f.Creation(t, noon, lanetest.RunOptions{})
			if _, err := s.AppendRunEvents(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			s = started(t, k.path, 0)
			runs, err := s.GetRuns(t.Context(), &lane.RunsQuery{Environment: "after", IDs: []runlane.RunID{c.Projected.ID}})
			if err != nil || len(runs) != 1 {
				t.Errorf("the run that was acknowledged: %v, %v", runs, err)
			}
			if fault, err := s.Sound(); fault != "" || err != nil {
				t.Error(fault, err)
			}
			if info, err := os.Stat(k.path); err != nil || info.Mode().Perm() != 0o600 {
				t.Error(info, err)
			}
		})
	}
}

// The file keeps the rights and, where the process may, the owner that it had.
func TestRestoreTo_KeepsTheRights(t *testing.T) {
	t.Parallel()
	k, copied := saved(t)
	if err := os.Chmod(k.path, 0o660); err != nil { // a group shares the file
		t.Fatal(err)
	}
	const other = 65534
	if os.Getuid() == 0 {
		if err := os.Chown(k.path, other, other); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.Stat(k.path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := started(t, copied, 0).RestoreTo(t.Context(), k.path); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(k.path)
	if err != nil {
		t.Fatal(err)
	}
	was, is := before.Sys().(*syscall.Stat_t), after.Sys().(*syscall.Stat_t)
	if after.Mode() != before.Mode() || is.Uid != was.Uid || is.Gid != was.Gid || is.Ino == was.Ino {
		t.Errorf("%v of %d:%d, was %v of %d:%d", after.Mode(), is.Uid, is.Gid, before.Mode(), was.Uid, was.Gid)
	}
}
