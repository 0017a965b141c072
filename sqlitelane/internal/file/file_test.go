package file

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
)

func options(t *testing.T) *Options {
	t.Helper()
	return &Options{
		Path: filepath.Join(t.TempDir(), "a b?%#.db"), Schema: Schema{Tables: []string{"CREATE TABLE t(n INTEGER PRIMARY KEY, x TEXT)"}},
		Application: 7, Format: 1, Readers: 1,
	}
}

func openFile(t *testing.T, o *Options) *File {
	t.Helper()
	f, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func TestOpen_AnyNameOfAFile(t *testing.T) {
	t.Parallel()
	o := options(t)
	openFile(t, o)
	if _, err := os.Stat(o.Path); err != nil {
		t.Fatal(err)
	}
}

func TestOpen_SetsWhatDurabilityNeeds(t *testing.T) {
	t.Parallel()
	o := options(t)
	f := openFile(t, o)
	for pragma, want := range map[string]int64{"synchronous": 2, "auto_vacuum": 2, "application_id": 7, "user_version": 1} {
		if got, err := f.writer.conn.Number("PRAGMA " + pragma); err != nil || got != want {
			t.Errorf("%s is %d, want %d (%v)", pragma, got, want, err)
		}
	}
	mode, err := f.writer.conn.One("PRAGMA journal_mode")
	if err != nil || mode[0] != "wal" {
		t.Error(mode, err)
	}
	relaxed := options(t)
	relaxed.Relaxed = true
	if got, err := openFile(t, relaxed).writer.conn.Number("PRAGMA synchronous"); err != nil || got != 1 {
		t.Errorf("synchronous is %d, want 1 (%v)", got, err)
	}
}

// A reader's connection refuses writes, with the error that a read-only file would give.
func TestRead_CannotWrite(t *testing.T) {
	t.Parallel()
	f := openFile(t, options(t))
	err := f.Read(t.Context(), func(c *Conn) error {
		_, err := c.Exec("INSERT INTO t(x) VALUES('x')")
		return err
	})
	e, ok := errors.AsType[*runlane.Error](err)
	if !ok || e.Code != runlane.ErrStorageUnavailable || !strings.Contains(e.Message, "cannot be written") {
		t.Fatal(err)
	}
	if e, ok = errors.AsType[*runlane.Error](opening(e.Cause, "p")); !ok || e.Code != runlane.ErrConfigurationInvalid {
		t.Fatal(e)
	}
}

// One command of a batch fails after it wrote: its writes are taken back, and the others are carried out.
func TestWrite_ACommandThatFailsAfterAWriteTakesNoOtherAlong(t *testing.T) {
	t.Parallel()
	f := openFile(t, options(t))
	fault := errors.New("half done")
	todo := make([]*job, 5)
	forgotten, told := 0, map[int]int{}
	f.Remember(func() { forgotten++ })
	for n := range todo {
		todo[n] = &job{done: make(chan error, 1), run: func(tx *Tx) error {
			tx.After(func(committed bool) {
				if committed {
					told[n]++
				}
			})
			if err := tx.Exec("INSERT INTO t(x) VALUES(?)", string(rune('a'+n))); err != nil {
				return err
			}
			if n == 2 {
				return fault
			}
			return nil
		}}
	}
	f.writer.settle(slices.Clone(todo))
	for n, j := range todo {
		if err := <-j.done; (n == 2) != errors.Is(err, fault) {
			t.Errorf("command %d: %v", n, err)
		}
		if want := map[bool]int{true: 0, false: 1}[n == 2]; told[n] != want {
			t.Errorf("command %d was told %d times that it is durable", n, told[n])
		}
	}
	if forgotten == 0 {
		t.Error("what is remembered was not forgotten")
	}
	row, err := f.writer.conn.One("SELECT group_concat(x, '') FROM t")
	if err != nil || row[0] != "abde" {
		t.Fatal(row, err)
	}
}

func TestWrite_EndedContextsAndClosedFiles(t *testing.T) {
	t.Parallel()
	f, err := Open(options(t))
	if err != nil {
		t.Fatal(err)
	}
	f.Later(func(tx *Tx) error { return tx.Exec("INSERT INTO t(x) VALUES('later')") })
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	nothing := func(*Tx) error { t.Error("it is called"); return nil }
	if err := f.Write(t.Context(), nothing); runlane.CodeOf(err) != runlane.ErrStorageUnavailable {
		t.Error(err)
	}
	if err := f.Read(t.Context(), func(*Conn) error { t.Error("it is called"); return nil }); runlane.CodeOf(err) != runlane.ErrStorageUnavailable {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	again := openFile(t, &Options{Path: f.path, Application: 7, Format: 1, Readers: 1})
	if n, err := again.writer.conn.Number("SELECT count(*) FROM t"); err != nil || n != 1 {
		t.Errorf("what was to be done later is there %d times: %v", n, err)
	}
	for range 50 {
		if err := again.Write(ctx, func(*Tx) error { return nil }); err != nil && runlane.CodeOf(err) != runlane.ErrOperationCancelled {
			t.Fatal(err)
		}
	}
}

// The caller that has the turn carries out what others wait for. One that gives up meanwhile is passed over.
func TestWrite_OneCallerCarriesOutWhatOthersWaitFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := options(t)
		o.Deaf = true
		f := openFile(t, o)
		insert := func(tx *Tx) error { return tx.Exec("INSERT INTO t(x) VALUES('x')") }
		if err := f.Write(t.Context(), insert); err != nil {
			t.Fatal(err)
		}
		f.writer.turn <- struct{}{} // another is at work
		const callers = 2*mostInBatch + 10
		ended := make(chan error, callers)
		for range callers {
			go func() { ended <- f.Write(t.Context(), insert) }()
		}
		given, cancel := context.WithCancel(t.Context())
		up := make(chan error, 1)
		go func() {
			up <- f.Write(given, func(*Tx) error { t.Error("it was given up"); return nil })
		}()
		synctest.Wait()
		cancel()
		if err := <-up; runlane.CodeOf(err) != runlane.ErrOperationCancelled {
			t.Error(err)
		}
		before := f.writer.version
		<-f.writer.turn
		for range callers {
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
		}
		if commits := f.writer.version - before; commits > 4 {
			t.Errorf("%d commands took %d commits", callers, commits)
		}
	})
}

// A caller may survive the panic of its command, as a server's handler does. Those that were in its batch are told, and
// the next ones are carried out.
func TestWrite_ACommandThatPanicsHoldsNoOtherUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := options(t)
		o.Deaf = true
		f := openFile(t, o)
		f.writer.turn <- struct{}{}
		type end struct {
			err      error
			panicked any
		}
		ends := make(chan end, 2)
		for n := range 2 {
			go func() {
				e := end{}
				defer func() {
					e.panicked = recover()
					ends <- e
				}()
				e.err = f.Write(t.Context(), func(tx *Tx) error {
					if n == 1 {
						panic("a fault")
					}
					return tx.Exec("INSERT INTO t(x) VALUES('x')")
				})
			}()
		}
		synctest.Wait()
		<-f.writer.turn
		panics := 0
		for range 2 {
			e := <-ends
			if e.panicked != nil {
				panics++
			} else if runlane.CodeOf(e.err) != runlane.ErrStorageUnavailable {
				t.Error(e.err)
			}
		}
		if panics != 1 {
			t.Error(panics, "callers panicked")
		}
		if err := f.Write(t.Context(), func(tx *Tx) error { return tx.Exec("INSERT INTO t(x) VALUES('y')") }); err != nil {
			t.Fatal(err)
		}
		row, err := f.writer.conn.One("SELECT group_concat(x, '') FROM t")
		if err != nil || row[0] != "y" {
			t.Fatal(row, err)
		}
	})
}

func TestAtLeast_ComparesVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"3.51.3": true, "3.51.2": false, "3.52": true, "4": true, "3.9.99": false, "": false, "3.51.x": false, "3.100.0": true,
	} {
		if got := atLeast(version, oldest); got != want {
			t.Errorf("%q is new enough: %t", version, got)
		}
	}
}

// A process that keeps the lock makes others wait ten seconds, of virtual time here, and then say so. They go on when it
// lets go.
func TestWrite_AnotherKeepsTheLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := options(t)
		o.Deaf = true
		f := openFile(t, o)
		other, err := connect(f.path, "")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = other.close() }()
		if _, err := other.Exec("BEGIN IMMEDIATE"); err != nil {
			t.Fatal(err)
		}
		write := func() error {
			return f.Write(t.Context(), func(tx *Tx) error { return tx.Exec("INSERT INTO t(x) VALUES('x')") })
		}
		began := time.Now()
		e, ok := errors.AsType[*runlane.Error](write())
		if !ok || e.Code != runlane.ErrStorageUnavailable || !e.Retryable || e.Hint == "" || e.Meta[outcome] != notCommitted ||
			!strings.Contains(e.Message, "holds the lock") {
			t.Fatalf("%+v", e)
		}
		if waited := time.Since(began); waited < lockPatience || waited > lockPatience+time.Second {
			t.Error("it waited", waited)
		}
		if _, err := other.Exec("COMMIT"); err != nil {
			t.Fatal(err)
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
	})
}
