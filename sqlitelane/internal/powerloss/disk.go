// Package powerloss is a disk for tests that can lose power: a SQLite file system that passes everything to the
// default one and records writes and syncs. From the record it builds what a disk could hold after a loss of power at
// any moment: unsynced data exists or not, or in part, in any order.
package powerloss

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/runlane/runlane-go/sqlitelane/internal/vfs"
)

// Disk is one such file system. Set its fields before a file is opened.
type Disk struct {
	// VFS is its name in SQLite.
	VFS string
	// Records enables the recording.
	Records bool
	// Slow is added to each sync.
	Slow time.Duration

	usual vfs.FileSystem // passes everything to it

	mu    sync.Mutex
	log   []step
	room  int64 // bytes left; negative: unlimited
	fails bool
	code  int32 // result of every write, unless 0
	syncs int
	reads atomic.Int64
	wrote atomic.Int64
}

// step is an operation on a file.
type step struct {
	kind   kind
	name   string
	offset int64
	bytes  []byte
}

type kind int

const (
	written kind = iota
	cut          // to offset
	synced
	removed
	folder // of all files: removals are durable
)

func NewDisk() (*Disk, error) {
	d := &Disk{VFS: fmt.Sprint("powerloss", names.Add(1)), room: -1}
	return d, d.register()
}

// Fill leaves room for that many bytes; a negative number means unlimited.
func (d *Disk) Fill(room int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = room
}

// FailSyncs makes every sync fail, or stops that.
func (d *Disk) FailSyncs(fails bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fails = fails
}

// Refuse makes every write fail with that code of SQLite; 0 stops that.
func (d *Disk) Refuse(code int32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.code = code
}

// Syncs returns the number of syncs.
func (d *Disk) Syncs() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.syncs
}

// Reads returns the number of SQLite's reads from files, without cached pages.
func (d *Disk) Reads() int64 { return d.reads.Load() }

// Writes returns the number of SQLite's writes to files.
func (d *Disk) Writes() int64 { return d.wrote.Load() }

// Now returns the number of steps so far. Any call that returned before is on the disk of every [Crash] from then on.
func (d *Disk) Now() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.log)
}

func (d *Disk) note(s step) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.kind == synced {
		d.syncs++
	}
	if d.Records {
		d.log = append(d.log, s)
	}
}

// SyncFolder makes created and removed files durable.
func (d *Disk) SyncFolder() { d.note(step{kind: folder}) }

func (d *Disk) mayWrite(size int64) int32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.code != 0 {
		return d.code
	}
	if d.room < 0 {
		return sqlite3.SQLITE_OK
	}
	if d.room < size {
		return sqlite3.SQLITE_FULL
	}
	d.room -= size
	return sqlite3.SQLITE_OK
}

func (d *Disk) maySync() int32 {
	if d.Slow > 0 {
		time.Sleep(d.Slow)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails {
		return sqlite3.SQLITE_IOERR_FSYNC
	}
	return sqlite3.SQLITE_OK
}

// Fate is the effect of a loss of power on unsynced data.
type Fate string

// Fates of unsynced data.
const (
	// Lost: all is lost.
	Lost Fate = "lost"
	// Kept: all is kept.
	Kept Fate = "kept"
	// Torn: all but the end of the last write is kept.
	Torn Fate = "torn"
	// Reordered: only the later half of the written sectors is kept.
	Reordered Fate = "reordered"
	// Scattered: a random choice of the written sectors is kept.
	Scattered Fate = "scattered"
)

// Fates returns all fates.
func Fates() []Fate { return []Fate{Lost, Kept, Torn, Reordered, Scattered} }

// Crash is a moment of a possible loss of power.
type Crash struct {
	// At is the number of steps before it, see [Disk.Now].
	At int

	files map[string]*file
}

// file is a file's durable content and the steps since.
type file struct {
	safe    []byte
	there   bool // a sync made its name durable
	pending []step
}

// Crashes calls each for the moments right before and after each sync.
func (d *Disk) Crashes(each func(Crash)) {
	d.mu.Lock()
	log := d.log[:len(d.log):len(d.log)]
	d.mu.Unlock()
	files := map[string]*file{}
	for n, s := range log {
		if s.kind == folder {
			for _, f := range files {
				f.settle()
			}
			continue
		}
		f := files[s.name]
		if f == nil {
			f = &file{}
			files[s.name] = f
		}
		if s.kind != synced {
			f.pending = append(f.pending, s)
			continue
		}
		each(Crash{n, files})
		f.safe, _ = f.after(f.pending)
		f.there, f.pending = true, nil
		each(Crash{n + 1, files})
	}
}

func (f *file) settle() {
	f.there = true
	for n := len(f.pending) - 1; n >= 0; n-- {
		if f.pending[n].kind == removed {
			f.safe, f.there, f.pending = nil, n < len(f.pending)-1, f.pending[n+1:]
			return
		}
	}
}

func (f *file) after(steps []step) (b []byte, gone bool) {
	b = append([]byte(nil), f.safe...)
	for _, s := range steps {
		switch s.kind {
		case written:
			gone = false
			if end := int(s.offset) + len(s.bytes); end > len(b) {
				b = append(b, make([]byte, end-len(b))...)
			}
			copy(b[s.offset:], s.bytes)
		case cut:
			b = b[:min(len(b), int(s.offset))]
		case removed:
			b, gone = nil, true
		case synced, folder: // not steps of a file
		}
	}
	return b, gone
}

// sector is the unit of atomic writes.
const sector = 512

// After returns the disk's existing files by name. The same seed gives the same result.
func (c Crash) After(fate Fate, seed uint64) map[string][]byte {
	choose := rand.New(rand.NewPCG(seed, uint64(c.At))) // repeatable
	image := map[string][]byte{}
	for name, f := range c.files {
		kept := f.survive(fate, choose)
		b, gone := f.after(kept)
		if !gone && (f.there || len(kept) > 0) {
			image[name] = b
		}
	}
	return image
}

func (f *file) survive(fate Fate, choose *rand.Rand) (kept []step) {
	switch fate {
	case Lost:
		return nil
	case Kept:
		return f.pending
	case Torn:
		kept = append(kept, f.pending...)
		if last := len(kept) - 1; last >= 0 && kept[last].kind == written {
			kept[last].bytes = kept[last].bytes[:choose.IntN(len(kept[last].bytes)+1)]
		}
		return kept
	case Reordered:
		all := inSectors(f.pending)
		return all[len(all)/2:]
	default:
		for _, part := range inSectors(f.pending) {
			if choose.IntN(2) == 0 {
				kept = append(kept, part)
			}
		}
		return kept
	}
}

func inSectors(steps []step) (parts []step) {
	for _, s := range steps {
		if s.kind != written {
			parts = append(parts, s)
			continue
		}
		for from := 0; from < len(s.bytes); from += sector {
			part := s
			part.offset, part.bytes = s.offset+int64(from), s.bytes[from:min(from+sector, len(s.bytes))]
			parts = append(parts, part)
		}
	}
	return parts
}
