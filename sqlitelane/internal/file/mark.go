package file

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// SQLite carries any log next to a file into it, even if it was written for another file. If a copy replaced the file,
// pages of both would be mixed. So the file has an epoch, a random name that changes whenever the file is opened
// without a log. The mark, a small file next to it, names the epochs that the log may lie on. A log on another epoch
// is refused before SQLite reads it.

const (
	// MarkEnding is the suffix of the mark's name.
	MarkEnding = "-mark"
	logEnding  = "-wal"
	// logHead is the size of a log without commits.
	logHead = 32
	// markTries is how often epoch and mark are compared, markPause apart, while another process changes them.
	markTries = 5
	markPause = 10 * time.Millisecond
)

// epochs is the table with the file's epoch.
var epochs = Addition{Name: "epoch", Statements: []string{`CREATE TABLE epoch(name TEXT NOT NULL) STRICT`}}

const selectEpoch = "SELECT name FROM epoch"

// judgeLog refuses the log of another file. It accepts a log that it cannot judge: there may be no mark.
func judgeLog(path string, o *Options) error {
	if o.VFS != "" {
		return nil // its files are elsewhere
	}
	for range markTries {
		if !hasLog(path) {
			return nil
		}
		epoch, known := epochBeneath(path)
		marked := readMark(path)
		if !known || len(marked) == 0 || slices.Contains(marked, epoch) {
			return nil
		}
		time.Sleep(markPause)
	}
	return unusable(nil, "go back to a copy with \"runlane restore COPY\"; if this file is the copy, stop all "+
		"programs that use it, and remove "+path+logEnding+" and "+path+"-shm",
		"%s was replaced: the log beside it, %s, is another file's; nothing was changed", path, path+logEnding)
}

func hasLog(path string) bool {
	info, err := os.Stat(path + logEnding)
	return err == nil && info.Size() > logHead
}

// epochBeneath returns the epoch in the file without its log, "" for none. known is false if its pages cannot be read,
// as while another process carries the log into the file.
func epochBeneath(path string) (epoch string, known bool) {
	c, err := connectTo(path, "mode=ro&immutable=1")
	if err != nil {
		return "", false
	}
	defer func() { _ = c.close() }()
	has, err := epochs.in(c)
	if err != nil || !has {
		return "", err == nil
	}
	epoch, err = epochOf(c)
	return epoch, err == nil
}

func epochOf(c *Conn) (string, error) {
	row, err := c.One(selectEpoch)
	if err != nil || row == nil {
		return "", err
	}
	epoch, _ := row[0].(string)
	return epoch, nil
}

// readMark returns the epochs, one per line, that the log may lie on; nil if there is no mark.
func readMark(path string) (allowed []string) {
	text, err := os.ReadFile(path + MarkEnding)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		allowed = append(allowed, strings.TrimSuffix(line, "\n"))
	}
	return allowed
}

// writeMark replaces the mark durably in one step. It has the mode of the file and, if this process may set it, the
// owner: whoever may write the file has to write the mark.
func writeMark(path string, allowed ...string) (err error) {
	slices.Sort(allowed)
	draft := path + MarkEnding + "." + rand.Text()[:12]
	f, err := os.OpenFile(draft, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil {
		_ = f.Chmod(info.Mode().Perm())
		keepOwner(f, info)
	}
	_, err = f.WriteString(strings.Join(slices.Compact(allowed), "\n") + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	if err := os.Rename(draft, path+MarkEnding); err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	return syncFolder(filepath.Dir(path), &Options{})
}

// mark starts an epoch if the file has no log, and completes a half-finished change. If another process writes
// now or there is no room, the next one does it: the existing mark stays true.
func mark(c *Conn, path string, o *Options) error {
	if o.VFS != "" {
		return nil
	}
	epoch, steady, err := marked(c, path)
	if err != nil || steady {
		return err
	}
	err = renew(c, path, epoch)
	if Busy(err) || noRoom(err) || errors.Is(err, syscall.ENOSPC) {
		return nil
	}
	return err
}

// marked reports whether the mark names only the file's epoch and the file has a log.
func marked(c *Conn, path string) (epoch string, steady bool, err error) {
	epoch, err = epochOf(c)
	return epoch, epoch != "" && hasLog(path) && slices.Equal(readMark(path), []string{epoch}), err
}

// renew starts an epoch or completes its start. The mark names both epochs until the file itself has the new one.
func renew(c *Conn, path, epoch string) error {
	if err := locked(c, func() (err error) {
		if epoch, err = epochOf(c); err != nil {
			return err
		}
		if epoch != "" && hasLog(path) && slices.Contains(readMark(path), epoch) {
			return nil // another process did it
		}
		next, allowed := rand.Text(), []string{epoch}
		if beneath, known := epochBeneath(path); known {
			allowed = append(allowed, beneath)
		}
		if err := writeMark(path, append(allowed, next)...); err != nil {
			return err
		}
		if epoch == "" {
			_, err = c.Exec("INSERT INTO epoch(name) VALUES(?)", next)
		} else {
			_, err = c.Exec("UPDATE epoch SET name = ?", next)
		}
		epoch = next
		return err
	}); err != nil {
		return err
	}
	row, err := c.One("PRAGMA wal_checkpoint(PASSIVE)")
	if err != nil || len(row) < 3 || row[1] != row[2] {
		return err
	}
	return locked(c, func() error {
		if now, err := epochOf(c); err != nil || now != epoch {
			return err
		}
		return writeMark(path, epoch)
	})
}

// locked calls do in a transaction that holds the file's lock.
func locked(c *Conn, do func() error) error {
	if _, err := c.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := do()
	if err == nil {
		_, err = c.Exec("COMMIT")
	}
	if err != nil {
		_, _ = c.Exec("ROLLBACK") // fails if SQLite has rolled back
	}
	return err
}
