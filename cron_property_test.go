package runlane_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/runlane/runlane-go"
)

// wildZones change their clocks more often, further or at odder times than most.
var wildZones = append([]string{
	"Africa/Cairo", "Africa/Casablanca", "America/Caracas", "America/Havana", "America/Nuuk", "America/Scoresbysund", "America/St_Johns",
	"Antarctica/Troll", "Asia/Gaza", "Asia/Kathmandu", "Asia/Pyongyang", "Asia/Tehran", "Atlantic/Azores", "Europe/Dublin",
	"Europe/Lisbon", "Pacific/Chatham", "Pacific/Fakaofo", "Pacific/Kiritimati", "Pacific/Kwajalein",
}, goldenZones...)

// drawnField is one field of a drawn expression and what it means, known from how it was drawn and not from reading it.
type drawnField struct {
	text    string
	any     bool // unrestricted
	has     map[int]bool
	special func(d calendarDay) bool
}

func drawField(t *rapid.T, label string, low, high int, special func(t *rapid.T) (string, func(calendarDay) bool)) drawnField {
	f := drawnField{has: map[int]bool{}, special: func(calendarDay) bool { return false }}
	var items []string
	for i := range rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, label+" items") {
		from := rapid.IntRange(low, high).Draw(t, label+" from")
		to, step, text := from, 1, fmt.Sprint(from)
		switch kind := rapid.SampledFrom([]string{"*", "*/n", "value", "value", "range", "range/n", "special"}).Draw(t, label+" kind"); {
		case kind == "*":
			from, to, text = low, high, "*"
		case kind == "*/n":
			step = rapid.IntRange(1, high-low).Draw(t, label+" step")
			from, to, text = low, high, fmt.Sprintf("*/%d", step)
		case kind == "range", kind == "range/n" && from == high:
			to = rapid.IntRange(from, high).Draw(t, label+" to")
			text = fmt.Sprintf("%d-%d", from, to)
		case kind == "range/n":
			to = rapid.IntRange(from+1, high).Draw(t, label+" to")
			step = rapid.IntRange(1, to-from).Draw(t, label+" step")
			text = fmt.Sprintf("%d-%d/%d", from, to, step)
		case kind == "special" && special != nil:
			var also func(calendarDay) bool
			text, also = special(t)
			earlier := f.special
			f.special = func(d calendarDay) bool { return earlier(d) || also(d) }
			items = append(items, text)
			continue
		}
		f.any = f.any || i == 0 && text[0] == '*'
		for v := from; v <= to; v += step {
			f.has[v] = true
		}
		items = append(items, text)
	}
	f.text = strings.Join(items, ",")
	return f
}

func drawLastDay(*rapid.T) (string, func(calendarDay) bool) {
	return "L", func(d calendarDay) bool { return d.left == 0 }
}

func drawWeekdayOfMonth(t *rapid.T) (string, func(calendarDay) bool) {
	weekday := time.Weekday(rapid.IntRange(0, 6).Draw(t, "weekday"))
	name := rapid.SampledFrom([]string{fmt.Sprint(int(weekday)), strings.ToUpper(weekday.String()[:3]), weekday.String()[:3]}).Draw(t, "name")
	n := rapid.IntRange(0, 5).Draw(t, "number")
	if n == 0 {
		return name + "L", func(d calendarDay) bool { return d.weekday == weekday && d.left < 7 }
	}
	return fmt.Sprintf("%s#%d", name, n), func(d calendarDay) bool { return d.weekday == weekday && d.ordinal() == n }
}

// Any expression, in the weeks around any change of any zone's clocks.
func TestCron_DrawnExpressionsAgreeWithTheOracle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		minute := drawField(t, "minute", 0, 59, nil)
		hour := drawField(t, "hour", 0, 23, nil)
		dayOfMonth := drawField(t, "day", 1, 31, drawLastDay)
		month := drawField(t, "month", 1, 12, nil)
		dayOfWeek := drawField(t, "weekday", 0, 6, drawWeekdayOfMonth)
		expression := strings.Join([]string{minute.text, hour.text, dayOfMonth.text, month.text, dayOfWeek.text}, " ")

		name := rapid.SampledFrom(wildZones).Draw(t, "zone")
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		about := time.Unix(rapid.Int64Range(1972*31_556_952-1970*31_556_952, 110*31_556_952).Draw(t, "about"), 0).In(zone)
		if _, change := about.ZoneBounds(); change.After(about) {
			about = change
		}
		start := about.UTC().Truncate(day).Add(-10 * day)
		clock := watch(zone, start, 44)

		on := func(d calendarDay) bool {
			if !month.has[int(d.month)] {
				return false
			}
			byDate := dayOfMonth.has[d.day] || dayOfMonth.special(d)
			byWeekday := dayOfWeek.has[int(d.weekday)] || dayOfWeek.special(d)
			if dayOfMonth.any || dayOfWeek.any {
				return byDate && byWeekday
			}
			return byDate || byWeekday
		}
		times := func(h, m int) bool { return hour.has[h] && minute.has[m] }
		after, until := start.Add(3*day), start.Add(41*day)
		want := between(clock.fires(on, times, !hour.any), after, until)

		when := runlane.Cron(expression).In(name)
		if when.Validate() != nil && len(want) > 0 {
			t.Fatalf("%v is refused, and fires at %v: %v", when, want[0], when.Validate())
		}
		if len(want) > 3000 {
			want = want[:3000]
			until = want[len(want)-1]
		}
		checkDrawn(t, when, want, after, until)
	})
}

func checkDrawn(t *rapid.T, when runlane.When, want []time.Time, after, until time.Time) {
	at := after
	for _, fire := range want {
		for _, instant := range []time.Time{at, at.Add(fire.Sub(at) / 2), fire.Add(-1)} {
			if next, ok := when.Next(instant); !ok || !next.Equal(fire) {
				t.Fatalf("%v: after %v got %v, %v, want %v", when, instant, next, ok, fire)
			}
		}
		at = fire
	}
	if next, ok := when.Next(at); ok && !next.After(until) {
		t.Fatalf("%v: after %v got %v, want nothing until %v", when, at, next, until)
	}
}

// FuzzCron gives the parser anything. What it accepts fires, and reads the same when it is written again.
func FuzzCron(f *testing.F) {
	for _, c := range oracleCases {
		f.Add(c.expression, "Australia/Lord_Howe", int64(1_538_841_600))
	}
	for _, c := range refusedExpressions {
		f.Add(c.expression, "UTC", int64(0))
	}
	f.Add("0 0 30 12 *", "Pacific/Apia", int64(1_325_000_000))
	f.Add("0 0 * 2 MON#5", "America/New_York", int64(4_007_836_800))
	f.Fuzz(func(t *testing.T, expression, zone string, seconds int64) {
		when := runlane.Cron(expression).In(zone)
		after := time.Unix(seconds, 0)
		next, ok := when.Next(after)
		if err := when.Validate(); err != nil {
			if runlane.CodeOf(err) != runlane.ErrConfigurationInvalid || ok {
				t.Fatalf("%q in %q: %v, and next is %v, %v", expression, zone, err, next, ok)
			}
			return
		}
		rewritten := strings.TrimSuffix(strings.TrimPrefix(when.String(), "cron "), " in "+zone)
		again := runlane.Cron(rewritten).In(zone)
		if again.String() != when.String() {
			t.Fatalf("%q: %v reads as %v", expression, when, again)
		}
		if second, found := again.Next(after); found != ok || !second.Equal(next) {
			t.Fatalf("%q: next is %v, of %v it is %v", expression, next, again, second)
		}
		if !ok {
			if after.Year() < 2240 { // the rarest fire is 40 years away
				t.Fatalf("%v is valid and has no fire after %v", when, after)
			}
			return
		}
		if !next.After(after) || next.Location() != time.UTC || next.Nanosecond() != 0 {
			t.Fatalf("%v: after %v comes %v", when, after, next)
		}
		if same, found := when.Next(next.Add(-1)); !found || !same.Equal(next) {
			t.Fatalf("%v: %v fires, and right before it %v, %v", when, next, same, found)
		}
		if third, found := when.Next(next); found && !third.After(next) {
			t.Fatalf("%v: after %v comes %v", when, next, third)
		}
	})
}
