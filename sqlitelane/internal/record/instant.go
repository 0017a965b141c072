package record

import "github.com/runlane/runlane-go/internal/embedded"

// instant writes the distance from base, plus one if not negative. It omits Absent, so 0 is never written.
func (w *writer) instant(field int, base, m embedded.Millis) {
	switch distance := int64(m - base); {
	case m == embedded.Absent:
	case distance >= 0:
		w.number(field, distance+1)
	default:
		w.number(field, distance)
	}
}

// instantFrom is the inverse for a present field.
func instantFrom(base embedded.Millis, n int64) embedded.Millis {
	if n > 0 {
		n--
	}
	return base + embedded.Millis(n)
}
