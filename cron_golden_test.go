package runlane_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
)

var update = flag.Bool("update", false, "rewrite golden files")

// awkwardTimes are read by people: the golden file shows each fire as an instant and as the local clock shows it.
var awkwardTimes = []struct {
	title, zone, after string
	fires              int // of each expression
	expressions        []string
}{
	{"New York, 11 March 2018: 02:00 becomes 03:00", "America/New_York", "2018-03-11T05:30:00Z", 4, []string{
		"0 * * * *", "0 */2 * * *", "0 2 * * *", "30 2 * * *", "*/20 2 * * *", "30 1,2,3 * * *", "0 2,3 * * *", "0 1-3 * * *",
	}},
	{"New York, 4 November 2018: 02:00 becomes 01:00", "America/New_York", "2018-11-04T04:30:00Z", 4, []string{
		"0 * * * *", "30 */1 * * *", "0 1 * * *", "30 1 * * *", "*/30 1 * * *", "0 1,2 * * *", "0 2 * * *",
	}},
	{"New York, asked in the second 01:00 hour", "America/New_York", "2018-11-04T06:10:00Z", 2, []string{
		"30 1 * * *", "30 * * * *", "*/30 1-2 * * *",
	}},
	{"Berlin, 25 March 2018: 02:00 becomes 03:00", "Europe/Berlin", "2018-03-25T00:10:00Z", 3, []string{
		"*/30 * * * *", "30 2 * * *", "0 3 * * *", "15,45 2,3 * * SUN",
	}},
	{"Berlin, 28 October 2018: 03:00 becomes 02:00", "Europe/Berlin", "2018-10-27T23:10:00Z", 4, []string{
		"*/30 * * * *", "30 2 * * *", "0 2,3 * * *",
	}},
	{"Lord Howe, 7 October 2018: 02:00 becomes 02:30", "Australia/Lord_Howe", "2018-10-06T15:05:00Z", 4, []string{
		"*/15 */1 * * *", "0 * * * *", "15 2 * * *", "30 2 * * *", "0,15,30,45 2 * * *",
	}},
	{"Lord Howe, 1 April 2018: 02:00 becomes 01:30", "Australia/Lord_Howe", "2018-03-31T14:40:00Z", 4, []string{
		"*/15 */1 * * *", "0 * * * *", "45 1 * * *", "*/15 1 * * *", "0 2 * * *",
	}},
	{"Sao Paulo, 4 November 2018: midnight becomes 01:00", "America/Sao_Paulo", "2018-11-03T12:00:00Z", 3, []string{
		"@daily", "30 0 * * *", "0 0,1 * * *", "0 0 4 * *", "0 0 * * SUN", "*/30 0-1 * * *",
	}},
	{"Sao Paulo, 17/18 February 2018: midnight becomes 23:00", "America/Sao_Paulo", "2018-02-17T12:00:00Z", 4, []string{
		"@daily", "30 23 * * *", "30 23 * * SAT", "*/30 */23 17 2 *", "0 0,23 * * *",
	}},
	{"Apia, 30 December 2011 does not exist", "Pacific/Apia", "2011-12-29T08:00:00Z", 3, []string{
		"@daily", "0 12 * * *", "0 12 30 * *", "0 12 30 12 *", "0 12 * * FRI", "0 12 30,31 12 *", "0 */12 * * *",
	}},
	{"Nuuk, 30 March 2024: Saturday 23:00 becomes Sunday 00:00", "America/Nuuk", "2024-03-30T12:00:00Z", 3, []string{
		"30 23 * * *", "30 23 * * SAT", "0 0,23 * * *",
	}},
	{"Kolkata has no changes and half an hour", "Asia/Kolkata", "2018-03-10T20:00:00Z", 2, []string{
		"@hourly", "@daily", "30 2 * * *",
	}},
	{"The leap day", "UTC", "2019-01-01T00:00:00Z", 3, []string{
		"0 0 29 2 *", "0 0 29 2 MON", "0 0 * 2 MON#5", "0 12 L 2 *",
	}},
	{"The leap day that 2100 does not have", "Europe/Berlin", "2095-01-01T00:00:00Z", 3, []string{
		"0 0 29 2 *", "0 * * 2 MON#5",
	}},
	{"The last day of a leap year, beyond the table of changes", "America/New_York", "2096-12-31T12:00:00Z", 3, []string{
		"@daily", "0 */12 * * *", "30 23 31 12 *", "0 0 1 1 *", "0 */12 4 7 *",
	}},
	{"Day of month and day of week", "UTC", "2018-04-01T00:00:00Z", 5, []string{
		"0 0 13 * FRI", "0 0 */12 * FRI", "0 0 13 * *", "0 0 13 * */5", "0 0 ? * FRI", "0 0 31 * *", "0 0 L * *", "0 0 * * 5L", "0 0 * * MON#2",
		"0 0 * * 7", "0 0 * * FRI-SUN",
	}},
}

func TestCron_AwkwardTimesAreGolden(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	for _, group := range awkwardTimes {
		zone := location(t, group.zone)
		after, err := time.Parse(time.RFC3339, group.after)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&got, "# %s\n# after %s, which is %s\n", group.title, group.after, shownAt(after, zone))
		for _, expression := range group.expressions {
			when := runlane.Cron(expression).In(group.zone)
			fmt.Fprintf(&got, "\n%v\n", when)
			if err := when.Validate(); err != nil {
				t.Fatal(err)
			}
			at := after
			for range group.fires {
				next, ok := when.Next(at)
				if !ok {
					t.Fatalf("%v: nothing after %v", when, at)
				}
				fmt.Fprintf(&got, "  %s  %s\n", next.Format(time.RFC3339), shownAt(next, zone))
				at = next
			}
		}
		got.WriteString("\n")
	}
	name := filepath.Join("testdata", "cron_times.golden")
	if *update {
		if err := os.WriteFile(name, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("run with -update and read the difference (-want +got):\n%s", diff)
	}
}

func shownAt(instant time.Time, zone *time.Location) string {
	return instant.In(zone).Format("Mon 2006-01-02 15:04 MST")
}
