package sqstransport_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqstransport"
)

// sentBody publishes a wakeup and returns the message as SQS saw it.
func sentBody(t *testing.T, w lane.Wakeup) string {
	t.Helper()
	client := newFakeSQS()
	equal(t, "outcome", summary(publish(t, open(t, client, nil), []lane.PublishAttempt{{Wakeup: w}})), []string{"published"})
	return *client.sends[0].Entries[0].MessageBody
}

func TestMessage_Body_IsTheDocumentedContract(t *testing.T) {
	t.Parallel()
	w := wakeup("mail", "run_1")
	w.TraceCarrier = map[string]string{"traceparent": "00-a-b-01"}
	equal(t, "body", sentBody(t, w), `{"v":1,"environment":"prod","runId":"run_1","queue":"mail",`+
		`"requestedAt":"2026-11-03T12:00:00Z","traceCarrier":{"traceparent":"00-a-b-01"}}`)
	w.Environment, w.TraceCarrier = "", nil
	equal(t, "body of the default environment", sentBody(t, w), `{"v":1,"environment":"default","runId":"run_1","queue":"mail",`+
		`"requestedAt":"2026-11-03T12:00:00Z"}`)
}

func TestMessage_WhateverIsSent_ParsesToTheSameWakeupAndIsASCII(t *testing.T) {
	t.Parallel()
	text := rapid.StringOfN(rapid.Rune(), 0, 40, -1).Filter(utf8.ValidString)
	printable := rapid.StringOfN(rapid.RuneFrom([]rune("abc-_ /é漢🙂")), 1, 20, -1).Filter(func(s string) bool { return s != "/" })
	rapid.Check(t, func(r *rapid.T) {
		w := wakeup("mail", printable.Draw(r, "run"))
		w.Environment = runlane.Environment(printable.Draw(r, "environment"))
		w.TraceCarrier = rapid.MapOfN(text, text, 1, 4).Draw(r, "trace")
		body := sentBody(t, w)
		for i := range len(body) {
			if body[i] < 0x20 || body[i] > 0x7E {
				r.Fatalf("byte %#x in %q", body[i], body)
			}
		}
		got, err := sqstransport.ParseMessage(body)
		if err != nil {
			r.Fatal(err)
		}
		if diff := cmp.Diff(w, got); diff != "" {
			r.Fatal(diff)
		}
	})
}

func TestParseMessage_WhatIsNoWakeup_IsValidationFailedWithHint(t *testing.T) {
	t.Parallel()
	const rest = `"environment":"prod","runId":"r","queue":"mail","requestedAt":"2026-11-03T12:00:00Z"}`
	for name, text := range map[string]string{
		"empty":                 "",
		"no JSON":               "hello",
		"null":                  "null",
		"array":                 "[1]",
		"string":                `"run_1"`,
		"trailing text":         `{"v":1,` + rest + "x",
		"empty object":          "{}",
		"foreign object":        `{"Type":"Notification","Message":"hi"}`,
		"version missing":       "{" + rest,
		"version of another":    `{"v":2,` + rest,
		"version zero":          `{"v":0,` + rest,
		"version is text":       `{"v":"1",` + rest,
		"version in other case": `{"V":1,` + rest,
		"run missing":           `{"v":1,"environment":"prod","queue":"mail","requestedAt":"2026-11-03T12:00:00Z"}`,
		"run null":              `{"v":1,"environment":"prod","runId":null,"queue":"mail","requestedAt":"2026-11-03T12:00:00Z"}`,
		"run empty":             `{"v":1,"environment":"prod","runId":"","queue":"mail","requestedAt":"2026-11-03T12:00:00Z"}`,
		"run is a number":       `{"v":1,"environment":"prod","runId":7,"queue":"mail","requestedAt":"2026-11-03T12:00:00Z"}`,
		"run with colon":        `{"v":1,"environment":"prod","runId":"a:b","queue":"mail","requestedAt":"2026-11-03T12:00:00Z"}`,
		"environment missing":   `{"v":1,"runId":"r","queue":"mail","requestedAt":"2026-11-03T12:00:00Z"}`,
		"environment empty":     `{"v":1,"environment":"","runId":"r","queue":"mail","requestedAt":"2026-11-03T12:00:00Z"}`,
		"queue missing":         `{"v":1,"environment":"prod","runId":"r","requestedAt":"2026-11-03T12:00:00Z"}`,
		"queue too long":        `{"v":1,"environment":"prod","runId":"r","queue":"` + strings.Repeat("q", 201) + `","requestedAt":"2026-11-03T12:00:00Z"}`,
		"time missing":          `{"v":1,"environment":"prod","runId":"r","queue":"mail"}`,
		"time is a number":      `{"v":1,"environment":"prod","runId":"r","queue":"mail","requestedAt":1762171200}`,
		"trace of numbers":      `{"v":1,"traceCarrier":{"a":1},` + rest,
		"trace is a list":       `{"v":1,"traceCarrier":[],` + rest,
		"too long":              `{"v":1,"pad":"` + strings.Repeat("x", sqstransport.MaxMessageBytes) + `",` + rest,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := sqstransport.ParseMessage(text)
			e, ok := errors.AsType[*runlane.Error](err)
			if !ok || e.Code != runlane.ErrValidationFailed || e.Hint == "" {
				t.Fatalf("error is %v", err)
			}
			if len(text) > 20 && strings.Contains(err.Error(), text) {
				t.Error("the error repeats the body")
			}
		})
	}
}

func TestParseMessage_FieldOfLaterProgram_IsIgnored(t *testing.T) {
	t.Parallel()
	got, err := sqstransport.ParseMessage(`{"v":1,"later":{"a":[1]},"environment":"prod","runId":"r","queue":"mail",` +
		`"requestedAt":"2026-11-03T13:00:00.1239+01:00","traceCarrier":null}`)
	if err != nil {
		t.Fatal(err)
	}
	want := wakeup("mail", "r")
	want.RequestedAt = start.Add(123 * 1e6)
	equal(t, "wakeup", got, want)
}

func FuzzParseMessage(f *testing.F) {
	f.Add(`{"v":1,"environment":"prod","runId":"r","queue":"mail","requestedAt":"2026-11-03T12:00:00Z","traceCarrier":{"a":"b"}}`)
	f.Add(`{"v":1,"environment":"prod","runId":"r","queue":"mail"}`)
	f.Add(`{"v":1e0}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, text string) {
		w, err := sqstransport.ParseMessage(text)
		if err != nil {
			if runlane.CodeOf(err) != runlane.ErrValidationFailed {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if w.Environment == "" || w.RunID.Validate() != nil || w.Queue.Validate() != nil {
			t.Fatalf("accepted %+v", w)
		}
		if len(w.TraceCarrier) == 0 {
			w.TraceCarrier = nil // an empty one is left out when it is sent again
		}
		w.Queue = "mail" // one that is bound
		if w.RequestedAt.Year() < 0 || w.RequestedAt.Year() > 9998 {
			return // JSON has no such time
		}
		again, err := sqstransport.ParseMessage(sentBody(t, w))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(w, again); diff != "" {
			t.Fatal(diff)
		}
	})
}
