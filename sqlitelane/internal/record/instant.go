package record

import "github.com/runlane/runlane-go/internal/embedded"

// instant writes a distance from base, plus one where it is not negative: 0 is left out and means Absent.
func (w *writer) instant(field int, base, m embedded.Millis) {
	switch distance := int64(m - base); {
	case m == embedded.Absent:
	case distance >= 0:
		w.number(field, distance+1)
	default:
		w.number(field, distance)
	}
}

// instantFrom is the inverse for a field that is there.
func instantFrom(base embedded.Millis, n int64) embedded.Millis {
	if n > 0 {
		n--
	}
	return base + embedded.Millis(n)
}
