package memlane

import "time"

// millis is an instant as every storage keeps it: whole milliseconds, rounded down. The zero time is the millis of the
// zero time, so that both directions are exact.
type millis int64

var absent = at(time.Time{})

func at(t time.Time) millis { return millis(t.UnixMilli()) }

func (m millis) time() time.Time { return time.UnixMilli(int64(m)).UTC() }

func (m millis) add(d time.Duration) millis { return m + millis(d.Milliseconds()) }

func (m millis) since(earlier millis) time.Duration {
	return time.Duration(m-earlier) * time.Millisecond
}

// whole is t in UTC, rounded down to the millisecond.
func whole(t time.Time) time.Time { return at(t).time() }
