package file

import (
	"fmt"
	"os"
)

// SQLite begins its log anew when no read needs it. Where reads overlap there is no such moment, and the log grows: each
// checkpoint copies it into the file, and none ends it. Above a size the writer therefore waits for the reads that began
// before: those that begin meanwhile read the file alone.
const (
	// mostLog is the size of the log, in bytes, above which the writer waits, and moreLog by how much it grows before the
	// next try where a read, like a copy, took longer.
	mostLog = 32 << 20
	moreLog = 16 << 20
	// logEvery is how many commits come between two looks at the log.
	logEvery = 16
	// logPatience is how long, in milliseconds, the writer waits for reads.
	logPatience = 250
)

// logSize is what the writer knows of its log.
type logSize struct {
	commits int   // since the last look
	most    int64 // bytes until the next try
}

// shorten ends a log that is too long. Where that fails, the log goes on.
func (w *writer) shorten() {
	if w.log.commits++; w.log.commits < logEvery || w.place.file == nil {
		return
	}
	w.log.commits = 0
	info, err := os.Stat(w.path + logEnding)
	if err != nil || info.Size() < max(w.log.most, mostLog) {
		return
	}
	w.log.most = info.Size() + moreLog
	if pragmas(w.conn, fmt.Sprint("busy_timeout=", logPatience)) != nil {
		return
	}
	row, err := w.conn.One("PRAGMA wal_checkpoint(TRUNCATE)")
	if err == nil && row != nil && row[0] == int64(0) {
		w.log.most = mostLog
	}
	_ = pragmas(w.conn, "busy_timeout=0")
}
