package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runlane/runlane-go/sqlitelane/internal/gather"
)

// oldest is the first version of SQLite that cannot damage a file with several writing connections (bug of resetting
// the WAL in 3.7.0 to 3.51.2).
var oldest = [3]int{3, 51, 3}

// busyMillis is how long a reader waits for a lock. It needs one only while another process recovers the file after a
// crash.
const busyMillis = 5000

const (
	// longestLog is the checkpoint size in pages: 16 MB. A checkpoint costs two syncs and scattered writes, and
	// SQLite's index of the log finds a page among that many in one step.
	longestLog = 4000
	// longestUnsynced is longestLog if only checkpoints sync the log: a loss of power loses its commits.
	longestUnsynced = 1000
)

// connectWriter opens and checks the file, and creates its tables if it is empty. If another process does the same, it
// waits: SQLite fails at once when two processes enable WAL. If the file was replaced meanwhile, it opens the new one.
func connectWriter(path string, o *Options) (*Conn, place, error) {
	for deadline, pause := time.Now().Add(lockPatience), time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if err := makePrivate(path, o); err != nil {
			return nil, place{}, err
		}
		if err := judgeLog(path, o); err != nil {
			return nil, place{}, err
		}
		c, where, err := connectAt(path, o)
		replaced := errors.Is(err, errMoved)
		switch {
		case err == nil:
			return c, where, nil
		case !time.Now().After(deadline) && (replaced || Busy(err)):
			time.Sleep(pause)
		case replaced:
			return nil, place{}, moved(err, path)
		default:
			return nil, place{}, opening(err, path)
		}
	}
}

func moved(cause error, path string) error {
	return unusable(cause, "find the program that moves it", "%s was moved while it was opened", path)
}

// connectAt opens the file once and returns which file that was.
func connectAt(path string, o *Options) (c *Conn, where place, err error) {
	if where, err = placeOf(path, o); err != nil {
		return nil, where, err
	}
	defer where.release()
	defer func() {
		if err != nil {
			where.use.end()
		}
	}()
	vfs, err := gather.Before(o.VFS)
	if err != nil {
		return nil, where, err
	}
	if c, err = connect(path, vfs); err != nil {
		return nil, where, err
	}
	if err = o.step("lock the opened file"); err == nil {
		err = prepareFile(c, &where, o)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(path), o)
	}
	if err == nil {
		err = mark(c, path, o)
	}
	if err != nil {
		return nil, where, errors.Join(where.judgeOpened(), err, c.close())
	}
	return c, where, nil
}

func prepareFile(c *Conn, where *place, o *Options) error {
	path := where.path
	version, err := c.One("SELECT sqlite_version()")
	if err != nil {
		return err
	}
	if text, _ := version[0].(string); !atLeast(text, oldest) {
		return unusable(nil, "require modernc.org/sqlite v1.61.1 or newer",
			"SQLite %s can damage a file that several processes write", text)
	}
	if err := pragmas(c, "busy_timeout=0", "trusted_schema=OFF", "cell_size_check=ON"); err != nil {
		return err
	}
	empty, err := judgeOwner(c, path, o)
	if err != nil {
		return err
	}
	synchronous, checkpoint := "synchronous=FULL", longestLog
	if o.Relaxed {
		synchronous, checkpoint = "synchronous=NORMAL", longestUnsynced
	}
	if err := pragmas(c, synchronous, fmt.Sprint("wal_autocheckpoint=", checkpoint)); err != nil {
		return err
	}
	if empty { // must precede the first table; setting it again would be a write
		if err := pragmas(c, "auto_vacuum=INCREMENTAL"); err != nil {
			return err
		}
	}
	mode, err := c.One("PRAGMA journal_mode=WAL")
	if err != nil {
		return err
	}
	if text, _ := mode[0].(string); text != "wal" {
		return unusable(nil, "use a disk of this machine, and let this user write the folder",
			"%s cannot keep a write-ahead log: its journal mode is %q", path, text)
	}
	if err := where.judgeOpened(); err != nil { // a file with a WAL stays locked while it is open
		return err
	}
	// macOS: fsync alone does not reach the disk.
	if err := pragmas(c, "fullfsync=ON", "checkpoint_fullfsync=ON", "journal_size_limit=67108864", "cache_size=-16000",
		"temp_store=MEMORY"); err != nil {
		return err
	}
	return makeTables(c, path, o)
}

// makeTables creates missing tables and additions, unless another process just did.
func makeTables(c *Conn, path string, o *Options) error {
	if whole, err := isWhole(c, o); err != nil || whole {
		return err
	}
	return locked(c, func() error {
		if err := makeFirstTables(c, path, o); err != nil {
			return err
		}
		for _, a := range o.additions() {
			has, err := a.in(c)
			if err == nil && !has {
				err = statements(c, a.Statements)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func isWhole(c *Conn, o *Options) (bool, error) {
	format, err := c.Number("PRAGMA user_version")
	if err != nil || format != o.Format {
		return false, err
	}
	for _, a := range o.additions() {
		if has, err := a.in(c); err != nil || !has {
			return false, err
		}
	}
	return true, nil
}

// additions returns the additions of the schema and of this package.
func (o *Options) additions() []Addition { return append(slices.Clip(o.Schema.Additions), epochs) }

func (a *Addition) in(c *Conn) (bool, error) {
	n, err := c.Number("SELECT count(*) FROM sqlite_schema WHERE name = ?", a.Name)
	return n > 0, err
}

func makeFirstTables(c *Conn, path string, o *Options) error {
	format, err := c.Number("PRAGMA user_version")
	if err != nil || format == o.Format {
		return err
	}
	if _, err := judgeOwner(c, path, o); err != nil {
		return err
	}
	if err := statements(c, o.Schema.Tables); err != nil {
		return err
	}
	return pragmas(c, fmt.Sprint("application_id=", o.Application), fmt.Sprint("user_version=", o.Format))
}

func statements(c *Conn, texts []string) error {
	for _, text := range texts {
		if _, err := c.Exec(text); err != nil {
			return err
		}
	}
	return nil
}

// judgeOwner refuses another program's file and a newer format. It accepts an empty file.
func judgeOwner(c *Conn, path string, o *Options) (empty bool, err error) {
	// Tables first: another process may be creating them and the numbers in one transaction.
	tables, err := c.Number("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return false, err
	}
	application, err := c.Number("PRAGMA application_id")
	if err != nil {
		return false, err
	}
	format, err := c.Number("PRAGMA user_version")
	switch {
	case err != nil:
		return false, err
	case application == 0 && format == 0 && tables == 0:
		return true, nil
	case application != o.Application:
		return false, unusable(nil, "name another path; nothing was changed",
			"%s is another program's SQLite file", path)
	case format > o.Format:
		return false, unusable(nil, "update this program; nothing was changed",
			"%s is of format %d, this program reads up to %d", path, format, o.Format)
	default:
		return false, nil
	}
}

// connectReader opens a connection for reads without cell_size_check. That checks all cells of a page each time the
// page is read again after a commit, a fifth of a read's time in a large file. The writer checks.
func connectReader(path string, o *Options) (*Conn, error) {
	c, err := connect(path, o.VFS)
	if err != nil {
		return nil, err
	}
	err = pragmas(c, fmt.Sprint("busy_timeout=", busyMillis), "trusted_schema=OFF",
		"query_only=ON", "temp_store=MEMORY")
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func pragmas(c *Conn, settings ...string) error {
	for _, setting := range settings {
		if _, err := c.Exec("PRAGMA " + setting); err != nil {
			return err
		}
	}
	return nil
}

func atLeast(version string, least [3]int) bool {
	parts := strings.Split(version, ".")
	for i, want := range least {
		have := 0
		if i < len(parts) {
			have, _ = strconv.Atoi(parts[i])
		}
		if have != want {
			return have > want
		}
	}
	return true
}

// syncFolder makes two things durable: the file's name, and the removal of the journal that created its tables. SQLite
// does not sync that removal; a journal that reappeared after a loss of power would roll back everything since.
func syncFolder(folder string, o *Options) error {
	if o.Synced != nil {
		defer o.Synced()
	}
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !os.IsPermission(err) {
		return err
	}
	return nil
}
