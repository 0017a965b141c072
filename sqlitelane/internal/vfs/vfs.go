// Package vfs makes file systems of SQLite's that stand before another one: SQLite's methods are pointers to Go
// functions in memory that SQLite manages, and here they are called and replaced.
package vfs

import (
	"errors"
	"fmt"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// Open and Remove are methods of a file system, the others of an open file, as SQLite calls them.
type (
	// Open opens a file.
	Open = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	// Remove removes one.
	Remove = func(tls *libc.TLS, vfs, name uintptr, syncFolder int32) int32
	// Write writes bytes.
	Write = func(tls *libc.TLS, file, from uintptr, size int32, offset int64) int32
	// Read reads them.
	Read = func(tls *libc.TLS, file, to uintptr, size int32, offset int64) int32
	// Truncate makes a file shorter.
	Truncate = func(tls *libc.TLS, file uintptr, size int64) int32
	// Sync returns when the disk has it.
	Sync = func(tls *libc.TLS, file uintptr, flags int32) int32
	// Size says how long it is.
	Size = func(tls *libc.TLS, file, size uintptr) int32
	// Lock takes or gives back locks of a log.
	Lock = func(tls *libc.TLS, file uintptr, offset, n, flags int32) int32
	// Traits are what the disk promises.
	Traits = func(tls *libc.TLS, file uintptr) int32
	// Close closes it.
	Close = func(tls *libc.TLS, file uintptr) int32
)

// Methods are those of an open file.
type Methods = sqlite3.Tsqlite3_io_methods

// FileSystem is one of SQLite's.
type FileSystem struct {
	*sqlite3.Tsqlite3_vfs

	Address uintptr
}

// Pointer makes memory of SQLite's accessible.
func Pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// Function is what a pointer of SQLite's calls.
func Function[F any](p uintptr) F {
	holder := &struct{ p uintptr }{p}
	return *(*F)(unsafe.Pointer(holder))
}

// PointerTo is how SQLite calls a function, which must never be collected: only functions of packages are given.
func PointerTo[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

// Before registers a file system that is like another one, "" for the usual one, but for what change replaces. It stays
// for good.
func Before(base, name string, change func(ours *sqlite3.Tsqlite3_vfs)) (usual, ours FileSystem, err error) {
	tls := libc.NewTLS()
	defer tls.Close()
	asked := uintptr(0)
	if base != "" {
		if asked, err = libc.CString(base); err != nil {
			return usual, ours, err
		}
		defer libc.Xfree(tls, asked)
	}
	if usual, err = at(sqlite3.Xsqlite3_vfs_find(tls, asked)); err != nil {
		return usual, ours, fmt.Errorf("SQLite has no file system %q", base)
	}
	called, err := libc.CString(name)
	if err != nil {
		return usual, ours, err
	}
	if ours, err = at(libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_vfs{})))); err != nil {
		return usual, ours, err
	}
	*ours.Tsqlite3_vfs = *usual.Tsqlite3_vfs
	ours.FpNext, ours.FzName = 0, called
	change(ours.Tsqlite3_vfs)
	if rc := sqlite3.Xsqlite3_vfs_register(tls, ours.Address, 0); rc != sqlite3.SQLITE_OK {
		return usual, ours, fmt.Errorf("SQLite does not take the file system: %d", rc)
	}
	return usual, ours, nil
}

func at(address uintptr) (FileSystem, error) {
	if address == 0 {
		return FileSystem{}, errors.New("no memory")
	}
	return FileSystem{(*sqlite3.Tsqlite3_vfs)(Pointer(address)), address}, nil
}

// MethodsOf are the methods of an open file, which begins with their address; 0 where it is not open.
func MethodsOf(file uintptr) *uintptr { return (*uintptr)(Pointer(file)) }

// Copy is memory with the methods of a table, but for what change replaces. It is never freed; 0 where there is none.
func Copy(tls *libc.TLS, table uintptr, change func(*Methods)) uintptr {
	memory := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(Methods{})))
	if memory == 0 {
		return 0
	}
	ours := (*Methods)(Pointer(memory))
	*ours = *(*Methods)(Pointer(table))
	change(ours)
	return memory
}
