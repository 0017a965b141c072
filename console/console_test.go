package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/console"
	"github.com/runlane/runlane-go/console/internal/world"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/server"
)

// site is the console of a world, and a browser that looks at it.
type site struct {
	*world.World

	t       *testing.T
	url     string
	browser *http.Client
	header  http.Header // of the last answer
}

func newSite(t *testing.T, options *server.Options) *site {
	t.Helper()
	return newSiteOn(t, memlane.New(), options)
}

func newSiteOn(t *testing.T, l *lane.Lane, options *server.Options) *site {
	t.Helper()
	w, err := world.Open(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(context.Background()) })
	return siteOf(t, w, options)
}

// programOn is a program without the runs of a world.
func programOn(t *testing.T, l *lane.Lane, handlers ...runlane.Handler) *world.World {
	t.Helper()
	rt, err := core.Open(t.Context(), l, &core.Options{Logger: slog.New(slog.DiscardHandler), Handlers: handlers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close(context.Background()) })
	return &world.World{Runtime: rt}
}

// siteOf is the console of a runtime.
func siteOf(t *testing.T, w *world.World, options *server.Options) *site {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	if options == nil {
		options = &server.Options{}
	}
	options.Logger = quiet
	return siteWith(t, w, options, &console.Options{Logger: quiet})
}

func siteWith(t *testing.T, w *world.World, options *server.Options, of *console.Options) *site {
	t.Helper()
	options.Root = console.New(w.Runtime, of)
	handler, err := server.New(w.Runtime, options)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &site{World: w, t: t, url: s.URL + options.Prefix, browser: &http.Client{Jar: jar}}
}

// get reads a page as a browser does that follows a link.
func (s *site) get(want int, path string) string {
	s.t.Helper()
	return s.send(want, http.MethodGet, path, nil, map[string]string{"Sec-Fetch-Site": "none"})
}

// post sends a form of a page.
func (s *site) post(want int, path string, form url.Values) string {
	s.t.Helper()
	return s.send(want, http.MethodPost, path, form, map[string]string{"Sec-Fetch-Site": "same-origin"})
}

func (s *site) send(want int, method, path string, form url.Values, headers map[string]string) string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	answer, err := s.browser.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	s.header = answer.Header
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != want {
		s.t.Fatalf("%s %s: %s, %v\n%s", method, path, answer.Status, err, text)
	}
	return string(text)
}

func (s *site) has(page string, parts ...string) {
	s.t.Helper()
	for _, part := range parts {
		if !strings.Contains(page, part) {
			_, main, _ := strings.Cut(page, "<main")
			s.t.Errorf("the page does not have %q:\n%s", part, main)
		}
	}
}

func (s *site) status(id runlane.RunID) runlane.Status {
	s.t.Helper()
	run, err := s.Runs().Get(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return run.Status
}

func TestPages_ShowWhatThereIs(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for path, parts := range map[string][]string{
		"/":                              {"Needs attention", "approved): Refund 40 euros?", "raise the quota", string(s.Blocked), "Failed last", string(s.Failed), "slow", "Made and ended", "6 made; 3 ended, 1 of them failed"},
		"/runs":                          {string(s.Succeeded), string(s.Delayed), "waits for the answer of a person (approved)"},
		"/runs?status=failed":            {string(s.Failed), "Retry all"},
		"/runs?waiting=input":            {string(s.Asking)},
		"/runs?find=mail.broken":         {string(s.Failed)},
		"/runs?find=" + string(s.Failed): {"Failure", "mail.broken"},
		"/runs/" + string(s.Failed):      {"the mail server refused it", "runlane runs retry " + string(s.Failed)},
		"/runs/" + string(s.Asking):      {"Refund 40 euros?", "looked up", "Log of attempt 1", "INFO   asks for the refund  order=7 from=", "Answer approved", "Timeline", ">0</text>", ">step looked up</text>"},
		"/runs/" + string(s.Succeeded):   {"half way", "ada", "run.succeeded"},
		"/runs/" + string(s.Hostile):     {"12345678901234567890.10", `\u202e`},
		"/queues":                        {"slow", "default"},
		"/schedules":                     {"nightly", "runlane schedules pause nightly"},
		"/deadletters":                   {"There are none"},
		"/tasks":                         {"order.refund", "/trigger?task=mail.welcome"},
		"/trigger?task=order.refund":     {`<option value="order.refund" selected>`},
	} {
		s.has(s.get(http.StatusOK, path), append(parts, "<html lang=\"en\">", "Overview")...)
	}
	s.get(http.StatusNotFound, "/runs/absent")
	s.get(http.StatusNotFound, "/nowhere")
	s.get(http.StatusBadRequest, "/runs?status=odd")
}

// paid is a storage that is paid for by requests.
type paid struct{ lane.Storage }

func (p paid) Unwrap() lane.Storage { return p.Storage }

func (p paid) ListRuns(ctx context.Context, q *lane.RunQuery) (*runlane.Page[runlane.RunSummary], error) {
	lane.AddUsage(ctx, lane.Usage{Requests: 3, ReadUnits: 1.5})
	return p.Storage.ListRuns(ctx, q)
}

// Each page says what it has used, where that is counted.
func TestPages_SayWhatTheyCost(t *testing.T) {
	t.Parallel()
	if page := newSite(t, nil).get(http.StatusOK, "/runs"); strings.Contains(page, "read units") {
		t.Error("the page of a lane that counts nothing has read units")
	}
	l := memlane.New()
	l.Storage = paid{l.Storage}
	s := newSiteOn(t, l, nil)
	for range 2 { // what a page costs is not what all have cost
		s.has(s.get(http.StatusOK, "/runs"), " ms · 3 requests, 1.5 read units · ")
	}
}

// skipping is a storage whose schedules have left times out.
type skipping struct{ lane.Storage }

func (s skipping) Unwrap() lane.Storage { return s.Storage }

func (s skipping) ListScheduleOccurrences(
	_ context.Context, q *lane.OccurrenceQuery,
) (*runlane.Page[runlane.Occurrence], error) {
	if !q.SkippedOnly {
		return nil, errors.New("runs are not asked for")
	}
	fire := time.Date(2026, 1, 2, 2, 0, 0, 0, time.UTC)
	page := &runlane.Page[runlane.Occurrence]{}
	for _, why := range []runlane.SkipReason{
		runlane.SkippedMisfire, runlane.SkippedOverlap, runlane.SkippedSingleton, runlane.SkippedPaused, "odd<b>", "sixth",
	} {
		page.Items = append(page.Items, runlane.Occurrence{ScheduleID: q.ScheduleID, FireTime: fire, Skipped: why})
	}
	page.Items[0].Count = 3
	return page, nil
}

func TestSchedules_ShowWhatMadeNoRun(t *testing.T) {
	t.Parallel()
	l := memlane.New()
	l.Storage = skipping{l.Storage}
	page := newSiteOn(t, l, nil)
	shown := page.get(http.StatusOK, "/schedules")
	page.has(shown, ": missed, 3 times", ": the run before was active", ": another run had its singleton key", ": paused",
		": odd&lt;b&gt;", "older ones", `title="2026-01-02 02:00:00.000Z"`)
	if strings.Contains(shown, "sixth") {
		t.Error("more than five times are shown")
	}
}

// A body that the lane keeps apart is no part of the page.
func TestRun_LargeBodyIsALink(t *testing.T) {
	t.Parallel()
	task := runlane.NewTask[string]("large", nil)
	w := programOn(t, memlane.New(), task.Handle(func(context.Context, *runlane.Attempt, string) error { return nil }))
	result, err := w.Trigger(t.Context(), task.With(strings.Repeat("x", 2<<20)), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := siteOf(t, w, nil)
	page := s.get(http.StatusOK, "/runs/"+string(result.Run.ID))
	if s.has(page, "2097154 bytes, kept apart from the run", "SHA-256", "/payload\""); len(page) > 1<<20 {
		t.Errorf("the page has %d bytes", len(page))
	}
}

// What applications wrote is text on every page.
func TestPages_EscapeWhatRunsHold(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for _, path := range []string{"/", "/runs", "/runs/" + string(s.Hostile), "/runs/" + string(s.Failed)} {
		page := s.get(http.StatusOK, path)
		if strings.Contains(page, "<script>") || strings.Contains(page, "<img") || strings.Contains(page, "\u202e") {
			t.Errorf("%s has a tag or a mark of a payload", path)
		}
	}
	s.has(s.get(http.StatusOK, "/runs/"+string(s.Failed)), "&lt;script&gt;")
}

func TestPages_AllowWhatTheConsoleServesAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	answer, err := s.browser.Get(s.url + "/")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	policy := answer.Header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "form-action 'self'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("%q is not in %q", part, policy)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Error(policy)
	}
	if page := s.get(http.StatusOK, "/"); strings.Contains(page, "style=") || strings.Contains(page, "onclick") {
		t.Error("the page has what its policy forbids")
	}
}

func TestChanges_OfARun(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	at := func(id runlane.RunID, change string) string { return "/runs/" + string(id) + "/" + change }

	s.has(s.post(http.StatusOK, at(s.Delayed, "cancel"), url.Values{"reason": {"wrong address"}}), "cancelled", "<td>wrong address ")
	s.has(s.post(http.StatusOK, at(s.Failed, "retry"), nil), "queued", string(s.Failed))
	s.has(s.post(http.StatusOK, at(s.Succeeded, "rerun"), nil), "queued", string(s.Succeeded))
	s.post(http.StatusConflict, at(s.Blocked, "resume"), nil)
	s.has(s.post(http.StatusOK, at(s.Blocked, "resume"), s.seen(s.Blocked, "reason", "it is higher")), "<td>it is higher ")
	if got := s.status(s.Blocked); got != runlane.StatusQueued {
		t.Errorf("resumed: %s", got)
	}
	for _, body := range []string{"yes", "", " "} {
		s.has(s.post(http.StatusBadRequest, at(s.Asking, "signal"), url.Values{"signal": {"approved"}, "body": {body}}), "this is not JSON")
	}
	s.has(s.get(http.StatusOK, "/runs/"+string(s.Asking)), `rows="3" spellcheck="false" required>`+"\n</textarea>") // a click sends nothing
	s.post(http.StatusOK, at(s.Asking, "signal"), s.seen(s.Asking, "signal", "approved", "body", `{"by":"ada"}`))
	if got := s.status(s.Asking); got != runlane.StatusQueued {
		t.Errorf("answered: %s", got)
	}
	s.post(http.StatusNotFound, at(s.Asking, "explode"), nil)
	s.has(s.post(http.StatusOK, "/trigger", url.Values{"task": {"mail.welcome"}, "payload": {`{"to":"zoe"}`}}), "zoe", "queued")
	s.post(http.StatusNotFound, "/trigger", url.Values{"task": {"absent"}, "payload": {"1"}})
	s.has(s.post(http.StatusOK, "/queues/default/pause", url.Values{"reason": {"a migration"}}), "paused: a migration, since", "/queues/default/resume")
	s.has(s.post(http.StatusOK, "/queues/default/resume", nil), "/queues/default/pause")
	s.has(s.post(http.StatusOK, "/schedules/nightly/pause", url.Values{"reason": {"a migration"}}), "paused: a migration")
	s.has(s.post(http.StatusOK, "/schedules/nightly/resume", nil), "active")
	s.has(s.post(http.StatusOK, "/schedules/nightly/pause", nil), "<td>paused</td>")
	s.has(s.post(http.StatusOK, "/schedules/nightly/trigger", nil), "mail.welcome", "queued")
}

func TestQueuesAndTasks_SayWhatIsPaused(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	options := &core.PauseOptions{
		ChangeOptions: core.ChangeOptions{Reason: "a <fault>"}, Until: time.Now().Add(90 * time.Minute),
	}
	if _, err := s.Runtime.Queues().Pause(t.Context(), "default", options); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Runtime.Tasks().Pause(t.Context(), "mail.welcome", nil); err != nil {
		t.Fatal(err)
	}
	s.has(s.get(http.StatusOK, "/"), ", until <time", ": a &lt;fault&gt;, since <time")
	s.has(s.get(http.StatusOK, "/queues"), ", until <time", ": a &lt;fault&gt;, since <time")
	s.has(s.get(http.StatusOK, "/tasks"), `<p class="note">paused, since <time`)
}

// Many runs are counted first, and the number is typed where there are more than a hundred.
func TestBulk_CountsAsksAndChanges(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	var items []core.BatchItem
	for range 120 {
		items = append(items, core.BatchItem{
			Call:    world.Refund.With(json.RawMessage(`1`)),
			Options: &runlane.TriggerOptions{Queue: runlane.Queue{Name: "many"}},
		})
	}
	if _, err := s.TriggerBatch(t.Context(), items); err != nil {
		t.Fatal(err)
	}
	form := url.Values{"queue": {"many"}, "status": {"active"}}
	count := func() int {
		result, err := s.Runs().CancelAll(t.Context(), &core.BulkOptions{
			RunFilter: core.RunFilter{Queue: "many"}, DryRun: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		return result.Matched
	}
	s.has(s.post(http.StatusOK, "/bulk/cancel", form), "Cancel 120 runs?", "Type 120", "runlane runs cancel --status active --queue many")
	form.Set("sure", "yes")
	form.Set("seen", "119")
	s.has(s.post(http.StatusOK, "/bulk/cancel", form), "Now 120 runs match. Nothing was changed.")
	form.Set("seen", "120")
	s.has(s.post(http.StatusOK, "/bulk/cancel", form), "Type the number of runs, 120")
	if n := count(); n != 120 {
		t.Fatalf("%d of 120 are left before it was confirmed", n)
	}
	form.Set("count", "120")
	s.has(s.post(http.StatusOK, "/bulk/cancel", form), "120 runs were changed. For 0 there was nothing to do")
	if n := count(); n != 0 {
		t.Fatalf("%d of 120 are left", n)
	}
	s.post(http.StatusNotFound, "/bulk/explode", form)
}

func tokens(t *testing.T) (func(*http.Request) (server.Access, error), map[string]string) {
	t.Helper()
	words := map[string]string{}
	var all []server.Token
	for name, scopes := range map[string][]server.Scope{"reader": {server.ScopeRead}, "chief": server.Scopes()} {
		words[name] = fmt.Sprintf("token-of-%s-%032d", name, 7)
		all = append(all, server.Token{Name: name, Hash: server.HashToken(words[name]), Scopes: scopes})
	}
	access, err := server.TokenAccess(all...)
	if err != nil {
		t.Fatal(err)
	}
	return access, words
}

func TestLogin_KeepsTheTokenInACookie(t *testing.T) {
	t.Parallel()
	access, words := tokens(t)
	s := newSite(t, &server.Options{Access: access, Prefix: "/runlane"})
	s.has(s.get(http.StatusOK, "/runs?status=failed"), "Log in", `value="/runs?status=failed"`)
	s.has(s.post(http.StatusOK, "/login", url.Values{"token": {"wrong"}, "to": {"/runs"}}), "not known here")
	s.has(s.post(http.StatusOK, "/login", url.Values{"token": {words["reader"]}, "to": {"/runs/" + string(s.Failed)}}), "mail server refused")
	s.has(s.get(http.StatusOK, "/"), "read only", "/runlane/runs", ">reader </span>")
	if page := s.get(http.StatusOK, "/runs/"+string(s.Failed)); strings.Contains(page, "<button>Retry") {
		t.Error("a reader sees a button to retry")
	}
	s.has(s.post(http.StatusForbidden, "/runs/"+string(s.Failed)+"/retry", nil), "no scope operate")
	s.get(http.StatusForbidden, "/trigger")
	s.has(s.post(http.StatusOK, "/logout", nil), "Log in")
	s.post(http.StatusUnauthorized, "/runs/"+string(s.Failed)+"/retry", nil)
	s.has(s.post(http.StatusOK, "/login", url.Values{"token": {words["chief"]}, "to": {"/"}}), "Overview")
	s.post(http.StatusOK, "/runs/"+string(s.Failed)+"/retry", nil)
}

func TestDoctor_ShowsWhatIsWrong(t *testing.T) {
	t.Parallel()
	access, words := tokens(t)
	s := newSite(t, &server.Options{Access: access})
	s.post(http.StatusOK, "/login", url.Values{"token": {words["reader"]}, "to": {"/"}})
	s.has(s.get(http.StatusOK, "/doctor"), "Nothing has been checked yet", "need the scope operate")
	s.has(s.post(http.StatusForbidden, "/doctor", nil), "no scope operate")
	s.post(http.StatusOK, "/login", url.Values{"token": {words["chief"]}, "to": {"/"}})
	s.has(s.get(http.StatusOK, "/doctor"), "Check everything")
	s.has(s.post(http.StatusOK, "/doctor", nil), "runs end with this process or its host", "use a durable lane", "writes are allowed")
}
