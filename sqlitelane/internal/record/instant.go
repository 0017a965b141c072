package record

import "time"

// Millis is an instant as it is stored: whole milliseconds, rounded down.
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

// instant writes a distance from base, plus one where it is not negative: 0 is left out and means Absent.
func (w *writer) instant(field int, base, m Millis) {
	switch distance := int64(m - base); {
	case m == Absent:
	case distance >= 0:
		w.number(field, distance+1)
	default:
		w.number(field, distance)
	}
}

// instantFrom is the inverse for a field that is there.
func instantFrom(base Millis, n int64) Millis {
	if n > 0 {
		n--
	}
	return base + Millis(n)
}
