package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// oldest is the first version of SQLite that cannot damage a file which several connections write (its fault of
// resetting the log was in 3.7.0 to 3.51.2).
var oldest = [3]int{3, 51, 3}

// busyMillis is how long a reader waits for a lock, which it needs only while another process opens the file again
// after a crash.
const busyMillis = 5000

// connectWriter opens the file, judges it, and makes its tables where it is empty. Where another process does the same,
// it waits: SQLite gives up at once when two of them begin to keep a log.
func connectWriter(path string, o *Options) (*Conn, error) {
	for deadline, pause := time.Now().Add(lockPatience), time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		c, err := connect(path, o.VFS)
		if err == nil {
			if err = prepareFile(c, path, o); err == nil {
				err = syncFolder(filepath.Dir(path), o)
			}
			if err == nil {
				return c, nil
			}
			err = errors.Join(err, c.close())
		}
		if !Busy(err) || time.Now().After(deadline) {
			return nil, opening(err, path)
		}
		time.Sleep(pause)
	}
}

func prepareFile(c *Conn, path string, o *Options) error {
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
	if err := judgeOwner(c, path, o); err != nil {
		return err
	}
	synchronous := "synchronous=FULL"
	if o.Relaxed {
		synchronous = "synchronous=NORMAL"
	}
	// Where the file is new, its form has to be chosen before the first table is made.
	if err := pragmas(c, "auto_vacuum=INCREMENTAL", synchronous); err != nil {
		return err
	}
	mode, err := c.One("PRAGMA journal_mode=WAL")
	if err != nil {
		return err
	}
	if text, _ := mode[0].(string); text != "wal" {
		return unusable(nil, "use a disk of this machine, and let this user write the folder",
			"%s cannot keep a write-ahead log: its journal mode is %q", path, text)
	}
	// macOS: fsync alone does not reach the disk.
	if err := pragmas(c, "fullfsync=ON", "checkpoint_fullfsync=ON", "journal_size_limit=67108864", "cache_size=-16000",
		"temp_store=MEMORY"); err != nil {
		return err
	}
	return makeTables(c, path, o)
}

// makeTables makes them unless another process just did.
func makeTables(c *Conn, path string, o *Options) error {
	if format, err := c.Number("PRAGMA user_version"); err != nil || format == o.Format {
		return err
	}
	if _, err := c.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := func() error {
		format, err := c.Number("PRAGMA user_version")
		if err != nil || format == o.Format {
			return err
		}
		if err := judgeOwner(c, path, o); err != nil {
			return err
		}
		for _, statement := range o.Schema {
			if _, err := c.Exec(statement); err != nil {
				return err
			}
		}
		return pragmas(c, fmt.Sprint("application_id=", o.Application), fmt.Sprint("user_version=", o.Format))
	}()
	end := "COMMIT"
	if err != nil {
		end = "ROLLBACK"
	}
	_, ended := c.Exec(end)
	return errors.Join(err, ended)
}

// judgeOwner refuses a file that is not ours, or that a newer program wrote.
func judgeOwner(c *Conn, path string, o *Options) error {
	// The tables first: another process makes them and the numbers in one transaction, perhaps just now.
	tables, err := c.Number("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return err
	}
	application, err := c.Number("PRAGMA application_id")
	if err != nil {
		return err
	}
	format, err := c.Number("PRAGMA user_version")
	switch {
	case err != nil:
		return err
	case application == 0 && format == 0 && tables == 0:
		return nil // empty: it becomes ours
	case application != o.Application:
		return unusable(nil, "name another path; nothing was changed", "%s is another program's SQLite file", path)
	case format > o.Format:
		return unusable(nil, "update this program; nothing was changed",
			"%s is of format %d, this program reads up to %d", path, format, o.Format)
	default:
		return nil
	}
}

// connectReader opens a connection for reads. It leaves it to each read to notice a damaged page: cell_size_check looks
// at every cell of a page, whenever the page is read again because of a commit, which cost a fifth of a read in a large
// file. The writer looks.
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

// atLeast compares a version of SQLite.
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

// syncFolder makes it durable that the file is there, and that the journal of making its tables is not: SQLite removes
// that without. A journal that came back with the power would take back everything since.
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
