package powerloss

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// SQLite's methods are pointers to Go functions in memory that SQLite manages. Here they are called and replaced: the
// usual file system opens a file, then writing, cutting and syncing it go through these functions first.

type (
	openMethod     = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	removeMethod   = func(tls *libc.TLS, vfs, name uintptr, syncFolder int32) int32
	writeMethod    = func(tls *libc.TLS, file, from uintptr, size int32, offset int64) int32
	truncateMethod = func(tls *libc.TLS, file uintptr, size int64) int32
	syncMethod     = func(tls *libc.TLS, file uintptr, flags int32) int32
	closeMethod    = func(tls *libc.TLS, file uintptr) int32
)

// pointer makes memory of SQLite's accessible.
func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// function is what a pointer of SQLite's calls.
func function[F any](p uintptr) F {
	holder := &struct{ p uintptr }{p}
	return *(*F)(unsafe.Pointer(holder))
}

// pointerTo is how SQLite calls a function, which must never be collected: only functions of this package are given.
func pointerTo[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

var (
	usual  *sqlite3.Tsqlite3_vfs // the system's file system
	copies sync.Map              // the address of our copy of a file's methods, by that of the usual ones
	disks  sync.Map              // *Disk by the address of its vfs
	opened sync.Map              // *handle by the address of an open file
	names  atomic.Int64
)

// handle is a file that is open.
type handle struct {
	disk  *Disk
	name  string
	usual *sqlite3.Tsqlite3_io_methods
}

// register makes the disk a file system of SQLite's.
func (d *Disk) register() error {
	tls := libc.NewTLS()
	defer tls.Close()
	found := sqlite3.Xsqlite3_vfs_find(tls, 0)
	if found == 0 {
		return errors.New("SQLite has no file system")
	}
	usual = (*sqlite3.Tsqlite3_vfs)(pointer(found))
	name, err := libc.CString(d.VFS)
	if err != nil {
		return err
	}
	size := unsafe.Sizeof(sqlite3.Tsqlite3_vfs{})
	memory := libc.Xmalloc(tls, libc.Tsize_t(size))
	if memory == 0 {
		return errors.New("no memory")
	}
	ours := (*sqlite3.Tsqlite3_vfs)(pointer(memory))
	*ours = *usual
	ours.FpNext, ours.FzName = 0, name
	ours.FxOpen, ours.FxDelete = pointerTo[openMethod](open), pointerTo[removeMethod](remove)
	disks.Store(memory, d)
	if rc := sqlite3.Xsqlite3_vfs_register(tls, memory, 0); rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("SQLite does not take the file system: %d", rc)
	}
	return nil
}

func diskOf(vfs uintptr) *Disk {
	d, _ := disks.Load(vfs)
	return d.(*Disk)
}

func handleOf(file uintptr) *handle {
	h, _ := opened.Load(file)
	return h.(*handle)
}

func open(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32 {
	rc := function[openMethod](usual.FxOpen)(tls, vfs, name, file, flags, out)
	table := (*uintptr)(pointer(file)) // the methods come first in a file
	if rc != sqlite3.SQLITE_OK || name == 0 || *table == 0 {
		return rc
	}
	opened.Store(file, &handle{diskOf(vfs), libc.GoString(name), (*sqlite3.Tsqlite3_io_methods)(pointer(*table))})
	if ours, known := copies.Load(*table); known {
		*table = ours.(uintptr)
		return rc
	}
	memory := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_io_methods{})))
	ours := (*sqlite3.Tsqlite3_io_methods)(pointer(memory))
	*ours = *(*sqlite3.Tsqlite3_io_methods)(pointer(*table))
	ours.FxWrite, ours.FxTruncate = pointerTo[writeMethod](write), pointerTo[truncateMethod](truncate)
	ours.FxSync, ours.FxClose = pointerTo[syncMethod](syncFile), pointerTo[closeMethod](closeFile)
	copies.Store(*table, memory)
	*table = memory
	return rc
}

func remove(tls *libc.TLS, vfs, name uintptr, syncFolder int32) int32 {
	rc := function[removeMethod](usual.FxDelete)(tls, vfs, name, syncFolder)
	if rc == sqlite3.SQLITE_OK {
		diskOf(vfs).note(step{kind: removed, name: libc.GoString(name)})
	}
	return rc
}

func write(tls *libc.TLS, file, from uintptr, size int32, offset int64) int32 {
	h := handleOf(file)
	if rc := h.disk.mayWrite(int64(size)); rc != sqlite3.SQLITE_OK {
		return rc
	}
	rc := function[writeMethod](h.usual.FxWrite)(tls, file, from, size, offset)
	if rc == sqlite3.SQLITE_OK && h.disk.Records {
		copied := bytes.Clone(libc.GoBytes(from, int(size)))
		h.disk.note(step{kind: written, name: h.name, offset: offset, bytes: copied})
	}
	return rc
}

func truncate(tls *libc.TLS, file uintptr, size int64) int32 {
	h := handleOf(file)
	rc := function[truncateMethod](h.usual.FxTruncate)(tls, file, size)
	if rc == sqlite3.SQLITE_OK {
		h.disk.note(step{kind: cut, name: h.name, offset: size})
	}
	return rc
}

func syncFile(tls *libc.TLS, file uintptr, flags int32) int32 {
	h := handleOf(file)
	if rc := h.disk.maySync(); rc != sqlite3.SQLITE_OK {
		return rc
	}
	rc := function[syncMethod](h.usual.FxSync)(tls, file, flags)
	if rc == sqlite3.SQLITE_OK {
		h.disk.note(step{kind: synced, name: h.name})
	}
	return rc
}

func closeFile(tls *libc.TLS, file uintptr) int32 {
	h := handleOf(file)
	opened.Delete(file)
	return function[closeMethod](h.usual.FxClose)(tls, file)
}
