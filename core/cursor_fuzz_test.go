package core_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// FuzzCursors gives anything to every list of a runtime as its cursor. It is taken or refused as input; a cursor that was made for
// one list is refused by the others.
func FuzzCursors(f *testing.F) {
	rt, err := core.Open(context.Background(), memlane.New(), &core.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = rt.Close(context.Background()) })
	task := runlane.NewTask[json.RawMessage]("fuzz", nil)
	var id runlane.RunID
	for range 3 {
		result, err := rt.Trigger(context.Background(), task.With(json.RawMessage("1")), nil)
		if err != nil {
			f.Fatal(err)
		}
		id = result.Run.ID
	}
	page, err := rt.Runs().List(context.Background(), &core.ListOptions{Limit: 1})
	if err != nil || page.Next == "" {
		f.Fatal(err, "the list has no second page")
	}
	for record, err := range rt.Runs().Events(context.Background(), id, nil) {
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(core.EventCursor(&record)))
	}
	now, err := rt.Runs().FeedStart(context.Background())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(now))
	for _, text := range []string{string(page.Next), "", "~", "eyJoIjoiIiwicCI6IiJ9", "bnVsbA", strings.Repeat("A", 5000)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		after := runlane.Cursor(text)
		check := func(list string, err error) {
			if err != nil && (runlane.CodeOf(err) != runlane.ErrValidationFailed || len(err.Error()) > 400) {
				t.Fatalf("%s after %q: %v", list, text, err)
			}
		}
		accepted := 0
		count := func(list string, err error) {
			check(list, err)
			if err == nil {
				accepted++
			}
		}
		_, err := rt.Runs().List(t.Context(), &core.ListOptions{After: after, Limit: 1})
		count("runs", err)
		_, err = rt.DeadLetters().List(t.Context(), &core.ListOptions{After: after})
		count("dead letters", err)
		_, err = rt.Runs().Prune(t.Context(), &core.PruneOptions{After: after, OlderThan: time.Hour, DryRun: true})
		count("prune", err)
		_, err = rt.Runs().CancelAll(t.Context(), &core.BulkOptions{After: after, DryRun: true})
		count("bulk", err)
		events := error(nil)
		for _, err := range rt.Runs().Events(t.Context(), id, &core.EventOptions{After: after}) {
			events = err
		}
		count("events", events)
		logs := error(nil)
		for _, err := range rt.Runs().Logs(t.Context(), id, &core.LogOptions{After: after}) {
			logs = err
		}
		count("logs", logs)
		var told error
		for _, err := range rt.Runs().Feed(t.Context(), &core.FeedOptions{After: after}) {
			told = err
		}
		count("feed", told)
		if text != "" && accepted > 1 {
			t.Fatalf("%d lists take %q", accepted, text)
		}
	})
}
