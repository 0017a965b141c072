package file

import (
	"fmt"
	"os"
)

// SQLite restarts its log when no read needs it. If reads always overlap, that never happens and the log grows:
// checkpoints copy it into the file but cannot end it. Above a size the writer therefore waits for the reads under
// way; new reads then need only the file.
const (
	// mostLog is the size in bytes above which the writer waits. If a read, such as a copy, takes longer, the next try
	// is after moreLog more bytes.
	mostLog = 32 << 20
	moreLog = 16 << 20
	// logEvery is the number of commits between looks at the log.
	logEvery = 16
	// logPatience is how long the writer waits for reads, in milliseconds.
	logPatience = 250
)

// logSize is the writer's state about its log.
type logSize struct {
	commits int   // since the last look
	most    int64 // size for the next try
}

// shorten truncates a log that is too long. If that fails, the log continues.
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
