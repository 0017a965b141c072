package console_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/server"
)

func nothing(context.Context, *runlane.Attempt, string) error { return nil }

// A task with keys is triggered with them: by its program, which computes them, and not by one that cannot.
func TestTrigger_OfATaskWithKeys_HasThem(t *testing.T) {
	t.Parallel()
	l := memlane.New()
	alone := runlane.NewTask("mail.alone", &runlane.TaskOptions[string]{SingletonKey: func(to string) string { return to }})
	once := runlane.NewTask("mail.once", &runlane.TaskOptions[string]{IdempotencyKey: func(to string) string { return to }})
	program := programOn(t, l, alone.Handle(nothing), once.Handle(nothing))
	if _, err := program.Tick(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	form := url.Values{"task": {"mail.alone"}, "payload": {`"ada"`}}
	access, words := tokens(t)
	own := siteOf(t, program, &server.Options{Access: access})
	own.post(http.StatusOK, "/login", url.Values{"token": {words["chief"]}, "to": {"/"}})
	own.post(http.StatusOK, "/trigger", form)
	own.has(own.post(http.StatusConflict, "/trigger", form), "singleton")
	again := url.Values{"task": {"mail.once"}, "payload": {`"ada"`}}
	own.post(http.StatusOK, "/trigger", again)
	own.has(own.post(http.StatusOK, "/trigger", again), "existed already")
	other := siteOf(t, programOn(t, l), nil)
	other.has(other.post(http.StatusBadRequest, "/trigger", form), "only its own program can", "--singleton-key")

	page, err := program.Runs().List(t.Context(), nil)
	if err != nil || len(page.Items) != 2 {
		t.Fatalf("%d runs, %v", len(page.Items), err)
	}
	for record, err := range program.Runs().Events(t.Context(), page.Items[0].ID, nil) {
		if err != nil || record.Event.Actor.ID != "chief" {
			t.Errorf("%s is by %+v, %v", record.Event.Type(), record.Event.Actor, err)
		}
	}
}

// What the server makes itself, no one else triggers.
func TestTrigger_OfTheServersTasks_IsRefused(t *testing.T) {
	t.Parallel()
	hook := runlane.NewTask[string](server.OwnTasks+"webhook", nil)
	s := siteOf(t, programOn(t, memlane.New(), hook.Handle(nothing)), nil)
	s.has(s.get(http.StatusOK, "/trigger"), "No task is known yet")
	refused := s.post(http.StatusBadRequest, "/trigger", url.Values{"task": {server.OwnTasks + "webhook"}, "payload": {`"x"`}})
	s.has(refused, "made by the server")
}

// A form delays a run, and sends what was typed alone: nothing is null.
func TestTrigger_ByAForm_WaitsItsDelay(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.has(s.get(http.StatusOK, "/trigger"), "spellcheck=\"false\">\n</textarea>")
	form := url.Values{"task": {"mail.welcome"}, "payload": {""}, "key": {"later"}, "delay": {"soon"}}
	s.has(s.post(http.StatusBadRequest, "/trigger", form), `<p class="bad" role="alert">`, `name="delay" value="soon"`)
	form.Set("delay", "2d")
	s.has(s.post(http.StatusOK, "/trigger", form), "in 2 days")
	run, err := s.Runs().FindCurrent(t.Context(), "mail.welcome", "later")
	if err != nil || string(run.Payload) != "null" || run.RunAt.Sub(run.CreatedAt) < 48*time.Hour {
		t.Errorf("%+v, %v", run, err)
	}
}
