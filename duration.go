package runlane

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// longUnits is compiled on first use, so that functions start faster.
var longUnits = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\d+)(\.\d+)?([dw])`) })

// ParseDuration reads Go's duration syntax with two more units, d (24 hours) and w (7 days), written before the others:
// "36h", "30d", "1w2d12h". Anything else is [ErrValidationFailed].
func ParseDuration(text string) (time.Duration, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	rest, negative := strings.CutPrefix(text, "-")
	limit := uint64(math.MaxInt64)
	if negative {
		limit++
	}
	total, found := uint64(0), false
	for m := longUnits().FindStringSubmatch(rest); m != nil; m = longUnits().FindStringSubmatch(rest) {
		part, ok := longPart(m[1], m[2], m[3])
		if !ok || part > limit-total {
			return 0, noDuration(text)
		}
		total, rest, found = total+part, rest[len(m[0]):], true
	}
	if rest != "" {
		d, err := time.ParseDuration(rest)
		if err != nil || strings.ContainsAny(rest[:1], "+-") {
			return 0, noDuration(text)
		}
		total += uint64(d)
	}
	if !found || total > limit {
		return 0, noDuration(text)
	}
	if negative {
		total = -total
	}
	return time.Duration(total), nil
}

// longPart returns a number of days or weeks in nanoseconds. ok is false if a duration cannot hold it. Whole numbers
// avoid floats and stay exact.
func longPart(whole, fraction, unit string) (part uint64, ok bool) {
	length := uint64(day)
	if unit == "w" {
		length = uint64(week)
	}
	n, err := strconv.ParseUint(whole, 10, 64)
	if err != nil || n > math.MaxInt64/length {
		return 0, false
	}
	part = n * length
	if fraction == "" {
		return part, true
	}
	f, err := strconv.ParseFloat("0"+fraction, 64)
	return part + uint64(math.Round(f*float64(length))), err == nil
}

func noDuration(text string) error {
	return &Error{
		Code:    ErrValidationFailed,
		Message: fmt.Sprintf("%q is not a duration", clip(text, 64)),
		Hint:    `write it like "90s", "36h" or "1w2d"`,
	}
}

// FormatDuration writes the syntax of [ParseDuration], with whole days and weeks: "30d", "1w", "1d12h", "90s".
func FormatDuration(d time.Duration) string {
	switch {
	case d < 0 && -d > 0: // the smallest duration has no opposite and keeps Go's syntax
		return "-" + FormatDuration(-d)
	case d > 0 && d%week == 0:
		return strconv.FormatInt(int64(d/week), 10) + "w"
	case d > 0 && d%day == 0:
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
