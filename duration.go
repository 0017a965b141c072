package runlane

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
)

var longUnits = regexp.MustCompile(`^(\d+(?:\.\d+)?)([dw])`)

// ParseDuration reads Go's duration syntax with two more units, d (24 hours) and w (7 days), which stand before the others:
// "36h", "30d", "1w2d12h". Anything else is [ErrValidationFailed].
func ParseDuration(text string) (time.Duration, error) {
	fail := func() (time.Duration, error) {
		return 0, &Error{Code: ErrValidationFailed, Message: fmt.Sprintf("%q is not a duration", clip(text, 64)), Hint: `write it like "90s", "36h" or "1w2d"`}
	}
	rest, sign := strings.TrimPrefix(text, "-"), 1.0
	if rest != text {
		sign = -1
	}
	total, found := 0.0, false
	for {
		m := longUnits.FindStringSubmatch(rest)
		if m == nil {
			break
		}
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return fail()
		}
		unit := day
		if m[2] == "w" {
			unit = week
		}
		total, found, rest = total+n*float64(unit), true, rest[len(m[0]):]
	}
	if rest != "" || !found {
		d, err := time.ParseDuration(rest)
		if err != nil || d < 0 {
			return fail()
		}
		if !found {
			return time.Duration(sign) * d, nil
		}
		total += float64(d)
	}
	if total >= math.MaxInt64 {
		return fail()
	}
	return time.Duration(sign * total), nil
}

// FormatDuration writes what [ParseDuration] reads, with days and weeks where they are whole: "30d", "1w", "1d12h", "90s".
func FormatDuration(d time.Duration) string {
	if d < 0 {
		return "-" + FormatDuration(-d)
	}
	switch {
	case d != 0 && d%week == 0:
		return strconv.FormatInt(int64(d/week), 10) + "w"
	case d != 0 && d%day == 0:
		return strconv.FormatInt(int64(d/day), 10) + "d"
	case d >= day:
		return strconv.FormatInt(int64(d/day), 10) + "d" + shortDuration(d%day)
	default:
		return shortDuration(d)
	}
}

// shortDuration is Duration.String without trailing zero units: "1h" instead of "1h0m0s".
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
