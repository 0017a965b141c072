package file

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
)

// of is o as a process of the kernel has it.
func of(kernel string, o *Options) *Options {
	other := *o
	other.Deaf = true
	other.Host = func() Host { return Host{ID: kernel, Name: "machine " + kernel} }
	return &other
}

func insert(t *testing.T, f *File) error {
	t.Helper()
	return f.Write(t.Context(), func(tx *Tx) error { return tx.Exec("INSERT INTO t(x) VALUES('x')") })
}

// snapshot is the content of all files beside and of the file, but for the memory that its processes share.
func snapshot(t *testing.T, path string) map[string]string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, name := range all {
		if !strings.HasSuffix(name, "-shm") {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			found[filepath.Base(name)] = string(b)
		}
	}
	return found
}

// refusedBy wants the error of a file that another kernel has.
func refusedBy(t *testing.T, kernel string, err error, code runlane.ErrorCode) {
	t.Helper()
	e, ok := errors.AsType[*runlane.Error](err)
	if !ok || e.Code != code || e.Hint == "" || !strings.Contains(e.Message, "machine "+kernel) {
		t.Errorf("%+v", err)
	}
}

// remains are the files of a process that was killed, in another folder, as its kernel left them.
func remains(t *testing.T, o *Options) *Options {
	t.Helper()
	f := openFile(t, o)
	if err := insert(t, f); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, text := range snapshot(t, o.Path) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	left := *o
	left.Path = filepath.Join(folder, filepath.Base(o.Path))
	return &left
}

func claimOf(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path + ClaimEnding)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(b)
}

func setClaim(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+ClaimEnding, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOpen_AnotherHostHasIt_IsRefusedBeforeAnythingIsWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := options(t)
		f := openFile(t, of("a", o))
		if err := insert(t, f); err != nil {
			t.Fatal(err)
		}
		before, began := snapshot(t, o.Path), time.Now()
		_, err := Open(of("b", o))
		refusedBy(t, "a", err, runlane.ErrConfigurationInvalid)
		if waited := time.Since(began); waited > 2*claimLook {
			t.Error("the answer took", waited)
		}
		now := snapshot(t, o.Path)
		for name, text := range before {
			if now[name] != text {
				t.Errorf("%s was changed", name)
			}
		}
		if len(now) != len(before) {
			t.Error("there are other files")
		}
		if err := insert(t, f); err != nil {
			t.Error("the first host cannot go on:", err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		openFile(t, of("b", o)) // at once: the claim has gone with the last process
	})
}

// A kernel that ended answers nothing, and its file is taken: by several processes of the next one, too.
func TestOpen_HostThatHadItHasEnded_WaitsAndTakesIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		left := remains(t, of("a", options(t)))
		began := time.Now()
		opened := make(chan error)
		for range 3 {
			go func() { // ends with its send
				f, err := Open(of("b", left))
				if err == nil {
					t.Cleanup(func() { _ = f.Close() })
				}
				opened <- err
			}()
		}
		for range 3 {
			if err := <-opened; err != nil {
				t.Error(err)
			}
		}
		if waited := time.Since(began); waited < claimPatience || waited > claimPatience+claimLook {
			t.Error("it waited", waited)
		}
		again := time.Now()
		f := openFile(t, of("b", left))
		if n, err := f.writer.conn.Number("SELECT count(*) FROM t"); err != nil || n != 1 {
			t.Errorf("%d rows, %v", n, err)
		}
		if waited := time.Since(again); waited > claimPause {
			t.Error("the next process waited", waited)
		}
		if text := claimOf(t, left.Path); text != "has\nb\nmachine b\n" {
			t.Errorf("the claim is %q", text)
		}
	})
}

// Of two kernels that ask for the file of a third, which has ended, one gets it.
func TestOpen_TwoHostsAskForAFile_OneGetsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		left := remains(t, of("a", options(t)))
		first := make(chan error)
		go func() { // ends with its send
			_, err := Open(of("b", left))
			first <- err
		}()
		time.Sleep(claimPatience / 2)
		second := make(chan error)
		go func() { // ends with its send
			f, err := Open(of("c", left))
			if err == nil {
				err = f.Close()
			}
			second <- err
		}()
		refusedBy(t, "c", <-first, runlane.ErrConfigurationInvalid)
		if err := <-second; err != nil {
			t.Error(err)
		}
	})
}

// A process that was stopped for longer than another kernel waits notices before it writes.
func TestWrite_AnotherHostTookTheFile_IsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := options(t)
		f := openFile(t, of("a", o))
		setClaim(t, o.Path, "has\nb\nmachine b\n")
		time.Sleep(2 * claimLook)
		for range 2 {
			err := insert(t, f)
			refusedBy(t, "b", err, runlane.ErrStorageUnavailable)
			if e, ok := errors.AsType[*runlane.Error](err); !ok || e.Meta[outcome] != notCommitted {
				t.Error(err)
			}
			setClaim(t, o.Path, "has\na\nmachine a\n") // comes too late: what is remembered of the file may not hold
			time.Sleep(2 * claimLook)
		}
	})
}

func TestOpen_TwoHostsFindNoClaim_OneOfThemNotices(t *testing.T) {
	t.Parallel()
	o := options(t)
	first := of("a", o)
	first.Step = func(string) error {
		setClaim(t, o.Path, "has\nb\nmachine b\n")
		return nil
	}
	_, err := Open(first)
	refusedBy(t, "b", err, runlane.ErrStorageUnavailable)
}

func TestClose_LastProcessOfTheHost_RemovesTheClaim(t *testing.T) {
	t.Parallel()
	o := options(t)
	first, second := openFile(t, of("a", o)), openFile(t, of("a", o))
	for _, f := range []*File{first, second} {
		if claimOf(t, o.Path) == "" {
			t.Error("an open file has no claim")
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if text := claimOf(t, o.Path); text != "" {
		t.Errorf("left is %q", text)
	}
}

// A claim that is removed or torn comes back, and a question of a process that has died is answered.
func TestWatch_PutsTheClaimBack(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"none": "", "torn": "has\n", "a question": "asks\nb\nmachine b\n", "its own question": "asks\na\nmachine a\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := options(t)
				openFile(t, of("a", o))
				setClaim(t, o.Path, text)
				time.Sleep(2 * claimLook)
				if now := claimOf(t, o.Path); now != "has\na\nmachine a\n" {
					t.Errorf("the claim is %q", now)
				}
			})
		})
	}
}

func TestOpen_NothingIsClaimed(t *testing.T) {
	t.Parallel()
	o := options(t)
	openFile(t, of("", o))
	if text := claimOf(t, o.Path); text != "" {
		t.Errorf("a host that is not known claims %q", text)
	}
	theirs := of("a", options(t))
	if err := os.WriteFile(theirs.Path, []byte(strings.Repeat("no database\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(theirs); runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
		t.Error(err)
	}
	if text := claimOf(t, theirs.Path); text != "" {
		t.Errorf("beside a file that is refused lies %q", text)
	}
}

func TestReplace_AnotherHostHasTheFile_IsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := options(t)
		openFile(t, of("a", o))
		refusedBy(t, "a", Replace(o.Path, o.Path+".draft", of("b", o)), runlane.ErrConfigurationInvalid)
	})
}

// The system's name of a kernel is that of another process of it.
func TestSystemHost_IsKnown(t *testing.T) {
	t.Parallel()
	if h := systemHost(); h != systemHost() || strings.ContainsAny(h.ID, " \n") {
		t.Errorf("%+v", h)
	}
}
