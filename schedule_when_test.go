package runlane_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/runlane/runlane-go"
)

func instant(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestWhen_RefusesWithAHint(t *testing.T) {
	t.Parallel()
	noon := instant(t, "2026-03-01T12:00:00Z")
	const instants = "name an instant from 1970 to 2286"
	for _, c := range []struct {
		when          runlane.When
		message, hint string
	}{
		{runlane.When{}, "a schedule has no When", "use runlane.Once, runlane.Every or runlane.Cron"},
		{runlane.When{}.In("UTC"), "a schedule has no When", "use runlane.Once, runlane.Every or runlane.Cron"},
		{runlane.Once(time.Time{}), "the instant of Once is 0001-01-01T00:00:00Z", instants},
		{runlane.Once(time.Unix(0, 999_999)), "the instant of Once is 1970-01-01T00:00:00Z", instants},
		{runlane.Once(instant(t, "2286-11-20T17:46:40Z")), "the instant of Once is 2286-11-20T17:46:40Z", instants},
		{runlane.Once(noon).From(noon), "From is set on a When that is not an interval", "From belongs to runlane.Every"},
		{runlane.Once(noon).In("UTC"), "In is set on a When that is not a cron expression", "In belongs to runlane.Cron"},
		{runlane.Every(0), "the interval of Every is 0s", "an interval is at least 1s"},
		{runlane.Every(-time.Hour), "the interval of Every is -1h0m0s", "an interval is at least 1s"},
		{runlane.Every(999 * time.Millisecond), "the interval of Every is 999ms", "an interval is at least 1s"},
		{runlane.Every(time.Second + time.Microsecond), "the interval of Every is 1.000001s", "an interval is whole milliseconds"},
		{runlane.Every(time.Hour).In("UTC"), "In is set on a When that is not a cron expression", "In belongs to runlane.Cron"},
		{runlane.Every(time.Hour).From(instant(t, "1969-12-31T23:00:00Z")), "the anchor of Every is 1969-12-31T23:00:00Z", instants},
		{runlane.Every(time.Hour).From(instant(t, "2300-01-01T00:00:00Z")), "the anchor of Every is 2300-01-01T00:00:00Z", instants},
		{runlane.Cron("@daily").From(noon), "From is set on a When that is not an interval", "From belongs to runlane.Every"},
		{runlane.Cron("@daily").In(""), "the zone of the cron expression is empty", `name a zone like "Europe/Berlin", or leave In out for UTC`},
		{runlane.Cron("@daily").In("Local"), `the zone of the cron expression is "Local"`, `name the zone, like "Europe/Berlin": machines differ in what is local`},
		{runlane.Cron("@daily").In("local"), `the zone of the cron expression is "Local"`, `name the zone, like "Europe/Berlin": machines differ in what is local`},
		{runlane.Cron("@daily").In("Europe/Bärlin"), `the zone "Europe/Bärlin" is unknown`, `use a name of the IANA time zone data base, like "Europe/Berlin" or "UTC"`},
		{runlane.Cron("@daily").In("../UTC"), `the zone "../UTC" is unknown`, `use a name of the IANA time zone data base, like "Europe/Berlin" or "UTC"`},
		{runlane.Cron("@daily").In("+02:00"), `the zone "+02:00" is unknown`, `use a name of the IANA time zone data base, like "Europe/Berlin" or "UTC"`},
	} {
		got, ok := errors.AsType[*runlane.Error](c.when.Validate())
		if !ok || got.Code != runlane.ErrConfigurationInvalid || got.Message != c.message || got.Hint != c.hint {
			t.Errorf("%v: got %v, want %s (%s)", c.when, c.when.Validate(), c.message, c.hint)
		}
		if next, ok := c.when.Next(time.Unix(0, 0)); ok {
			t.Errorf("%v is refused and fires at %v", c.when, next)
		}
	}
	if err := runlane.Cron("@daily").In(strings.Repeat("x", 1000)).Validate(); err == nil || len(err.Error()) > 300 {
		t.Errorf("a long zone: %v", err)
	}
}

func TestWhen_OnceAndEveryFireStrictlyAfter(t *testing.T) {
	t.Parallel()
	anchor := instant(t, "2026-03-01T12:05:00.25Z")
	for _, c := range []struct {
		when        runlane.When
		after, want string
	}{
		{runlane.Once(instant(t, "2026-03-01T12:00:00.0019+02:00")), "0001-01-01T00:00:00Z", "2026-03-01T10:00:00.001Z"},
		{runlane.Once(instant(t, "2026-03-01T12:00:00Z")), "2026-03-01T11:59:59.999999999Z", "2026-03-01T12:00:00Z"},
		{runlane.Once(instant(t, "2026-03-01T12:00:00Z")), "2026-03-01T12:00:00Z", ""},
		{runlane.Once(instant(t, "2286-11-20T17:46:39.999Z")), "2286-11-20T17:46:39.998Z", "2286-11-20T17:46:39.999Z"},
		{runlane.Every(15 * time.Minute), "2026-03-01T12:00:00Z", "2026-03-01T12:15:00Z"},
		{runlane.Every(15 * time.Minute), "2026-03-01T12:14:59.999999999Z", "2026-03-01T12:15:00Z"},
		{runlane.Every(7 * day), "2026-03-01T12:00:00Z", "2026-03-05T00:00:00Z"}, // a Thursday, as the epoch was
		{runlane.Every(1500 * time.Millisecond), "1970-01-01T00:00:00Z", "1970-01-01T00:00:01.5Z"},
		{runlane.Every(time.Hour), "1900-01-01T00:00:00Z", "1970-01-01T01:00:00Z"},
		{runlane.Every(time.Hour), "2286-11-20T17:00:00Z", ""},
		{runlane.Every(math.MaxInt64 / 1_000_000 * 1_000_000), "1970-01-01T00:00:00Z", "2262-04-11T23:47:16.854Z"},
		{runlane.Every(time.Hour), "9999-01-01T00:00:00Z", ""},
		{runlane.Every(time.Hour).From(anchor), "2020-01-01T00:00:00Z", "2026-03-01T12:05:00.25Z"},
		{runlane.Every(time.Hour).From(anchor), "2026-03-01T12:05:00.249999999Z", "2026-03-01T12:05:00.25Z"},
		{runlane.Every(time.Hour).From(anchor), "2026-03-01T12:05:00.25Z", "2026-03-01T13:05:00.25Z"},
		{runlane.Every(time.Hour).From(anchor).From(time.Time{}), "2026-03-01T12:05:00.25Z", "2026-03-01T13:00:00Z"},
		{runlane.Every(time.Hour).From(time.Unix(0, 0)), "1960-01-01T00:00:00Z", "1970-01-01T01:00:00Z"},
	} {
		got := ""
		if next, ok := c.when.Next(instant(t, c.after)); ok {
			got = next.Format(time.RFC3339Nano)
		}
		if got != c.want {
			t.Errorf("%v after %s: got %q, want %q", c.when, c.after, got, c.want)
		}
	}
}

func TestWhen_IntervalsStayOnTheirGrid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		interval := time.Duration(rapid.Int64Range(1000, 1<<34).Draw(t, "interval ms")) * time.Millisecond
		anchor := time.UnixMilli(rapid.Int64Range(0, 1<<42).Draw(t, "anchor ms")).UTC()
		after := time.Unix(rapid.Int64Range(0, 1<<32).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns"))
		next, ok := runlane.Every(interval).From(anchor).Next(after)
		if !ok || !next.After(after) || next.Before(anchor) || next.Sub(anchor)%interval != 0 {
			t.Fatalf("every %v from %v: after %v comes %v, %v", interval, anchor, after, next, ok)
		}
		if earlier := next.Add(-interval); earlier.After(after) && !earlier.Before(anchor) {
			t.Fatalf("every %v from %v: after %v comes %v, not %v", interval, anchor, after, next, earlier)
		}
	})
}

func TestWhen_StringIsTheDefinition(t *testing.T) {
	t.Parallel()
	noon := instant(t, "2026-03-01T14:00:00.5+02:00")
	for want, when := range map[string]runlane.When{
		"never":                                     {},
		"once 2026-03-01T12:00:00.5Z":               runlane.Once(noon),
		"every 15m":                                 runlane.Every(15 * time.Minute),
		"every 1d from 2026-03-01T12:00:00.5Z":      runlane.Every(day).From(noon),
		"cron @daily in UTC":                        runlane.Cron(" @Daily "),
		"cron 30 2 * JAN-MAR FRIL in Europe/Berlin": runlane.Cron("30  2 *\tjan-mar fril").In("Europe/Berlin"),
	} {
		if got := when.String(); got != want || fmt.Sprint(when) != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestWhen_IsComparable(t *testing.T) {
	t.Parallel()
	definitions := func() []runlane.When {
		return []runlane.When{
			{}, runlane.Once(time.Unix(1, 0)), runlane.Every(day), runlane.Every(day).From(time.Unix(1, 0)), runlane.Cron("@daily"),
			runlane.Cron("@hourly"), runlane.Cron("@daily").In("Asia/Kolkata"), runlane.Cron("5/15 * * * *"),
		}
	}
	for i, left := range definitions() {
		for j, right := range definitions() {
			if (left == right) != (i == j) {
				t.Errorf("%v and %v: equal is %v", left, right, left == right)
			}
		}
	}
}

func ExampleCron() {
	nightly := runlane.Cron("30 2 * * MON-FRI").In("Europe/Berlin")
	at := time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC)
	for range 2 {
		at, _ = nightly.Next(at)
		fmt.Println(at, "at", at.In(nightly.Location()).Format(time.TimeOnly))
	}
	fmt.Println(runlane.Cron("5/15 * * * *").Validate())
	// Output:
	// 2026-03-30 00:30:00 +0000 UTC at 02:30:00
	// 2026-03-31 00:30:00 +0000 UTC at 02:30:00
	// configuration_invalid: cron expression "5/15 * * * *": minute "5/15" steps from a single value (write "5-59/15")
}

func ExampleEvery() {
	firstOfShift := time.Date(2026, 3, 1, 6, 30, 0, 0, time.UTC)
	shifts := runlane.Every(8 * time.Hour).From(firstOfShift)
	next, _ := shifts.Next(firstOfShift)
	fmt.Println(shifts, "→", next)
	// Output:
	// every 8h from 2026-03-01T06:30:00Z → 2026-03-01 14:30:00 +0000 UTC
}
