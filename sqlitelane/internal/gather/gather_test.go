package gather_test

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	_ "modernc.org/sqlite" // the driver

	"github.com/runlane/runlane-go/sqlitelane/internal/gather"
	"github.com/runlane/runlane-go/sqlitelane/internal/powerloss"
)

// conn is one connection to a file.
type conn struct {
	t  *testing.T
	db *sql.DB
}

// opened opens a file by a file system, with its cache so small that a large transaction writes before its end.
func opened(t *testing.T, path, vfs, synchronous string) *conn {
	t.Helper()
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: url.Values{
		"vfs": {vfs},
		"_pragma": {
			"busy_timeout(5000)", "journal_mode(wal)", "synchronous(" + synchronous + ")", "cache_size(10)",
			"cache_spill(10)", "wal_autocheckpoint(0)",
		},
	}.Encode()}).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	return &conn{t, db}
}

func (c *conn) try(text string, arguments ...any) error {
	_, err := c.db.ExecContext(c.t.Context(), text, arguments...)
	return err
}

func (c *conn) exec(text string, arguments ...any) {
	c.t.Helper()
	if err := c.try(text, arguments...); err != nil {
		c.t.Fatalf("%s: %v", text, err)
	}
}

// fill changes so many rows, of about a page each.
func (c *conn) fill(rows int, with string) {
	c.t.Helper()
	c.exec(`WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < ?)
		INSERT INTO rows(id, text) SELECT i, ? || printf('%03000d', i) FROM c WHERE true
		ON CONFLICT(id) DO UPDATE SET text = excluded.text`, rows, with)
}

// holds checks that the file is whole, and has so many rows that begin with something.
func (c *conn) holds(rows int, with string) {
	c.t.Helper()
	var whole string
	if err := c.db.QueryRowContext(c.t.Context(), "PRAGMA integrity_check").Scan(&whole); err != nil || whole != "ok" {
		c.t.Fatalf("integrity_check: %s, %v", whole, err)
	}
	var n int
	err := c.db.QueryRowContext(c.t.Context(), "SELECT count(*) FROM rows WHERE text LIKE ? || '0%'", with).Scan(&n)
	if err != nil || n != rows {
		c.t.Fatalf("%d rows of %q, %v; want %d", n, with, err, rows)
	}
}

// recovered is the file as who finds it without the memory that its processes share: the log's sums say how far it goes.
func (c *conn) recovered(disk *powerloss.Disk, path string) *conn {
	c.t.Helper()
	to := filepath.Join(c.t.TempDir(), "copy.db")
	for _, ending := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + ending)
		if err == nil {
			err = os.WriteFile(to+ending, b, 0o600)
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
	return opened(c.t, to, disk.VFS, "full")
}

// onDisk is a file on a disk, by a connection that gathers.
func onDisk(t *testing.T, synchronous string) (disk *powerloss.Disk, c *conn, path string) {
	t.Helper()
	disk, err := powerloss.NewDisk()
	if err != nil {
		t.Fatal(err)
	}
	vfs, err := gather.Before(disk.VFS)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "rows.db")
	c = opened(t, path, vfs, synchronous)
	c.exec("CREATE TABLE rows(id INTEGER PRIMARY KEY, text TEXT NOT NULL)")
	return disk, c, path
}

func TestCommit_IsOneWrite(t *testing.T) {
	for _, synchronous := range []string{"full", "normal"} {
		t.Run(synchronous, func(t *testing.T) {
			disk, c, path := onDisk(t, synchronous)
			c.fill(5, "a")
			for n := range 3 {
				before := disk.Writes()
				c.fill(5, fmt.Sprint("b", n))
				if n := disk.Writes() - before; n != 1 {
					t.Errorf("a commit was %d writes, want 1", n)
				}
			}
			opened(t, path, disk.VFS, synchronous).holds(5, "b2")
			c.recovered(disk, path).holds(5, "b2")
		})
	}
}

func TestCommit_LargerThanWhatIsKept_IsWhole(t *testing.T) {
	for _, synchronous := range []string{"full", "normal"} {
		for _, rows := range []int{25, 200} { // that are held when they are read, and not
			t.Run(fmt.Sprint(synchronous, rows), func(t *testing.T) {
				disk, c, path := onDisk(t, synchronous)
				c.exec("BEGIN")
				c.fill(rows, "a")
				c.holds(rows, "a")
				c.fill(rows, "b") // pages that the log has already
				c.exec("SAVEPOINT s")
				c.fill(rows, "c")
				c.exec("ROLLBACK TO s")
				c.holds(rows, "b")
				c.exec("COMMIT")
				opened(t, path, disk.VFS, synchronous).holds(rows, "b")
				c.recovered(disk, path).holds(rows, "b")
			})
		}
	}
}

func TestRollback_NothingOfItIsWrittenOverAnothersCommit(t *testing.T) {
	disk, c, path := onDisk(t, "normal")
	c.fill(50, "a")
	other := opened(t, path, disk.VFS, "normal")
	for rows := 1; rows < 40; rows++ { // some end in the middle of what is held
		with := fmt.Sprint("b", rows)
		other.exec("PRAGMA wal_checkpoint(TRUNCATE)") // so that to take back reads nothing of the log
		c.exec("BEGIN")
		c.fill(50+rows, "taken back")
		c.exec("ROLLBACK")
		other.fill(50, with)
		c.holds(50, with)
		c.fill(1, "c")
		other.holds(1, "c")
		other.holds(49, with)
	}
	c.recovered(disk, path).holds(1, "c")
}

func TestCommit_TurnsWithAnother_AndARestartedLog_AreWhole(t *testing.T) {
	disk, c, path := onDisk(t, "full")
	other := opened(t, path, disk.VFS, "full")
	for n := range 20 {
		with := fmt.Sprint("t", n)
		c.fill(10, with)
		other.holds(10, with)
		other.fill(7, "o")
		c.holds(7, "o")
		if n%5 == 4 {
			c.exec("PRAGMA wal_checkpoint(PASSIVE)")
		}
	}
	c.recovered(disk, path).holds(7, "o")
}

func TestCommit_DiskRefuses_IsAnErrorAndIsTakenBack(t *testing.T) {
	for _, rows := range []int{3, 200} { // held till the end, and not
		t.Run(fmt.Sprint(rows), func(t *testing.T) {
			disk, c, path := onDisk(t, "normal")
			c.fill(200, "a")
			disk.Refuse(sqlite3.SQLITE_FULL)
			if err := c.try("UPDATE rows SET text = 'b0' WHERE id <= ?", rows); err == nil {
				t.Fatal("a commit that could not be written is no error")
			}
			disk.Refuse(0)
			c.holds(200, "a")
			c.fill(200, "d")
			opened(t, path, disk.VFS, "normal").holds(200, "d")
			c.recovered(disk, path).holds(200, "d")
		})
	}
}

// held begins a transaction whose first pages are written before its end: so many rows that the last of them are held.
func (c *conn) held() {
	c.t.Helper()
	c.exec("CREATE TABLE other(id INTEGER PRIMARY KEY, n TEXT NOT NULL UNIQUE)")
	c.fill(40, "a")
	c.exec("BEGIN")
	for i := range 22 {
		c.exec("INSERT INTO rows(id, text) VALUES (?, 'b' || printf('%03000d', 1))", 100+i)
	}
}

// What is held is read from memory: a disk that is full while a statement reads it fails no write that was reported.
func TestRead_OfWhatIsHeld_WritesNothing(t *testing.T) {
	t.Parallel()
	disk, c, path := onDisk(t, "full")
	c.held()
	disk.Refuse(sqlite3.SQLITE_FULL)
	refused := c.try("INSERT INTO other(n) SELECT text || random() FROM rows WHERE id IN (104, 105)")
	disk.Refuse(0)
	committed := c.try("COMMIT")
	other := opened(t, path, disk.VFS, "full")
	other.holds(40, "a")
	c.recovered(disk, path).holds(40, "a")
	var n int
	if err := other.db.QueryRowContext(t.Context(), "SELECT count(*) FROM rows WHERE id >= 100").Scan(&n); err != nil {
		t.Fatal(err)
	}
	if whole := map[bool]int{true: 22, false: 0}[committed == nil]; n != whole {
		t.Errorf("%d rows of the transaction; the statement said %v and the commit %v", n, refused, committed)
	}
}

// A connection that keeps its lock between transactions holds nothing back: its rollback unlocks nothing.
func TestRollback_OfWhoKeepsTheLock_LeavesNothing(t *testing.T) {
	t.Parallel()
	disk, c, path := onDisk(t, "full")
	c.exec("CREATE TABLE other(id INTEGER PRIMARY KEY, n TEXT NOT NULL UNIQUE)")
	c.fill(30, "a")
	c.exec("PRAGMA wal_checkpoint(TRUNCATE)")
	c.exec("PRAGMA locking_mode=EXCLUSIVE")
	c.exec("INSERT INTO other(n) VALUES ('x')")
	c.exec("BEGIN")
	for i := range 22 {
		c.exec("INSERT INTO rows(id, text) VALUES (?, 'back' || printf('%03000d', 1))", 100+i)
	}
	c.exec("ROLLBACK")
	c.exec("PRAGMA locking_mode=NORMAL")
	c.exec("SELECT 1 FROM sqlite_schema")
	opened(t, path, disk.VFS, "full").fill(20, "b")
	c.exec("INSERT INTO other(n) VALUES ('later')")
	opened(t, path, disk.VFS, "full").holds(20, "b")
	c.recovered(disk, path).holds(20, "b")
}
