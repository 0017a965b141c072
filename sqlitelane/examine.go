package sqlitelane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
)

const (
	// longLog is the size at which something keeps the log from being checkpointed. SQLite checkpoints from 4 MB on
	// and truncates to 64 MB.
	longLog = 256 << 20
	// leastRoom is the free disk space below which Examine warns.
	leastRoom = 256 << 20
)

// ProbeWrite makes a commit that changes nothing, for doctor: it rewrites the file's header.
func (s *Storage) ProbeWrite(ctx context.Context) error {
	if err := embedded.Ended(ctx); err != nil {
		return err
	}
	return s.write(ctx, func(t *tx) error { return t.Exec(fmt.Sprint("PRAGMA user_version=", format)) })
}

// Examine checks, for doctor, the file's format, size, pages and log, the free disk space and the sync mode. [Open]
// has made sure that the file is on a disk of this machine.
func (s *Storage) Examine(ctx context.Context) ([]lane.Finding, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	path := s.path()
	var findings []lane.Finding
	err := s.read(ctx, true, func(c *file.Conn) error {
		about, err := examineHead(c, path)
		if err != nil {
			return err
		}
		pages, err := examinePages(c, path)
		if err != nil {
			return err
		}
		order, err := examineOrder(c)
		findings = []lane.Finding{about, pages, order}
		return err
	})
	if err != nil {
		return nil, err
	}
	return append(findings, examineLog(path), examineRoom(path), s.examineSync()), nil
}

// path returns the absolute path without symbolic links.
func (s *Storage) path() string {
	if target, err := filepath.EvalSymlinks(s.options.Path); err == nil {
		if absolute, err := filepath.Abs(target); err == nil {
			return absolute
		}
	}
	return s.options.Path
}

func examineHead(c *file.Conn, path string) (lane.Finding, error) {
	f := lane.Finding{Check: "file"}
	var numbers []int64
	for _, name := range []string{"user_version", "page_size", "page_count", "freelist_count"} {
		number, err := c.Number("PRAGMA " + name)
		if err != nil {
			return f, err
		}
		numbers = append(numbers, number)
	}
	f.Detail = fmt.Sprintf("%s: format %d, %s, of which %s are free; on a disk of this machine",
		path, numbers[0], megabytes(numbers[1]*numbers[2]), megabytes(numbers[1]*numbers[3]))
	return f, nil
}

func examinePages(c *file.Conn, path string) (lane.Finding, error) {
	f := lane.Finding{Check: "pages of the file"}
	row, err := c.One("PRAGMA quick_check(1)")
	if err != nil {
		return f, err
	}
	switch text, _ := row[0].(string); text {
	case "ok":
		f.Detail = "SQLite finds no fault"
	default:
		f.Detail, f.Broken = path+" is damaged: "+text, true
		f.Fix = "stop all programs that use it, keep a copy, go back to a backup with \"runlane restore COPY\"; " +
			"other pages can be read"
	}
	return f, nil
}

// examineOrder names the ordered queues, which reveals misspelled ones.
func examineOrder(c *file.Conn) (lane.Finding, error) {
	f := lane.Finding{Check: "ordered queues", Detail: "none"}
	names, err := orderedIn(c)
	if len(names) > 0 {
		f.Detail = fmt.Sprintf("%q", names)
	}
	return f, err
}

func examineLog(path string) lane.Finding {
	f := lane.Finding{Check: "log of the file"}
	info, err := os.Stat(path + "-wal")
	if err != nil {
		f.Detail = "there is none"
		return f
	}
	if f.Detail = megabytes(info.Size()); info.Size() >= longLog {
		f.Detail += ": something keeps it from being copied into the file"
		f.Fix = "look for a program that reads the file in one long transaction, like a shell of SQLite"
	}
	return f
}

func examineRoom(path string) lane.Finding {
	f := lane.Finding{Check: "room on the disk"}
	free, known := freeBytes(filepath.Dir(path))
	switch {
	case !known:
		f.Detail = "unknown on this system"
	case free < leastRoom:
		f.Detail, f.Fix = megabytes(free)+" are left", "make room: with a full disk commits fail, and nothing is lost"
	default:
		f.Detail = megabytes(free) + " are left"
	}
	return f
}

func (s *Storage) examineSync() lane.Finding {
	f := lane.Finding{Check: "sync", Detail: "full: a commit that returned survives the loss of power"}
	if s.options.Relaxed {
		f.Detail = "normal: with the power the last commits may be lost"
	}
	return f
}

func megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }
