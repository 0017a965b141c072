// Package powerloss is a disk that can lose its power, for tests: a file system of SQLite's that passes everything to
// the usual one and writes down what was written and what was synced. From that it makes what a disk could hold if the
// power went at any moment: what was not synced is there, or not, or in part, in any order.
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

// Disk is one such file system. Its fields may be set before a file is opened; Full and Fails at any time.
type Disk struct {
	// VFS is its name for SQLite.
	VFS string
	// Records says that what is written is kept.
	Records bool
	// Slow is added to every sync.
	Slow time.Duration

	usual vfs.FileSystem // that it passes everything to

	mu    sync.Mutex
	log   []step
	room  int64 // bytes that may still be written; negative: no limit
	fails bool
	code  int32 // of every write, where it is not 0
	syncs int
	reads atomic.Int64
	wrote atomic.Int64
}

// step is one thing that happened to a file.
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
	folder // of all files: what was removed stays so
)

// NewDisk makes a disk.
func NewDisk() (*Disk, error) {
	d := &Disk{VFS: fmt.Sprint("powerloss", names.Add(1)), room: -1}
	return d, d.register()
}

// Fill leaves room for so many bytes; a negative number means any.
func (d *Disk) Fill(room int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = room
}

// FailSyncs makes every sync fail, or none.
func (d *Disk) FailSyncs(fails bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fails = fails
}

// Refuse makes every write fail with a code of SQLite's; 0 ends that.
func (d *Disk) Refuse(code int32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.code = code
}

// Syncs counts them.
func (d *Disk) Syncs() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.syncs
}

// Reads counts what SQLite read from files: a page that it had already is not among them.
func (d *Disk) Reads() int64 { return d.reads.Load() }

// Writes counts the calls by which SQLite wrote to files.
func (d *Disk) Writes() int64 { return d.wrote.Load() }

// Now is how much has happened so far: what returned before is on the disk of every [Crash] at or after it.
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

// SyncFolder makes it durable which files there are.
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

// Fate is what happens to what was not synced when the power goes.
type Fate string

// The fates.
const (
	// Lost: nothing of it is there.
	Lost Fate = "lost"
	// Kept: all of it is there.
	Kept Fate = "kept"
	// Torn: all but the end of the last write.
	Torn Fate = "torn"
	// Reordered: the later half of the sectors that were written, and not the earlier one.
	Reordered Fate = "reordered"
	// Scattered: any sector of any write, or not.
	Scattered Fate = "scattered"
)

// Fates are all of them.
func Fates() []Fate { return []Fate{Lost, Kept, Torn, Reordered, Scattered} }

// Crash is a moment at which the power may go.
type Crash struct {
	// At is what had happened, see [Disk.Now].
	At int

	files map[string]*file
}

// file is one file: what is safe, and what happened since.
type file struct {
	safe    []byte
	there   bool // a sync made it known to its folder
	pending []step
}

// Crashes calls each with every moment right before and right after a sync.
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

// settle makes it durable whether the file is there.
func (f *file) settle() {
	f.there = true
	for n := len(f.pending) - 1; n >= 0; n-- {
		if f.pending[n].kind == removed {
			f.safe, f.there, f.pending = nil, n < len(f.pending)-1, f.pending[n+1:]
			return
		}
	}
}

// after applies steps to what is safe.
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
		case synced, folder: // are no steps of a file
		}
	}
	return b, gone
}

// sector is what a disk writes whole.
const sector = 512

// After is what the disk holds by file: those that are there. The same seed gives the same.
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

// inSectors are steps whose writes are one for each sector: a disk has each, or not, in any order.
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
