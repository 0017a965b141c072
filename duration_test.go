package runlane_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/runlane/runlane-go"
)

const day = 24 * time.Hour

func TestParseDuration_ReadsGoAndDaysAndWeeks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0":                           0,
		"90s":                         90 * time.Second,
		"1h30m":                       90 * time.Minute,
		"-1.5h":                       -90 * time.Minute,
		"+3ms":                        3 * time.Millisecond,
		"36h":                         36 * time.Hour,
		"30d":                         30 * day,
		"1w":                          7 * day,
		"1w2d12h":                     9*day + 12*time.Hour,
		"1d1d":                        2 * day,
		"0d":                          0,
		"1.5d":                        36 * time.Hour,
		"0.5w1d":                      4*day + 12*time.Hour,
		"-1d12h":                      -36 * time.Hour,
		"100000d1ns":                  100000*day + 1, // exact, where a float is not
		"106751d":                     106751 * day,
		"-106751d23h47m16.854775808s": math.MinInt64,
		"-2562047h47m16.854775808s":   math.MinInt64,
	} {
		if got, err := runlane.ParseDuration(text); err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestParseDuration_RefusesEverythingElse(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "-", "+", "d", "1", "1x", "1dd", "2h1d", "1d 2h", "1d-2h", "1d+2h", "--1d", "-+1d", "+1d", "1,5d", ".5d", "1.d", "1e3d", "١d",
		"106752d", "-106752d", "15251w", "106751d24h", "99999999999999999999d", "106751d106751d", "-106751d23h47m16.854775809s",
		"-15250w106751d106751d", "9223372036854775807d", "281474976710656d", strings.Repeat("9", 1000) + "w",
	} {
		got, err := runlane.ParseDuration(text)
		if !errors.Is(err, runlane.ErrValidationFailed) || got != 0 {
			t.Errorf("%.40q: got %v, %v", text, got, err)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("the error repeats all %d bytes", len(text))
		}
	}
}

func TestFormatDuration_PrefersLongUnits(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 1: "1ns", time.Millisecond: "1ms", 90 * time.Second: "1m30s", time.Minute: "1m", time.Hour: "1h", 36 * time.Hour: "1d12h",
		day: "1d", 7 * day: "1w", 30 * day: "30d", 14 * day: "2w", 7*day + time.Second: "7d1s", day + time.Minute: "1d1m",
		10 * time.Hour: "10h", 10 * time.Minute: "10m", time.Hour + time.Second: "1h0m1s", -day: "-1d", -90 * time.Minute: "-1h30m",
		math.MinInt64: "-2562047h47m16.854775808s", math.MaxInt64: "106751d23h47m16.854775807s",
	} {
		if got := runlane.FormatDuration(d); got != want {
			t.Errorf("%d: got %q, want %q", d, got, want)
		}
	}
}

func TestDuration_RoundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64().Draw(t, "nanoseconds"))
		if rapid.Bool().Draw(t, "whole days") {
			d -= d % day
		}
		text := runlane.FormatDuration(d)
		if got, err := runlane.ParseDuration(text); err != nil || got != d {
			t.Fatalf("%v as %q reads as %v, %v", d, text, got, err)
		}
	})
}
