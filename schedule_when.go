package runlane

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// When defines the times of a schedule. Make one with [Once], [Every] or [Cron]. Opening a runtime calls
// [When.Validate]. It is a plain value: comparable, safe to share, and independent of any clock.
//
// Every fire is a whole millisecond after the Unix epoch and before 2286-11-20T17:46:40Z, the limit of storages.
type When struct {
	kind         whenKind
	once, anchor time.Time
	every        time.Duration
	cron, zone   string
	rule         cronRule // of cron; valid is false when the expression has a fault
}

type whenKind uint8

const (
	whenOnce whenKind = iota + 1
	whenEvery
	whenCron
)

// MinInterval is the shortest interval for [Every].
const MinInterval = time.Second

// Fires lie after the epoch and at or before the last instant with 13 digits of milliseconds, the form in which
// storages keep them.
var (
	epoch        = time.UnixMilli(0).UTC()
	lastFireTime = FarMoment()
)

const hintInstants = "name an instant from 1970 to 2286"

// Once fires a single time, at the given instant, rounded down to a millisecond. An instant that is past at the
// schedule's first registration never fires.
func Once(at time.Time) When { return When{kind: whenOnce, once: UTCMillis(at)} }

// Every fires at multiples of d since the Unix epoch, independent of any time zone: Every(24*time.Hour) is midnight
// UTC. d is at least [MinInterval] and whole milliseconds. [When.From] moves the grid. For calendar days use [Cron].
func Every(d time.Duration) When { return When{kind: whenEvery, every: d} }

// From moves the grid of [Every] and is invalid for other kinds: the first fire is at the anchor, rounded down to a
// millisecond, and the others follow at multiples of the interval. Use a fixed instant: with one from the clock, each
// start of the program would define a different schedule. The zero time means no anchor.
func (w When) From(anchor time.Time) When { w.anchor = UTCMillis(anchor); return w }

// Cron fires by a five-field expression, in UTC; [When.In] changes the zone.
//
//	field         values           also
//	minute        0-59
//	hour          0-23
//	day of month  1-31             L: the last day
//	month         1-12 or JAN-DEC
//	day of week   0-7 or SUN-SAT   5L or FRIL: the last Friday; MON#2: the second Monday. 0 and 7 are Sunday
//
// Each takes * (or ? alone), values, ranges (9-17), steps of them (*/15, 10-50/20), and lists of all these
// (0,15-45/10). Names may be in any case. @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly stand
// for whole expressions.
//
// A field that begins with * or is ? is unrestricted, even if it skips values like */2. If both day fields are
// restricted, a day must match one of them: "0 0 1 * MON" is the first of the month and every Monday. Otherwise it must
// match both: "0 0 */2 * MON" is the Mondays among the odd days.
//
// The hour field decides what happens when local clocks change. If it is unrestricted, the schedule follows elapsed
// time and fires whenever the local clock matches: "0 * * * *" fires 23 times on a day that loses an hour and 25 times
// on one that repeats it. If it is restricted, each matching time of the local day fires once:
//
//	the clock jumps over the time    it fires at the first instant after the jump, several times as one fire
//	the clock shows the time twice   it fires the first time only
//	the local day does not exist     it does not fire
//
// [When.Validate] reports faults of the expression, each with a hint: "5/15" (write "5-59/15"), ranges that run
// backward, steps beyond their range, "W", "@reboot", "@every", a "TZ=" prefix, seconds, and dates that never occur,
// like February 30.
func Cron(expression string) When {
	rule, _ := parseCron(expression) // Validate reports the error: schedules are often package variables
	return When{kind: whenCron, cron: expression, zone: "UTC", rule: rule}
}

// In sets the cron expression's zone, a name of the IANA database like "Europe/Berlin". "Local" is refused, because
// every program of an environment must compute the same times.
func (w When) In(zone string) When { w.zone = zone; return w }

// Validate returns [ErrConfigurationInvalid] with a hint. It needs zone data, from the system or from time/tzdata,
// which package core imports.
func (w When) Validate() error {
	switch {
	case w.kind == 0:
		return badWhen("a schedule has no When", "use runlane.Once, runlane.Every or runlane.Cron")
	case w.kind != whenEvery && !w.anchor.IsZero():
		return badWhen("From is set on a When that is not an interval", "From belongs to runlane.Every")
	case w.kind != whenCron && w.zone != "":
		return badWhen("In is set on a When that is not a cron expression", "In belongs to runlane.Cron")
	case w.kind == whenOnce && (!w.once.After(epoch) || w.once.After(lastFireTime)):
		return badWhen("the instant of Once is "+w.once.Format(time.RFC3339), hintInstants)
	case w.kind == whenEvery:
		return w.validateInterval()
	case w.kind == whenCron:
		return w.validateCron()
	}
	return nil
}

func (w When) validateInterval() error {
	switch {
	case w.every < MinInterval:
		return badWhen(
			fmt.Sprintf("the interval of Every is %v", w.every),
			fmt.Sprintf("an interval is at least %v", MinInterval),
		)
	case w.every%time.Millisecond != 0:
		return badWhen(fmt.Sprintf("the interval of Every is %v", w.every), "an interval is whole milliseconds")
	case !w.anchor.IsZero() && (w.anchor.Before(epoch) || w.anchor.After(lastFireTime)):
		return badWhen("the anchor of Every is "+w.anchor.Format(time.RFC3339), hintInstants)
	}
	return nil
}

func (w When) validateCron() error {
	if !w.rule.valid {
		_, err := parseCron(w.cron)
		return err
	}
	_, err := loadZone(w.zone)
	return err
}

// Next returns the first fire strictly after the given instant, in UTC. ok is false if there is none: the single time
// is past, the fire would be after the last possible instant, or [When.Validate] refuses w. It takes less than a
// microsecond, or a few microseconds if the fire is decades away.
func (w When) Next(after time.Time) (next time.Time, ok bool) {
	if w.Validate() != nil || !after.Before(lastFireTime) {
		return time.Time{}, false
	}
	if after.Before(epoch) {
		after = epoch
	}
	switch w.kind {
	case whenOnce:
		next = w.once
	case whenEvery:
		next = w.nextInterval(after)
	case whenCron:
		zone, _ := loadZone(w.zone) // Validate has loaded it
		seconds, found := w.rule.next(after.Unix()+1, zone)
		if !found {
			return time.Time{}, false
		}
		next = time.Unix(seconds, 0).UTC()
	}
	if !next.After(after) || next.After(lastFireTime) {
		return time.Time{}, false
	}
	return next, true
}

func (w When) nextInterval(after time.Time) time.Time {
	start, step, ms := int64(0), w.every.Milliseconds(), after.UnixMilli()
	if !w.anchor.IsZero() {
		start = w.anchor.UnixMilli()
	}
	if ms < start {
		return w.anchor
	}
	return time.UnixMilli(start + ((ms-start)/step+1)*step).UTC()
}

// String returns the definition on one line: "once 2026-03-01T12:00:00Z", "every 15m from 2026-03-01T12:05:00Z", "cron
// 30 2 * * MON in Europe/Berlin". Spaces, case and a time's zone are normalized, so equal texts fire at equal times.
func (w When) String() string {
	switch w.kind {
	case whenOnce:
		return "once " + w.once.Format(time.RFC3339Nano)
	case whenEvery:
		text := "every " + FormatDuration(w.every)
		if !w.anchor.IsZero() {
			text += " from " + w.anchor.Format(time.RFC3339Nano)
		}
		return text
	case whenCron:
		return "cron " + clip(spellCron(w.cron), maxCronBytes) + " in " + w.zone
	default:
		return "never"
	}
}

// Location returns the zone of a cron expression, and UTC for others and for a zone that is not valid.
func (w When) Location() *time.Location {
	if zone, err := loadZone(w.zone); err == nil {
		return zone
	}
	return time.UTC
}

// zones caches loaded zones, because loading one reads a file. It holds only existing zones, so it is bounded.
var zones sync.Map // of name to *time.Location

func loadZone(name string) (*time.Location, error) {
	if zone, ok := zones.Load(name); ok {
		return zone.(*time.Location), nil
	}
	switch {
	case name == "":
		return nil, badWhen(
			"the zone of the cron expression is empty",
			`name a zone like "Europe/Berlin", or leave In out for UTC`,
		)
	case strings.EqualFold(name, "Local"):
		return nil, badWhen(
			`the zone of the cron expression is "Local"`,
			`name the zone, like "Europe/Berlin": machines differ in what is local`,
		)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, &Error{
			Code:    ErrConfigurationInvalid,
			Message: fmt.Sprintf("the zone %q is unknown", clip(name, 64)),
			Hint:    `use a name of the IANA time zone data base, like "Europe/Berlin" or "UTC"`,
			Cause:   err,
		}
	}
	zones.Store(name, zone)
	return zone, nil
}

func badWhen(message, hint string) *Error {
	return &Error{Code: ErrConfigurationInvalid, Message: message, Hint: hint}
}
