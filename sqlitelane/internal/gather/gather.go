// Package gather is a SQLite file system that writes the frames of a commit to the log in one call. SQLite writes each
// page in two pieces, and each system call takes longer than copying the bytes.
//
// It holds back only appends to the log, and only until the frame that ends the commit. That frame's write reports the
// result for all: when it returns, the system has the same bytes as without this package. Bytes of a transaction that
// ended otherwise are dropped before another writer may follow; nobody reads them.
package gather

import (
	"encoding/binary"
	"fmt"
	"sync"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/runlane/runlane-go/sqlitelane/internal/vfs"
)

const (
	// headSize is the size of a frame's header. Its bytes 4 to 7 are the size of the database after a commit, 0 if the
	// frame ends none.
	headSize = 24
	// room is the most bytes held back, 31 pages. SQLite never writes more than room at once.
	room = 1<<17 - 1
	// nowhere is outside the log.
	nowhere int64 = -1
	// writeLock is the index of the log's write lock.
	writeLock = 0
)

// system is a gathering file system and the one behind it.
type system struct {
	name  string
	usual vfs.FileSystem
	err   error
}

var (
	making  sync.Mutex
	made    = map[string]*system{} // by the base's name
	systems sync.Map               // *system by address
	copies  sync.Map               // address of our copy of a table, by tableKey
	logs    sync.Map               // *log by the open log's address
	owners  sync.Map               // *database by the open file's address
)

// tableKey identifies a table of methods, for logs or for databases.
type tableKey struct {
	usual uintptr
	log   bool
}

// database is an open file. Its locks decide who writes the log.
type database struct {
	usual *vfs.Methods
	log   *log // nil: not open
}

// log is an open log. It holds back frames at its end.
type log struct {
	usual  *vfs.Methods
	owner  *database
	memory uintptr
	held   int32
	at     int64 // place of the held bytes; if none, the end of the last write
	opened bool  // a frame's header is held without its page
	commit bool  // that frame ends a commit
	turn   bool  // this process holds the write lock
	failed int32 // a flush failed: every write of this turn must fail
}

// Before returns the name of a file system that gathers in front of base, "" for the default one.
func Before(base string) (name string, err error) {
	making.Lock()
	defer making.Unlock()
	s := made[base]
	if s == nil {
		s = &system{name: "runlane-gather-" + base}
		var ours vfs.FileSystem
		s.usual, ours, s.err = vfs.Before(base, s.name, func(f *sqlite3.Tsqlite3_vfs) {
			f.FxOpen, f.FxDelete = vfs.PointerTo[vfs.Open](open), vfs.PointerTo[vfs.Remove](remove)
		})
		if s.err == nil {
			systems.Store(ours.Address, s)
		}
		made[base] = s
	}
	if s.err != nil {
		return "", fmt.Errorf("gather commits: %w", s.err)
	}
	return s.name, nil
}

func usualOf(address uintptr) vfs.FileSystem {
	s, _ := systems.Load(address)
	return s.(*system).usual
}

func open(tls *libc.TLS, system, name, file uintptr, flags int32, out uintptr) int32 {
	usual := usualOf(system)
	rc := vfs.Function[vfs.Open](usual.FxOpen)(tls, usual.Address, name, file, flags, out)
	table := vfs.MethodsOf(file)
	if rc != sqlite3.SQLITE_OK || name == 0 || *table == 0 {
		return rc
	}
	methods := (*vfs.Methods)(vfs.Pointer(*table))
	switch {
	case flags&sqlite3.SQLITE_OPEN_MAIN_DB != 0 && methods.FiVersion > 1: // it has WAL locks
		if ours := tableOf(tls, tableKey{*table, false}); ours != 0 {
			owners.Store(file, &database{usual: methods})
			*table = ours
		}
	case flags&sqlite3.SQLITE_OPEN_WAL != 0:
		of := sqlite3.Xsqlite3_database_file_object(tls, name)
		owner, known := owners.Load(of)
		if !known || !overwrites(tls, owner.(*database), of) {
			return rc
		}
		memory, ours := libc.Xmalloc(tls, room), tableOf(tls, tableKey{*table, true})
		if memory == 0 || ours == 0 {
			libc.Xfree(tls, memory)
			return rc
		}
		l := &log{usual: methods, owner: owner.(*database), memory: memory}
		l.forget()
		l.owner.log = l
		logs.Store(file, l)
		*table = ours
	}
	return rc
}

// overwrites reports whether the disk keeps bytes next to a write intact. Otherwise SQLite pads sectors and syncs in
// the middle of a frame.
func overwrites(tls *libc.TLS, d *database, file uintptr) bool {
	traits := vfs.Function[vfs.Traits](d.usual.FxDeviceCharacteristics)(tls, file)
	return traits&sqlite3.SQLITE_IOCAP_POWERSAFE_OVERWRITE != 0
}

// tableOf returns a copy of a table with our methods, 0 without memory.
func tableOf(tls *libc.TLS, key tableKey) uintptr {
	if ours, known := copies.Load(key); known {
		return ours.(uintptr)
	}
	ours := vfs.Copy(tls, key.usual, func(m *vfs.Methods) {
		if !key.log {
			m.FxShmLock = vfs.PointerTo[vfs.Lock](lock)
			m.FxClose = vfs.PointerTo[vfs.Close](closeDatabase)
			return
		}
		m.FxWrite, m.FxRead = vfs.PointerTo[vfs.Write](write), vfs.PointerTo[vfs.Read](read)
		m.FxSync, m.FxTruncate = vfs.PointerTo[vfs.Sync](syncLog), vfs.PointerTo[vfs.Truncate](truncate)
		m.FxFileSize, m.FxClose = vfs.PointerTo[vfs.Size](size), vfs.PointerTo[vfs.Close](closeLog)
	})
	if ours != 0 {
		copies.Store(key, ours)
	}
	return ours
}

func remove(tls *libc.TLS, system, name uintptr, syncFolder int32) int32 {
	usual := usualOf(system)
	return vfs.Function[vfs.Remove](usual.FxDelete)(tls, usual.Address, name, syncFolder)
}

// lock drops the bytes of a rolled-back transaction before another writer may follow.
func lock(tls *libc.TLS, file uintptr, offset, n, flags int32) int32 {
	owner, _ := owners.Load(file)
	d := owner.(*database)
	const ends = sqlite3.SQLITE_SHM_UNLOCK | sqlite3.SQLITE_SHM_EXCLUSIVE
	if offset == writeLock && flags&ends == ends && d.log != nil {
		if d.log.held > 0 {
			d.log.forget()
		}
		d.log.turn, d.log.failed = false, 0
	}
	rc := vfs.Function[vfs.Lock](d.usual.FxShmLock)(tls, file, offset, n, flags)
	const begins = sqlite3.SQLITE_SHM_LOCK | sqlite3.SQLITE_SHM_EXCLUSIVE
	if offset == writeLock && flags&begins == begins && d.log != nil && rc == 0 {
		d.log.turn = true
	}
	return rc
}

func closeDatabase(tls *libc.TLS, file uintptr) int32 {
	owner, _ := owners.LoadAndDelete(file)
	return vfs.Function[vfs.Close](owner.(*database).usual.FxClose)(tls, file)
}

func logOf(file uintptr) *log {
	l, _ := logs.Load(file)
	return l.(*log)
}

func (l *log) forget() { l.held, l.at, l.opened = 0, nowhere, false }

// write holds back a header at the end of the log, and its page. Other writes pass through at once.
func write(tls *libc.TLS, file, from uintptr, size int32, offset int64) int32 {
	l := logOf(file)
	if l.failed != 0 {
		return l.failed
	}
	head := !l.opened && size == headSize
	if !l.turn || offset != l.at+int64(l.held) || !l.opened && !head || l.held+size > room {
		if rc := l.flush(tls, file); rc != sqlite3.SQLITE_OK {
			return rc
		}
		return l.pass(tls, file, from, size, offset)
	}
	piece := bytesAt(from, size)
	copy(bytesAt(l.memory+uintptr(l.held), size), piece)
	l.held += size
	l.opened = head
	if head {
		l.commit = binary.BigEndian.Uint32(piece[4:]) != 0
		return sqlite3.SQLITE_OK
	}
	if l.commit {
		return l.flush(tls, file)
	}
	return sqlite3.SQLITE_OK
}

func bytesAt(p uintptr, size int32) []byte { return unsafe.Slice((*byte)(vfs.Pointer(p)), size) }

func (l *log) flush(tls *libc.TLS, file uintptr) int32 {
	if l.held == 0 {
		return sqlite3.SQLITE_OK
	}
	size, at := l.held, l.at
	l.forget()
	l.failed = l.pass(tls, file, l.memory, size, at)
	return l.failed
}

func (l *log) pass(tls *libc.TLS, file, from uintptr, size int32, offset int64) int32 {
	l.forget()
	rc := vfs.Function[vfs.Write](l.usual.FxWrite)(tls, file, from, size, offset)
	if rc == sqlite3.SQLITE_OK {
		l.at = offset + int64(size)
	}
	return rc
}

func read(tls *libc.TLS, file, to uintptr, size int32, offset int64) int32 {
	l := logOf(file)
	if end := offset + int64(size); l.held > 0 && end > l.at {
		if offset >= l.at && end <= l.at+int64(l.held) {
			copy(bytesAt(to, size), bytesAt(l.memory+uintptr(offset-l.at), size))
			return sqlite3.SQLITE_OK
		}
		if rc := l.flush(tls, file); rc != sqlite3.SQLITE_OK {
			return rc
		}
	}
	return vfs.Function[vfs.Read](l.usual.FxRead)(tls, file, to, size, offset)
}

func syncLog(tls *libc.TLS, file uintptr, flags int32) int32 {
	l := logOf(file)
	if rc := l.flush(tls, file); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return vfs.Function[vfs.Sync](l.usual.FxSync)(tls, file, flags)
}

func truncate(tls *libc.TLS, file uintptr, to int64) int32 {
	l := logOf(file)
	if rc := l.flush(tls, file); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return vfs.Function[vfs.Truncate](l.usual.FxTruncate)(tls, file, to)
}

func size(tls *libc.TLS, file, to uintptr) int32 {
	l := logOf(file)
	if rc := l.flush(tls, file); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return vfs.Function[vfs.Size](l.usual.FxFileSize)(tls, file, to)
}

func closeLog(tls *libc.TLS, file uintptr) int32 {
	l := logOf(file)
	logs.Delete(file)
	if l.owner.log == l {
		l.owner.log = nil
	}
	libc.Xfree(tls, l.memory)
	return vfs.Function[vfs.Close](l.usual.FxClose)(tls, file)
}
