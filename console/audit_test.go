package console_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/console"
	"github.com/runlane/runlane-go/server"
)

// Each change that is tried is a line of the log, in the words of the API's lines, one without the scope, too.
func TestAudit_EachChangeIsALine(t *testing.T) {
	t.Parallel()
	access, words := tokens(t)
	s := newSite(t, nil)
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	s = siteWith(t, s.World, &server.Options{Access: access, Logger: logger}, &console.Options{Logger: logger})
	for _, act := range []struct {
		who, path string
		form      url.Values
		status    int
		line      string
	}{
		{"reader", "/runs/" + string(s.Delayed) + "/cancel", nil, 403, "actor=reader operation=POST path=/runs/" + string(s.Delayed) + "/cancel code=forbidden"},
		{"chief", "/runs/" + string(s.Delayed) + "/cancel", nil, 200, "actor=chief operation=cancel run_id=" + string(s.Delayed) + " code=done"},
		{"chief", "/runs/" + string(s.Delayed) + "/resume", nil, 409, "operation=resume run_id=" + string(s.Delayed) + " code=storage_conflict"},
		{"chief", "/schedules/nightly/pause", nil, 200, `operation="schedule pause" schedule=nightly code=done`},
		{"chief", "/trigger", url.Values{"task": {"absent"}, "payload": {"1"}}, 404, ""},
	} {
		s.post(http.StatusOK, "/login", url.Values{"token": {words[act.who]}, "to": {"/"}})
		log.Reset()
		s.post(act.status, act.path, act.form)
		if lines := log.String(); !strings.Contains(lines, act.line) || act.line != "" && strings.Count(lines, "\n") != 1 {
			t.Errorf("%s by %s: no line %q in\n%s", act.path, act.who, act.line, lines)
		}
	}
}
