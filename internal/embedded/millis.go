package embedded

import "time"

// Millis is a time in whole milliseconds, rounded down, as all storages keep times. The zero time converts exactly in
// both directions.
type Millis int64

// Absent is the zero time.
var Absent = At(time.Time{})

// At rounds a time down.
func At(t time.Time) Millis { return Millis(t.UnixMilli()) }

// Time returns the time in UTC, the zero time for Absent.
func (m Millis) Time() time.Time { return time.UnixMilli(int64(m)).UTC() }

// Add returns a time d later.
func (m Millis) Add(d time.Duration) Millis { return m + Millis(d.Milliseconds()) }

// Since returns the duration since an earlier time.
func (m Millis) Since(earlier Millis) time.Duration {
	return time.Duration(m-earlier) * time.Millisecond
}
