package runlane_test

import (
	"slices"
	"testing"
	"time"
	_ "time/tzdata" // the tests' zones, wherever they run

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
)

// The oracle reads no expression and does no search: it looks at a local clock once a minute, for the whole time in question, and
// asks a predicate written by hand. The rules are docs/internals/design.md, Schedules.

// wallClock is what a zone's clock shows in each minute of a stretch of time.
type wallClock struct {
	start int64   // the first minute, since the Unix epoch
	shown []int32 // by minute of the stretch: the local minute, counted from the midnight a day before it
	first []int32 // by local minute: the minute that shows it first, or -1
	days  []calendarDay
	seen  []bool // by local day: the clock shows some minute of it
}

// calendarDay is what a predicate sees of a date.
type calendarDay struct {
	month   time.Month
	day     int
	weekday time.Weekday
	left    int // days of the month that follow
}

// ordinal is 2 on the second Monday of a month, and on the second Tuesday.
func (d calendarDay) ordinal() int { return (d.day-1)/7 + 1 }

// dayPattern and timePattern are what an expression's date fields and its time fields mean.
type (
	dayPattern  func(d calendarDay) bool
	timePattern func(hour, minute int) bool
)

// watch looks at the clock from the start, a midnight in UTC, for so many days. The first and last two days are margin.
func watch(zone *time.Location, start time.Time, days int) *wallClock {
	const perDay = 24 * 60
	c := &wallClock{start: start.Unix() / 60, shown: make([]int32, days*perDay), first: make([]int32, (days+2)*perDay)}
	for i := range c.first {
		c.first[i] = -1
	}
	for i := range c.shown {
		_, offset := time.Unix((c.start+int64(i))*60, 0).In(zone).Zone()
		local := i + offset/60 + perDay
		c.shown[i] = int32(local)
		if c.first[local] < 0 {
			c.first[local] = int32(i)
		}
	}
	c.seen = make([]bool, days+2)
	for d := range days + 2 {
		date := start.AddDate(0, 0, d-1)
		left := time.Date(date.Year(), date.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day() - date.Day()
		c.days = append(c.days, calendarDay{month: date.Month(), day: date.Day(), weekday: date.Weekday(), left: left})
		c.seen[d] = slices.ContainsFunc(c.first[d*perDay:(d+1)*perDay], func(i int32) bool { return i >= 0 })
	}
	return c
}

// fires lists them in order. daily is the rule for hours that are restricted.
func (c *wallClock) fires(on dayPattern, at timePattern, daily bool) []time.Time {
	const perDay = 24 * 60
	var times [perDay]bool
	for minute := range times {
		times[minute] = at(minute/60, minute%60)
	}
	matches := make([]bool, len(c.days))
	for d := range matches {
		matches[d] = on(c.days[d])
	}
	var found []time.Time
	instant := func(i int) time.Time { return time.Unix((c.start+int64(i))*60, 0).UTC() }
	if !daily {
		for i, local := range c.shown {
			if matches[local/perDay] && times[local%perDay] {
				found = append(found, instant(i))
			}
		}
		return found
	}
	due := map[int]bool{}
	for d := range c.days {
		if !matches[d] || !c.seen[d] {
			continue
		}
		for minute := range perDay {
			if !times[minute] {
				continue
			}
			local := d*perDay + minute
			for local < len(c.first) && c.first[local] < 0 { // in a gap: the first minute after it
				local++
			}
			if local < len(c.first) {
				due[int(c.first[local])] = true
			}
		}
	}
	for i := range due {
		found = append(found, instant(i))
	}
	slices.SortFunc(found, time.Time.Compare)
	return found
}

// between cuts the margins off.
func between(fires []time.Time, after, until time.Time) []time.Time {
	low, _ := slices.BinarySearchFunc(fires, after.Add(1), time.Time.Compare)
	high, _ := slices.BinarySearchFunc(fires, until.Add(1), time.Time.Compare)
	return fires[low:high]
}

// checkFires compares every fire in (after, until] with those that Next finds one after the other, and Next from between them.
func checkFires(t testing.TB, when runlane.When, want []time.Time, after, until time.Time) {
	t.Helper()
	at := after
	for _, fire := range want {
		next, ok := when.Next(at)
		if !ok || !next.Equal(fire) {
			t.Errorf("%v: after %v got %v, %v, want %v", when, at, next, ok, fire)
			return
		}
		at = next
	}
	if next, ok := when.Next(at); ok && !next.After(until) {
		t.Errorf("%v: after %v got %v, want nothing until %v", when, at, next, until)
	}
	previous := after
	for i, fire := range want {
		if i%17 == 0 || len(want) < 1000 {
			middle := previous.Add(fire.Sub(previous) / 2)
			for _, instant := range []time.Time{previous.Add(1), middle, fire.Add(-time.Second), fire.Add(-1)} {
				if instant.Before(previous) {
					continue
				}
				if next, ok := when.Next(instant); !ok || !next.Equal(fire) {
					t.Errorf("%v: after %v got %v, %v, want %v", when, instant, next, ok, fire)
					return
				}
			}
		}
		previous = fire
	}
}

func every(n int) func(int) bool { return func(v int) bool { return v%n == 0 } }

func anyDay(calendarDay) bool { return true }

// at is a time pattern of hours from..to at the given minutes.
func at(from, to int, minutes ...int) timePattern {
	return func(hour, minute int) bool {
		return from <= hour && hour <= to && (len(minutes) == 0 || slices.Contains(minutes, minute))
	}
}

func onDays(days ...int) dayPattern {
	return func(d calendarDay) bool { return slices.Contains(days, d.day) }
}

func onWeekdays(weekdays ...time.Weekday) dayPattern {
	return func(d calendarDay) bool { return slices.Contains(weekdays, d.weekday) }
}

// oracleCases are expressions and, written independently, what they mean.
var oracleCases = []struct {
	expression string
	on         dayPattern
	at         timePattern
	daily      bool
}{
	// Elapsed time.
	{"@hourly", anyDay, at(0, 23, 0), false},
	{"*/30 * * * *", anyDay, func(_, m int) bool { return every(30)(m) }, false},
	{"0 */2 * * *", anyDay, func(h, m int) bool { return every(2)(h) && m == 0 }, false},
	{"7,37 */3 * * *", anyDay, func(h, m int) bool { return every(3)(h) && (m == 7 || m == 37) }, false},
	{"30 ? * * sun", onWeekdays(time.Sunday), at(0, 23, 30), false},
	{"*/20 * 29 2 *", func(d calendarDay) bool { return d.month == time.February && d.day == 29 }, at(0, 23, 0, 20, 40), false},
	{"0 * 13 * FRI", func(d calendarDay) bool { return d.day == 13 || d.weekday == time.Friday }, at(0, 23, 0), false},
	{"59 */23 30 12 ?", func(d calendarDay) bool { return d.month == time.December && d.day == 30 }, func(h, m int) bool { return (h == 0 || h == 23) && m == 59 }, false},

	// Once a local day, around the hours at which clocks are changed.
	{"@daily", anyDay, at(0, 0, 0), true},
	{"0 0,12 * * *", anyDay, func(h, m int) bool { return (h == 0 || h == 12) && m == 0 }, true},
	{"0 2 * * *", anyDay, at(2, 2, 0), true},
	{"30 2 * * *", anyDay, at(2, 2, 30), true},
	{"*/10 2 * * *", anyDay, func(h, m int) bool { return h == 2 && every(10)(m) }, true},
	{"*/30 1-3 * * *", anyDay, at(1, 3, 0, 30), true},
	{"15 1,2 * * *", anyDay, at(1, 2, 15), true},
	{"45 1 * * *", anyDay, at(1, 1, 45), true},
	{"59 23 * * *", anyDay, at(23, 23, 59), true},
	{"0 0-23 * * *", anyDay, at(0, 23, 0), true},
	{"*/7 0-2 * * *", anyDay, func(h, m int) bool { return h <= 2 && every(7)(m) }, true},
	{"5-59/15 6 * * *", anyDay, at(6, 6, 5, 20, 35, 50), true},
	{"0 9-17/2 * * MON-FRI", func(d calendarDay) bool { return d.weekday != time.Saturday && d.weekday != time.Sunday }, func(h, m int) bool { return 9 <= h && h <= 17 && h%2 == 1 && m == 0 }, true},

	// Dates.
	{"0 0 29 2 *", func(d calendarDay) bool { return d.month == time.February && d.day == 29 }, at(0, 0, 0), true},
	{"0 0 * FEB MON#5", func(d calendarDay) bool { return d.month == time.February && d.day == 29 && d.weekday == time.Monday }, at(0, 0, 0), true},
	{"30 2 31 * *", onDays(31), at(2, 2, 30), true},
	{"0 4 30 12 *", func(d calendarDay) bool { return d.month == time.December && d.day == 30 }, at(4, 4, 0), true},
	{"0 12 L * *", func(d calendarDay) bool { return d.left == 0 }, at(12, 12, 0), true},
	{"0 0 L 2 *", func(d calendarDay) bool { return d.month == time.February && d.left == 0 }, at(0, 0, 0), true},
	{"0 12 * * 5L", func(d calendarDay) bool { return d.weekday == time.Friday && d.left < 7 }, at(12, 12, 0), true},
	{"0 12 * * sunl,mon#2", func(d calendarDay) bool {
		return d.weekday == time.Sunday && d.left < 7 || d.weekday == time.Monday && d.ordinal() == 2
	}, at(12, 12, 0), true},
	{"0 9 1-7 * MON", func(d calendarDay) bool { return d.day <= 7 || d.weekday == time.Monday }, at(9, 9, 0), true},
	{"0 9 */2 * MON", func(d calendarDay) bool { return d.day%2 == 1 && d.weekday == time.Monday }, at(9, 9, 0), true},
	{"0 9 13 * */5", func(d calendarDay) bool { return d.day == 13 && (d.weekday == time.Sunday || d.weekday == time.Friday) }, at(9, 9, 0), true},
	{"0 9 1,*/10 * SAT", func(d calendarDay) bool { return d.day%10 == 1 || d.weekday == time.Saturday }, at(9, 9, 0), true},
	{"0 0 1,15,L * FRI", func(d calendarDay) bool {
		return d.day == 1 || d.day == 15 || d.left == 0 || d.weekday == time.Friday
	}, at(0, 0, 0), true},
	{"30 0 ? * 5-7", onWeekdays(time.Friday, time.Saturday, time.Sunday), at(0, 0, 30), true},
	{"30 3 * * FRI-SUN/2", onWeekdays(time.Friday, time.Sunday), at(3, 3, 30), true},
	{"45 22 * JAN-MAR,nov Sat-Sun", func(d calendarDay) bool {
		return (d.month <= time.March || d.month == time.November) && (d.weekday == time.Saturday || d.weekday == time.Sunday)
	}, at(22, 22, 45), true},
	{"@weekly", onWeekdays(time.Sunday), at(0, 0, 0), true},
	{"@monthly", onDays(1), at(0, 0, 0), true},
	{"@yearly", func(d calendarDay) bool { return d.month == time.January && d.day == 1 }, at(0, 0, 0), true},
	{"0 1 1-7 */3 ?", func(d calendarDay) bool { return d.day <= 7 && d.month%3 == 1 }, at(1, 1, 0), true},
}

func TestCron_TenYearsOfEveryCaseAgreeWithTheOracle(t *testing.T) {
	t.Parallel()
	start := time.Date(2009, 12, 29, 0, 0, 0, 0, time.UTC)
	after, until := time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	days := int(until.Sub(start)/day) + 3
	zones := goldenZones
	if patience.Race {
		zones = []string{"Australia/Lord_Howe"}
	}
	for _, name := range zones {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := watch(location(t, name), start, days)
			for _, c := range oracleCases {
				want := between(clock.fires(c.on, c.at, c.daily), after, until)
				if len(want) == 0 {
					t.Errorf("%s: the oracle finds nothing", c.expression)
				}
				checkFires(t, runlane.Cron(c.expression).In(name), want, after, until)
			}
		})
	}
}

var goldenZones = []string{
	"UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia", "Asia/Kolkata",
}

func location(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}
