// Package vfs registers SQLite file systems in front of others. SQLite's methods are pointers to Go functions in
// memory that SQLite manages; this package calls and replaces them.
package vfs

import (
	"errors"
	"fmt"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// SQLite's methods of a file system (Open, Remove) and of an open file.
type (
	// Open opens a file.
	Open = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	// Remove removes a file.
	Remove = func(tls *libc.TLS, vfs, name uintptr, syncFolder int32) int32
	// Write writes bytes.
	Write = func(tls *libc.TLS, file, from uintptr, size int32, offset int64) int32
	// Read reads bytes.
	Read = func(tls *libc.TLS, file, to uintptr, size int32, offset int64) int32
	// Truncate shortens a file.
	Truncate = func(tls *libc.TLS, file uintptr, size int64) int32
	// Sync returns when the bytes are on the disk.
	Sync = func(tls *libc.TLS, file uintptr, flags int32) int32
	// Size returns a file's size.
	Size = func(tls *libc.TLS, file, size uintptr) int32
	// Lock takes or releases locks of a log.
	Lock = func(tls *libc.TLS, file uintptr, offset, n, flags int32) int32
	// Traits returns the disk's guarantees.
	Traits = func(tls *libc.TLS, file uintptr) int32
	// Close closes a file.
	Close = func(tls *libc.TLS, file uintptr) int32
)

// Methods are the methods of an open file.
type Methods = sqlite3.Tsqlite3_io_methods

// FileSystem is a SQLite file system.
type FileSystem struct {
	*sqlite3.Tsqlite3_vfs

	Address uintptr
}

// Pointer converts an address in SQLite's memory.
func Pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// Function converts a function pointer of SQLite.
func Function[F any](p uintptr) F {
	holder := &struct{ p uintptr }{p}
	return *(*F)(unsafe.Pointer(holder))
}

// PointerTo is the inverse of Function. f must never be collected: pass only package-level functions.
func PointerTo[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

// Before registers a copy of the file system base, "" for the default, after change replaced methods. It stays
// registered.
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

// MethodsOf returns where an open file has the address of its methods, which is 0 if it is not open.
func MethodsOf(file uintptr) *uintptr { return (*uintptr)(Pointer(file)) }

// Copy returns the address of a copy of a table after change replaced methods, 0 without memory. It is never freed.
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
