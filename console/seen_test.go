package console_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/server"
)

func TestHiddenPayloads_AreOnNoPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, &server.Options{HidePayloads: true})
	if page := s.get(http.StatusOK, "/runs/"+string(s.Succeeded)); strings.Contains(page, "ada") {
		t.Error("the page has the payload")
	}
	if page := s.get(http.StatusOK, "/runs/"+string(s.Asking)); !strings.Contains(page, "hidden") {
		t.Error("the page shows the result of a step")
	}
}

// Who has no scope of payloads sees everything else, and who has it sees them, on the same server.
func TestPayloads_AreForTheirScope(t *testing.T) {
	t.Parallel()
	access, words := tokens(t)
	s := newSite(t, &server.Options{Access: access})
	for who, sees := range map[string]bool{"reader": false, "chief": true} {
		s.post(http.StatusOK, "/login", url.Values{"token": {words[who]}, "to": {"/"}})
		page := s.get(http.StatusOK, "/runs/"+string(s.Succeeded))
		s.has(page, "run.succeeded")
		if strings.Contains(page, "ada") != sees || strings.Contains(page, "the scope payloads") == sees {
			t.Errorf("%s: the page of a run shows the payload: %t", who, !sees)
		}
		steps := s.get(http.StatusOK, "/runs/"+string(s.Asking))
		if strings.Contains(steps, "hidden</span>") == sees {
			t.Errorf("%s: the page of a run shows the result of a step: %t", who, !sees)
		}
	}
}

// The slots of a bounded queue, by key: who has them, and what waits for one.
func TestQueues_SlotsByKey(t *testing.T) {
	t.Parallel()
	task := runlane.NewTask("mail.send", &runlane.TaskOptions[string]{
		Queue: runlane.Queue{Name: "narrow", Concurrency: 2}, ConcurrencyKey: strings.Clone,
	})
	w := programOn(t, memlane.New(), task.Handle(func(context.Context, *runlane.Attempt, string) error { return nil }))
	s := siteOf(t, w, nil)
	s.has(s.get(http.StatusOK, "/queues"), "No active run has a concurrency key")
	for _, key := range []string{"ada", "ada", "ada", "<b>bob"} {
		if _, err := w.Trigger(t.Context(), task.With(key), nil); err != nil {
			t.Fatal(err)
		}
	}
	s.has(s.get(http.StatusOK, "/queues"), "2 for each key", "<code>ada</code>", "<code>&lt;b&gt;bob</code>", "2 of 2, 2 reserved", "1 of 2, 1 reserved")
}
