package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

func stepLogged(t *testing.T, h Harness) {
	task, handler := job("scenario.logged", &runlane.TaskOptions[jobPayload]{
		KeepLogs: true, Retry: runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(time.Second)},
	}, func(ctx context.Context, a *runlane.Attempt) error {
		a.Logger().With("table", "orders").Info("begins", "rows", 1.5)
		name := fmt.Sprintf("%010d:0000", a.Number) // as the record of the log
		if err := a.Do(ctx, name, func(context.Context) error { return nil }); err != nil {
			return permanent("%v", err)
		}
		a.Logger().Error("ends")
		if a.Number == 1 {
			return errNotYet
		}
		return nil
	})
	s := &stepScene{newScene(t, h, handler), task}
	run := s.attempts()
	s.wantSucceeded(run)
	var cursors []runlane.Cursor
	read := func(want string, o core.LogOptions) {
		t.Helper()
		var lines []string
		cursors = nil
		for line, err := range s.rt.Runs().Logs(t.Context(), run.ID, &o) {
			s.must(err)
			var said struct{ Level, Msg, Table string }
			s.must(json.Unmarshal(line.Line, &said))
			lines, cursors = append(lines, fmt.Sprintf("%d%v", line.Attempt, said)), append(cursors, line.Cursor)
		}
		if got := strings.Join(lines, " "); got != want {
			t.Errorf("%+v: %s, want %s", o, got, want)
		}
	}
	first, second := "1{INFO begins orders} 1{ERROR ends }", "2{INFO begins orders} 2{ERROR ends }"
	read(first+" "+second, core.LogOptions{})
	behind := cursors
	read("1{ERROR ends } "+second, core.LogOptions{After: behind[0], Follow: true})
	read(second, core.LogOptions{After: behind[1]})
	read("", core.LogOptions{After: behind[3], Follow: true})
	read(second, core.LogOptions{Attempt: 2})
	read("1{ERROR ends }", core.LogOptions{Attempt: 1, After: behind[0], Follow: true})
	records, err := s.rt.Runs().Steps(t.Context(), run.ID)
	if s.must(err); len(records) != 2 {
		t.Errorf("the run remembers %+v", records)
	}
}
