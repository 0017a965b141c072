package embedded

import "time"

// Millis is an instant as every storage keeps it: whole milliseconds, rounded down. The zero time is the Millis of the
// zero time, so that both directions are exact.
type Millis int64

// Absent is the instant of the zero time.
var Absent = At(time.Time{})

// At rounds an instant down.
func At(t time.Time) Millis { return Millis(t.UnixMilli()) }

// Time is the instant in UTC; the zero time for Absent.
func (m Millis) Time() time.Time { return time.UnixMilli(int64(m)).UTC() }

// Add is an instant that much later.
func (m Millis) Add(d time.Duration) Millis { return m + Millis(d.Milliseconds()) }

// Since is how long after another instant this one is.
func (m Millis) Since(earlier Millis) time.Duration {
	return time.Duration(m-earlier) * time.Millisecond
}
