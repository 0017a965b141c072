package runlane_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
)

const (
	fiveFields = "write five fields: minute, hour, day-of-month, month, day-of-week"
	noSeconds  = fiveFields + "; there is none for seconds or years (runlane.Every takes seconds)"
	words      = "the words are @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly"
)

var refusedExpressions = []struct{ expression, fault, hint string }{
	{"", "it is empty", fiveFields},
	{" \t ", "it is empty", fiveFields},
	{"0 0 * *", "it has 4 of 5 fields", fiveFields},
	{"0 0 0 * * *", "it has 6 fields", noSeconds},
	{"0 0 0 * * MON 2026", "it has 7 fields", noSeconds},

	{"@reboot", "@reboot is not a time", "a schedule outlives its programs: trigger the run when the program starts"},
	{"@every 5m", "@every is not a cron expression", "use runlane.Every for intervals"},
	{"@Every", "@every is not a cron expression", "use runlane.Every for intervals"},
	{"@noon", `"@noon" is unknown`, words},
	{"@daily 5", `"@daily 5" is unknown`, words},
	{"TZ=Asia/Tokyo 0 2 * * *", "it begins with a zone", `name the zone with In("Asia/Tokyo")`},
	{"CRON_TZ=Asia/Tokyo 0 2 * * *", "it begins with a zone", `name the zone with In("Asia/Tokyo")`},
	{"tz=UTC @daily", "it begins with a zone", `name the zone with In("UTC")`},

	{"5/15 * * * *", `minute "5/15" steps from a single value`, `write "5-59/15"`},
	{"0 8/4 * * *", `hour "8/4" steps from a single value`, `write "8-23/4"`},
	{"0 0 1/10 * *", `day of month "1/10" steps from a single value`, `write "1-31/10"`},
	{"0 0 1 JAN/3 *", `month "JAN/3" steps from a single value`, `write "1-12/3"`},
	{"0 0 * * MON/2", `day of week "MON/2" steps from a single value`, `write "1-6/2"`},
	{"50/15 * * * *", `minute "50/15" steps from a single value`, `write "50"`},

	{"50-10 * * * *", `minute "50-10" runs backward`, `write "50-59,0-10"`},
	{"0 22-4 * * *", `hour "22-4" runs backward`, `write "22-23,0-4"`},
	{"0 23-0 * * *", `hour "23-0" runs backward`, `write "23,0"`},
	{"0 22-4/2 * * *", `hour "22-4/2" runs backward`, `write "22,0,2,4"`},
	{"0 0 28-3 * *", `day of month "28-3" runs backward`, `write "28-31,1-3"`},
	{"0 0 1 nov-feb *", `month "NOV-FEB" runs backward`, `write "11-12,1-2"`},
	{"0 0 * * SAT-MON", `day of week "SAT-MON" runs backward`, `write "6,0-1"`},
	{"0 0 * * 5-0", `day of week "5-0" runs backward`, `write "5-7"`},
	{"0 0 * * 7-2", `day of week "7-2" runs backward`, `write "0-2"`},

	{"*/60 * * * *", `minute "*/60" steps beyond its range`, "the step is at most 59; runlane.Every takes any interval"},
	{"0 */24 * * *", `hour "*/24" steps beyond its range`, "the step is at most 23; runlane.Every takes any interval"},
	{"10-20/11 * * * *", `minute "10-20/11" steps beyond its range`, "the step is at most 10; runlane.Every takes any interval"},
	{"0 0 * * */7", `day of week "*/7" steps beyond its range`, "the step is at most 6; runlane.Every takes any interval"},
	{"5-5/1 * * * *", `minute "5-5/1" steps beyond its range`, `write "5"`},
	{"*/0 * * * *", `minute "*/0" has a step that is not a number above 0`, "write a step from 1 to 59"},
	{"*/ * * * *", `minute "*/" has a step that is not a number above 0`, "write a step from 1 to 59"},
	{"0 1-5/x * * *", `hour "1-5/X" has a step that is not a number above 0`, "write a step from 1 to 23"},
	{"*/2/3 * * * *", `minute "*/2/3" has a step that is not a number above 0`, "write a step from 1 to 59"},

	{"60 * * * *", `minute "60" is out of range`, "minute takes 0-59"},
	{"0 24 * * *", `hour "24" is out of range`, "hour takes 0-23"},
	{"0 0 0 * *", `day of month "0" is out of range`, "day of month takes 1-31"},
	{"0 0 1-32 * *", `day of month "1-32" is out of range`, "day of month takes 1-31"},
	{"0 0 1 13 *", `month "13" is out of range`, "month takes 1-12 or JAN-DEC"},
	{"0 0 * * 8", `day of week "8" is out of range`, "day of week takes 0-7 or SUN-SAT"},
	{"-5 * * * *", `minute "-5" cannot be read`, "minute takes 0-59"},
	{"+5 * * * *", `minute "+5" cannot be read`, "minute takes 0-59"},
	{"1000 * * * *", `minute "1000" cannot be read`, "minute takes 0-59"},
	{"1.5 * * * *", `minute "1.5" cannot be read`, "minute takes 0-59"},
	{"0 0 1 MONDAY *", `month "MONDAY" cannot be read`, "month takes 1-12 or JAN-DEC"},
	{"0 0 * * ſun", `day of week "ſUN" cannot be read`, "day of week takes 0-7 or SUN-SAT"},
	{"0 MON * * *", `hour "MON" cannot be read`, "hour takes 0-23"},
	{"1-2-3 * * * *", `minute "1-2-3" cannot be read`, "minute takes 0-59"},
	{"1,,2 * * * *", `minute "" is empty`, "put one comma between two values"},
	{"1, * * * *", `minute "" is empty`, "put one comma between two values"},
	{"*5 * * * *", `minute "*5" mixes a wildcard with something else`, `write "*", "*/2" or values; "?" stands alone`},
	{"*-5 * * * *", `minute "*-5" mixes a wildcard with something else`, `write "*", "*/2" or values; "?" stands alone`},
	{"0 0 ?/2 * *", `day of month "?/2" mixes a wildcard with something else`, `write "*", "*/2" or values; "?" stands alone`},
	{"0 0 ?,3 * *", `day of month "?" mixes a wildcard with something else`, `write "*", "*/2" or values; "?" stands alone`},

	{"0 0 15W * *", `day of month "15W" asks for the nearest weekday`, `"W" does not exist: fire on MON-FRI, and judge the date in the handler`},
	{"0 0 LW * *", `day of month "LW" asks for the nearest weekday`, `"W" does not exist: fire on MON-FRI, and judge the date in the handler`},
	{"0 0 w * *", `day of month "W" asks for the nearest weekday`, `"W" does not exist: fire on MON-FRI, and judge the date in the handler`},
	{"0 0 L-3 * *", `day of month "L-3" combines "L" with something else`, `"L" stands alone: write "L" or a day`},
	{"0 0 1-L * *", `day of month "1-L" combines "L" with something else`, `"L" stands alone: write "L" or a day`},
	{"0 0 5L * *", `day of month "5L" asks for a last weekday`, `write "5L" in the day of week, or "L" for the last day of the month`},
	{"0 0 * * L", `day of week "L" names no weekday`, `write "5L" for the last Friday of the month, "6" for every Saturday`},
	{"0 0 * * 8L", `day of week "8L" names no weekday`, `write "5L" for the last Friday of the month, "6" for every Saturday`},
	{"0 0 * * MON#6", `day of week "MON#6" is not a weekday with its number`, `write one weekday and its number in the month, 1 to 5: "MON#2"`},
	{"0 0 * * MON-FRI#2", `day of week "MON-FRI#2" is not a weekday with its number`, `write one weekday and its number in the month, 1 to 5: "MON#2"`},
	{"L * * * *", `minute "L" cannot be read`, "minute takes 0-59"},

	{"0 0 30 2 *", "it can never fire", "no month that it names has such a day"},
	{"0 0 30,31 FEB ?", "it can never fire", "no month that it names has such a day"},
	{"0 0 31 4,6,9,11 *", "it can never fire", "no month that it names has such a day"},
	{"0 0 30 2 */2", "it can never fire", "no month that it names has such a day"},
	{"* * 31 4 *", "it can never fire", "no month that it names has such a day"},
	{"0 0 */30 2 MON#5", "it can never fire", "no month that it names has such a day"},

	{strings.Repeat("1,", 600) + "1 * * * *", "it has 1209 bytes", "use at most 1024"},
}

func TestCron_RefusesWithAHint(t *testing.T) {
	t.Parallel()
	for _, c := range refusedExpressions {
		when := runlane.Cron(c.expression)
		got, ok := errors.AsType[*runlane.Error](when.Validate())
		if !ok || got.Code != runlane.ErrConfigurationInvalid {
			t.Errorf("%q: got %v", c.expression, when.Validate())
			continue
		}
		if !strings.HasPrefix(got.Message, "cron expression ") || !strings.HasSuffix(got.Message, ": "+c.fault) || len(got.Message) > 200 {
			t.Errorf("%.40q: got message %s, want %s", c.expression, got.Message, c.fault)
		}
		if got.Hint != c.hint {
			t.Errorf("%.40q: got hint %s, want %s", c.expression, got.Hint, c.hint)
		}
		if next, ok := when.Next(time.Unix(0, 0)); ok {
			t.Errorf("%.40q fires at %v", c.expression, next)
		}
	}
}

// What a hint tells people to write has to be accepted.
func TestCron_HintsAreValid(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, c := range refusedExpressions {
		instead, found := strings.CutPrefix(c.hint, `write "`)
		fault := strings.SplitN(c.fault, `"`, 3)
		if !found || strings.Count(c.hint, `"`) != 2 || len(fault) < 3 {
			continue
		}
		checked++
		corrected := strings.Replace(strings.ToUpper(c.expression), fault[1], strings.TrimSuffix(instead, `"`), 1)
		if err := runlane.Cron(corrected).Validate(); err != nil {
			t.Errorf("%q becomes %q: %v", c.expression, corrected, err)
		}
	}
	if checked < 15 {
		t.Errorf("only %d hints were checked", checked)
	}
}

func TestCron_TakesEverySpelling(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{"0 0 1 1 *", "@yearly", "@annually", "@YEARLY", "00 00 01 01 *", "0 0 1 jan ?"},
		{"0 0 1 * *", "@monthly", " 0  0\t1 * * "},
		{"0 0 * * 0", "@weekly", "0 0 * * 7", "0 0 * * sun", "0 0 ? * SUN-SUN", "0 0 * * 7-7"},
		{"0 0 * * *", "@daily", "@midnight", "0 0 ? * ?"},
		{"0 * * * *", "@hourly", "0 ? * * *", "0 */1 * * *", "0 *,5 * * *"},
		{"0 0 * * 5-7", "0 0 * * FRI-SUN", "0 0 * * fri,Sat,0", "0 0 * * 5-7/1"},
		{"0 0 * * *", "0 0 * * *,0-7"},
		{"0 0 * * 5L", "0 0 * * FRIL", "0 0 * * fril"},
		{"0 0 * * 0L,1#2", "0 0 * * 7L,mon#2", "0 0 * * MON#2,SUNL"},
		{"0,59 0,23 * * *", "*/59 0-23/23 * * *"},
		{"0 0 L * *", "0 0 l * *", "0 0 L,L * *"},
	} {
		want := fires(t, runlane.Cron(same[0]), 200)
		for _, expression := range same[1:] {
			got := fires(t, runlane.Cron(expression), 200)
			for i := range want {
				if !got[i].Equal(want[i]) {
					t.Errorf("%q and %q: fire %d is at %v and %v", same[0], expression, i, want[i], got[i])
					break
				}
			}
		}
	}
}

func fires(t *testing.T, when runlane.When, n int) []time.Time {
	t.Helper()
	var found []time.Time
	for at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC); len(found) < n; {
		next, ok := when.Next(at)
		if !ok {
			t.Fatalf("%v: nothing after %v (%v)", when, at, when.Validate())
		}
		found, at = append(found, next), next
	}
	return found
}

// The first hours after the epoch are still 1969 west of Greenwich, and an offset need not be whole minutes.
func TestCron_AtTheEdgesOfTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ expression, zone, after, want string }{
		{"@hourly", "UTC", "0001-01-01T00:00:00Z", "1970-01-01T01:00:00Z"},
		{"@hourly", "UTC", "1969-12-31T23:59:59Z", "1970-01-01T01:00:00Z"},
		{"30 20 31 12 WED", "America/New_York", "1960-01-01T00:00:00Z", "1970-01-01T01:30:00Z"},
		{"0 0 1 1 *", "America/Los_Angeles", "1960-01-01T00:00:00Z", "1970-01-01T08:00:00Z"},
		{"30 * * * *", "America/Los_Angeles", "1960-01-01T00:00:00Z", "1970-01-01T00:30:00Z"},
		{"0 * * * *", "Africa/Monrovia", "1971-06-01T00:00:00Z", "1971-06-01T00:44:30Z"},
		{"0 12 * * *", "Africa/Monrovia", "1971-06-01T00:00:00Z", "1971-06-01T12:44:30Z"},
		{"0 12 21 8 *", "Pacific/Kwajalein", "1993-01-01T00:00:00Z", "1994-08-21T00:00:00Z"}, // 21 August 1993 does not exist
		{"@hourly", "UTC", "2286-11-20T16:59:59Z", "2286-11-20T17:00:00Z"},
		{"@hourly", "UTC", "2286-11-20T17:00:00Z", ""},
		{"@yearly", "America/New_York", "2286-01-02T00:00:00Z", ""},
		{"@hourly", "UTC", "9999-12-31T00:00:00Z", ""},
	} {
		after, err := time.Parse(time.RFC3339, c.after)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if next, ok := runlane.Cron(c.expression).In(c.zone).Next(after); ok {
			got = next.Format(time.RFC3339Nano)
		}
		if got != c.want {
			t.Errorf("%s in %s after %s: got %q, want %q", c.expression, c.zone, c.after, got, c.want)
		}
	}
}
