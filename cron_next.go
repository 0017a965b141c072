package runlane

import (
	"math"
	"math/bits"
	"time"
)

// This file computes with two kinds of time, both in seconds:
//
//	instant  since the Unix epoch
//	wall     the local clock's time, counted as if that clock were UTC
//
// A zone is a sequence of periods in which wall - instant is constant.

const (
	secondsPerMinute = 60
	secondsPerDay    = 24 * 60 * 60
	minutesPerDay    = 24 * 60

	allWeekdays = 1<<7 - 1

	// farShift is more than any two offsets of one zone have ever differed.
	farShift = 2 * secondsPerDay

	// calendarCycle is the number of years after which dates and weekdays repeat exactly: a date that does not occur in
	// one cycle never occurs.
	calendarCycle = 400
)

// next returns the first fire at or after the instant from.
func (r *cronRule) next(from int64, zone *time.Location) (instant int64, found bool) {
	if r.anyHour {
		return r.nextElapsed(from, zone)
	}
	return r.nextDaily(from, zone)
}

// nextElapsed finds the first instant at which the local clock matches. Within a period this is plain arithmetic. A
// match after the period's end stays valid until the clock is set back to before the wall time at which the search
// began.
func (r *cronRule) nextElapsed(from int64, zone *time.Location) (instant int64, found bool) {
	var since, searched, wall int64 // no match in [searched, wall); since is the instant of that search
	for at := from; at <= lastFireTime.Unix(); {
		p := periodAt(at, zone)
		if now := at + p.offset; at == from || now < searched || now > wall {
			since, searched, wall = at, now, r.nextWall(now)
		}
		if instant = wall - p.offset; instant < p.end {
			return instant, true
		}
		at = p.end
		if at-since >= farShift { // the clock stays ahead of searched, and behind wall until a day before it
			at = max(at, wall-secondsPerDay)
		}
	}
	return 0, false
}

// nextDaily finds the first fire of an expression that names hours. Each matching wall time fires when the clock first
// shows it or a later time. This one rule covers gaps and overlaps, and keeps fires in the order of wall times.
func (r *cronRule) nextDaily(from int64, zone *time.Location) (instant int64, found bool) {
	wall := r.nextWall(shownBefore(from, zone))
	for wall-farShift <= lastFireTime.Unix() {
		instant = firstShown(wall, zone)
		if dayExists(wall, instant, zone) {
			return instant, true
		}
		wall = r.nextWall(startOfDay(wall) + secondsPerDay)
	}
	return 0, false
}

// shownBefore returns the earliest wall time that the local clock has not reached before the instant. Right after the
// clock was set back, this is the time that it showed before the change.
func shownBefore(instant int64, zone *time.Location) int64 {
	p := periodAt(instant-1, zone)
	wall := instant + p.offset
	for start := p.start; start > instant-farShift; start = p.start {
		p = periodAt(start-1, zone)
		wall = max(wall, start+p.offset)
	}
	return wall
}

// firstShown returns the first instant at which the local clock shows the wall time or a later one.
func firstShown(wall int64, zone *time.Location) int64 {
	at := wall - secondsPerDay // no zone is a day ahead of UTC
	for {
		p := periodAt(at, zone)
		if instant := max(at, wall-p.offset); instant < p.end {
			return instant
		}
		at = p.end
	}
}

// dayExists reports whether the clock shows any time of wall's day. instant is when the clock first reaches or passes
// wall.
func dayExists(wall, instant int64, zone *time.Location) bool {
	p := periodAt(instant, zone)
	start := startOfDay(wall)
	if instant+p.offset < start+secondsPerDay {
		return true
	}
	return firstShown(start, zone) != firstShown(start+secondsPerDay, zone)
}

// period is a stretch of time with one offset from UTC. Its end is excluded, and lies after the requested instant.
// Neighbouring periods may have the same offset.
type period struct{ start, end, offset int64 }

func periodAt(instant int64, zone *time.Location) period {
	if zone == time.UTC {
		return period{start: math.MinInt64, end: math.MaxInt64}
	}
	at := time.Unix(instant, 0).In(zone)
	_, offset := at.Zone()
	start, end := at.ZoneBounds()
	p := period{start: math.MinInt64, end: math.MaxInt64, offset: int64(offset)}
	if !start.IsZero() {
		p.start = start.Unix()
	}
	if !end.IsZero() {
		p.end = end.Unix()
	}
	if p.end <= instant {
		// After the last change in a zone's table, ZoneBounds ends every year after 365 days. This is the remaining
		// last day of a leap year.
		p.end = startOfDay(instant) + secondsPerDay
	}
	return p
}

// nextWall returns the first wall time at or after from that matches all fields. It always exists, because parsing
// refuses rules that never fire.
func (r *cronRule) nextWall(from int64) int64 {
	minutes := divide(from+secondsPerMinute-1, secondsPerMinute)
	day := divide(minutes, minutesPerDay)
	minute := int(minutes - day*minutesPerDay)
	match, _ := r.nextDay(day)
	if match == day {
		if minute, found := r.nextMinute(minute); found {
			return day*secondsPerDay + int64(minute)*secondsPerMinute
		}
		match, _ = r.nextDay(day + 1)
	}
	first := bits.TrailingZeros64(r.hours)*60 + bits.TrailingZeros64(r.minutes)
	return match*secondsPerDay + int64(first)*secondsPerMinute
}

// nextMinute returns the first matching minute of the day at or after the given one.
func (r *cronRule) nextMinute(minute int) (next int, found bool) {
	hour := minute / 60
	if r.hours>>hour&1 == 1 {
		if rest := r.minutes >> (minute % 60); rest != 0 {
			return minute + bits.TrailingZeros64(rest), true
		}
	}
	later := r.hours >> (hour + 1)
	if later == 0 {
		return 0, false
	}
	return (hour+1+bits.TrailingZeros64(later))*60 + bits.TrailingZeros64(r.minutes), true
}

// canFire reports whether any day matches.
func (r *cronRule) canFire() bool {
	_, found := r.nextDay(0)
	return found
}

// nextDay returns the first matching day at or after from, both counted from the Unix epoch.
func (r *cronRule) nextDay(from int64) (day int64, found bool) {
	date := time.Unix(from*secondsPerDay, 0).UTC()
	year, month, dayOfMonth := date.Date()
	first := from - int64(dayOfMonth) + 1 // the month's first day
	skip := uint64(1)<<dayOfMonth - 1     // days before from; bit 0 is not a day
	for last := year + calendarCycle; year <= last; {
		length := daysIn(year, month)
		if r.months>>month&1 == 1 {
			if days := r.daysOf(weekdayOf(first), length) &^ skip; days != 0 {
				return first + int64(bits.TrailingZeros64(days)) - 1, true
			}
		}
		first, skip = first+int64(length), 0
		if month++; month > time.December {
			year, month = year+1, time.January
		}
	}
	return 0, false
}

// daysOf returns the matching days, bits 1 to 31, of a month of this length that begins on firstWeekday.
func (r *cronRule) daysOf(firstWeekday, length int) uint64 {
	month := (uint64(1)<<length - 1) << 1
	days := r.days & month
	if r.lastDay {
		days |= 1 << length
	}
	dates := func(weekdays uint64) uint64 {
		firstWeek := (weekdays>>firstWeekday | weekdays<<(7-firstWeekday)) & allWeekdays
		return firstWeek * (1<<1 | 1<<8 | 1<<15 | 1<<22 | 1<<29) & month
	}
	weekdays := dates(r.weekdays) | dates(r.lastWeekdays)&^(month>>7)
	for n, set := 0, r.nthWeekdays; set != 0; n, set = n+1, set>>7 {
		weekdays |= dates(set&allWeekdays) & (allWeekdays << (7*n + 1))
	}
	if r.anyDay || r.anyWeekday {
		return days & weekdays
	}
	return days | weekdays
}

// weekdayOf returns the weekday of a day since the Unix epoch, which was a Thursday.
func weekdayOf(day int64) int {
	days := day + int64(time.Thursday)
	return int(days - 7*divide(days, 7))
}

func daysIn(year int, month time.Month) int {
	switch month {
	case time.February:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case time.April, time.June, time.September, time.November:
		return 30
	default:
		return 31
	}
}

func startOfDay(wall int64) int64 { return divide(wall, secondsPerDay) * secondsPerDay }

// divide rounds down: west of Greenwich, the first hours after the epoch have negative wall times.
func divide(a, b int64) int64 {
	if a%b < 0 {
		return a/b - 1
	}
	return a / b
}
