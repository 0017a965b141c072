package cli_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go/cli"
)

// Every program's doctor compares clocks where a table is named, also when nothing can be opened.
func TestDoctor_ClockIsOff_IsFoundByEveryProgramOnAWS(t *testing.T) {
	t.Parallel()
	ahead := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
	}))
	t.Cleanup(ahead.Close)
	for name, c := range map[string]struct {
		table  string
		down   bool
		code   int
		finds  string
		absent bool
	}{
		"opened":                   {table: "t", code: cli.ExitUsage, finds: "failed   clock: this machine's clock is off by 1h0m"},
		"not opened":               {table: "t", down: true, code: cli.ExitUnavailable, finds: "failed   clock: this machine's clock is off by 1h0m"},
		"a program without tables": {finds: "clock", absent: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.down = c.down
			w.env["AWS_ENDPOINT_URL"] = ahead.URL
			if c.table != "" {
				w.env["RUNLANE_TABLE"] = c.table
			}
			r := w.run(t.Context(), "doctor")
			if r.code != c.code || strings.Contains(r.stdout, c.finds) == c.absent {
				t.Errorf("exit %d, not %d, looking for %q in\n%s%s", r.code, c.code, c.finds, r.stdout, r.stderr)
			}
		})
	}
}

func TestDeviation_AllowsForTheSecondThatHTTPTells(t *testing.T) {
	t.Parallel()
	told := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		sent, received time.Duration // as this machine's clock says, from what was told
		wrong          bool
	}{
		{0, 10 * time.Millisecond, false},
		{900 * time.Millisecond, 910 * time.Millisecond, false},
		{3400 * time.Millisecond, 3500 * time.Millisecond, false},
		{3600 * time.Millisecond, 3700 * time.Millisecond, true},
		{-2400 * time.Millisecond, -2300 * time.Millisecond, false},
		{-2700 * time.Millisecond, -2600 * time.Millisecond, true},
		{-time.Minute, time.Minute, false}, // a slow answer proves nothing
	} {
		if got := cli.Deviation(told, told.Add(c.sent), told.Add(c.received)); got > cli.ClockTolerance != c.wrong {
			t.Errorf("%s to %s: off by %s", c.sent, c.received, got)
		}
	}
}
