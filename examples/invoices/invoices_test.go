package invoices_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/examples/invoices"
	"github.com/runlane/runlane-go/runlanetest"
)

// company is what surrounds the service: it remembers, and fails on request.
type company struct {
	booked, mailed, reminded map[string]int
	late                     []invoices.Invoice
	link                     string
	refuse                   func(id string) error
}

func (c *company) Book(_ context.Context, key string, _ invoices.Invoice) (string, error) {
	c.booked[key]++
	return "R-" + key, nil
}

func (c *company) Late(context.Context) ([]invoices.Invoice, error) { return c.late, nil }

func (c *company) Invoice(_ context.Context, key string, _ invoices.Invoice, _ string) error {
	c.mailed[key]++
	return c.fault(key)
}

func (c *company) Reminder(_ context.Context, _ string, i invoices.Invoice) error {
	c.reminded[i.ID]++
	return c.fault(i.ID)
}

func (c *company) Approval(_ context.Context, _ invoices.Invoice, link string) error {
	c.link = link
	return nil
}

func (c *company) fault(id string) error {
	if c.refuse == nil {
		return nil
	}
	return c.refuse(id)
}

func open(t *testing.T) (*runlanetest.Runtime, *company, http.Handler) {
	t.Helper()
	c := &company{booked: map[string]int{}, mailed: map[string]int{}, reminded: map[string]int{}}
	app := &invoices.App{Books: c, Mail: c}
	rt := runlanetest.New(t, &runlanetest.Options{Handlers: app.Handlers(), Schedules: []runlane.Schedule{invoices.Nightly}})
	return rt, c, (&invoices.Service{Runs: rt.Runtime}).Handler()
}

func call(t *testing.T, h http.Handler, method, path string, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if method == http.MethodPost && strings.HasPrefix(path, "/approve") {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func state(t *testing.T, w *httptest.ResponseRecorder) (s invoices.State) {
	t.Helper()
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return s
}

func TestService_TheSameInvoiceTwice_IsSentOnce(t *testing.T) {
	t.Parallel()
	rt, c, h := open(t)
	const body = `{"id":"17","customer":"ada","cents":900}`
	first, again := call(t, h, "POST", "/invoices", body), call(t, h, "POST", "/invoices", body)
	if first.Code != http.StatusAccepted || again.Code != http.StatusAccepted || state(t, first).Run != state(t, again).Run {
		t.Errorf("%d, %d: %s", first.Code, again.Code, again.Body)
	}
	if other := call(t, h, "POST", "/invoices", `{"id":"17","customer":"ada","cents":901}`); other.Code != http.StatusConflict {
		t.Errorf("another content is %d", other.Code)
	}
	rt.Settle()
	if got := state(t, call(t, h, "GET", first.Header().Get("Location"), "")); got.Status != runlane.StatusSucceeded || got.Number != "R-17" {
		t.Errorf("%+v", got)
	}
	if c.booked["17"] != 1 || c.mailed["17"] != 1 {
		t.Errorf("%+v", c)
	}
}

func TestSend_AfterAFailedMail_BooksNoSecondTime(t *testing.T) {
	t.Parallel()
	rt, c, _ := open(t)
	c.refuse = func(string) error {
		if c.mailed["17"] < 3 {
			return errors.New("the mail server is down")
		}
		return nil
	}
	run := rt.Finish(rt.MustTrigger(invoices.Send.With(invoices.Invoice{ID: "17", Customer: "ada", Cents: 900}), nil).ID)
	runlanetest.RequireTransitions(t, run, "triggered",
		"attempt 1 started", "attempt 1 failed: task_failed, retry in 2s",
		"attempt 2 started", "attempt 2 failed: task_failed, retry in 4s",
		"attempt 3 started", "attempt 3 succeeded")
	if c.booked["17"] != 1 || c.mailed["17"] != 3 {
		t.Errorf("%+v", c)
	}
}

func TestService_ALargeInvoice_WaitsForItsLink(t *testing.T) {
	t.Parallel()
	for name, approved := range map[string]bool{"approved": true, "refused": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rt, c, h := open(t)
			taken := call(t, h, "POST", "/invoices", `{"id":"18","customer":"ada","cents":200000}`)
			rt.Settle()
			if asked := call(t, h, "GET", c.link, ""); !strings.Contains(asked.Body.String(), "Send invoice 18 of 2000.00 € to ada?") {
				t.Fatalf("%d %s", asked.Code, asked.Body)
			}
			rt.Advance(24 * time.Hour)
			form := url.Values{"by": {"grace"}, "approved": {map[bool]string{true: "true", false: "false"}[approved]}}.Encode()
			if answered := call(t, h, "POST", c.link, form); answered.Code != http.StatusSeeOther {
				t.Fatalf("%d %s", answered.Code, answered.Body)
			}
			rt.Settle()
			got := state(t, call(t, h, "GET", taken.Header().Get("Location"), ""))
			if approved != (got.Status == runlane.StatusSucceeded) || approved != (c.mailed["18"] == 1) {
				t.Errorf("%+v, mailed %d times", got, c.mailed["18"])
			}
			if late := call(t, h, "GET", c.link, ""); !strings.Contains(late.Body.String(), "Nothing is waiting") {
				t.Errorf("after the answer: %s", late.Body)
			}
		})
	}
}

func TestSend_NoOneApproves_IsRefused(t *testing.T) {
	t.Parallel()
	rt, c, h := open(t)
	id := rt.MustTrigger(invoices.Send.With(invoices.Invoice{ID: "19", Customer: "ada", Cents: 200000}), nil).ID
	rt.Settle()
	rt.Advance(7 * 24 * time.Hour)
	if run := rt.Finish(id); run.Failure.Code != "invoice_refused" || c.mailed["19"] != 0 {
		t.Errorf("%+v", run.Failure)
	}
	if forged := call(t, h, "GET", "/approve/forged", ""); forged.Code != http.StatusNotFound {
		t.Errorf("a forged link is %d", forged.Code)
	}
}

func TestNightly_RemindsAtSixInBerlin_EachOnce(t *testing.T) {
	t.Parallel()
	rt, c, _ := open(t)
	c.late = []invoices.Invoice{{ID: "1"}, {ID: "2"}, {ID: "3"}}
	c.refuse = func(id string) error {
		if id == "2" && c.reminded["2"] == 1 {
			return errors.New("the mail server is down")
		}
		return nil
	}
	next, _ := invoices.Nightly.When.Next(rt.Now())
	if berlin, err := time.LoadLocation("Europe/Berlin"); err != nil || next.In(berlin).Hour() != 6 {
		t.Fatalf("fires at %s, %v", next, err)
	}
	rt.Advance(next.Sub(rt.Now()) + time.Minute)
	if c.reminded["1"] != 1 || c.reminded["2"] != 2 || c.reminded["3"] != 1 {
		t.Errorf("%+v", c.reminded)
	}
}
