package powerloss

import (
	"bytes"
	"sync"
	"sync/atomic"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/runlane/runlane-go/sqlitelane/internal/vfs"
)

// The default file system opens a file; later calls on it pass through these functions.

var (
	copies sync.Map // address of our copy of a table, by the original's address
	disks  sync.Map // *Disk by its file system's address
	opened sync.Map // *handle by the open file's address
	names  atomic.Int64
)

// handle is an open file.
type handle struct {
	disk  *Disk
	name  string
	usual *vfs.Methods
}

func (d *Disk) register() error {
	usual, ours, err := vfs.Before("", d.VFS, func(f *sqlite3.Tsqlite3_vfs) {
		f.FxOpen, f.FxDelete = vfs.PointerTo[vfs.Open](open), vfs.PointerTo[vfs.Remove](remove)
	})
	if err == nil {
		d.usual = usual
		disks.Store(ours.Address, d)
	}
	return err
}

func diskOf(system uintptr) *Disk {
	d, _ := disks.Load(system)
	return d.(*Disk)
}

func handleOf(file uintptr) *handle {
	h, _ := opened.Load(file)
	return h.(*handle)
}

func open(tls *libc.TLS, system, name, file uintptr, flags int32, out uintptr) int32 {
	d := diskOf(system)
	rc := vfs.Function[vfs.Open](d.usual.FxOpen)(tls, d.usual.Address, name, file, flags, out)
	table := vfs.MethodsOf(file)
	if rc != sqlite3.SQLITE_OK || name == 0 || *table == 0 {
		return rc
	}
	opened.Store(file, &handle{d, libc.GoString(name), (*vfs.Methods)(vfs.Pointer(*table))})
	if ours, known := copies.Load(*table); known {
		*table = ours.(uintptr)
		return rc
	}
	memory := vfs.Copy(tls, *table, func(m *vfs.Methods) {
		m.FxWrite, m.FxTruncate = vfs.PointerTo[vfs.Write](write), vfs.PointerTo[vfs.Truncate](truncate)
		m.FxSync, m.FxClose = vfs.PointerTo[vfs.Sync](syncFile), vfs.PointerTo[vfs.Close](closeFile)
		m.FxRead = vfs.PointerTo[vfs.Read](read)
	})
	copies.Store(*table, memory)
	*table = memory
	return rc
}

func remove(tls *libc.TLS, system, name uintptr, syncFolder int32) int32 {
	d := diskOf(system)
	rc := vfs.Function[vfs.Remove](d.usual.FxDelete)(tls, d.usual.Address, name, syncFolder)
	if rc == sqlite3.SQLITE_OK {
		d.note(step{kind: removed, name: libc.GoString(name)})
	}
	return rc
}

func read(tls *libc.TLS, file, to uintptr, size int32, offset int64) int32 {
	h := handleOf(file)
	h.disk.reads.Add(1)
	return vfs.Function[vfs.Read](h.usual.FxRead)(tls, file, to, size, offset)
}

func write(tls *libc.TLS, file, from uintptr, size int32, offset int64) int32 {
	h := handleOf(file)
	if rc := h.disk.mayWrite(int64(size)); rc != sqlite3.SQLITE_OK {
		return rc
	}
	h.disk.wrote.Add(1)
	rc := vfs.Function[vfs.Write](h.usual.FxWrite)(tls, file, from, size, offset)
	if rc == sqlite3.SQLITE_OK && h.disk.Records {
		copied := bytes.Clone(libc.GoBytes(from, int(size)))
		h.disk.note(step{kind: written, name: h.name, offset: offset, bytes: copied})
	}
	return rc
}

func truncate(tls *libc.TLS, file uintptr, size int64) int32 {
	h := handleOf(file)
	rc := vfs.Function[vfs.Truncate](h.usual.FxTruncate)(tls, file, size)
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
	rc := vfs.Function[vfs.Sync](h.usual.FxSync)(tls, file, flags)
	if rc == sqlite3.SQLITE_OK {
		h.disk.note(step{kind: synced, name: h.name})
	}
	return rc
}

func closeFile(tls *libc.TLS, file uintptr) int32 {
	h := handleOf(file)
	opened.Delete(file)
	return vfs.Function[vfs.Close](h.usual.FxClose)(tls, file)
}
