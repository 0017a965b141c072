package runlane_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
)

// What is read here comes from people, from other programs and from storage. Anything is either read, and then it says the same
// when it is written again, or refused with a code.

func FuzzParseDuration(f *testing.F) {
	for _, text := range []string{"90s", "1w2d12h", "-30d", "0.5d", "1.000000001w", "106751d", "-15250w1d23h47m16.854775808s", "1d+1s", "", "d", "∞"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := runlane.ParseDuration(text)
		if err != nil {
			if runlane.CodeOf(err) != runlane.ErrValidationFailed || len(err.Error()) > 600 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if again, err := runlane.ParseDuration(runlane.FormatDuration(d)); err != nil || again != d {
			t.Fatalf("%q is %d, written %q, which is %d, %v", text, d, runlane.FormatDuration(d), again, err)
		}
	})
}

func FuzzRate(f *testing.F) {
	f.Add("600/min")
	f.Add("10/1m30s")
	f.Fuzz(func(t *testing.T, text string) {
		var rate, again runlane.Rate
		if rate.UnmarshalText([]byte(text)) != nil {
			return
		}
		if err := again.UnmarshalText([]byte(rate.String())); err != nil || again != rate {
			t.Errorf("%q reads as %v, and that as %v: %v", text, rate, again, err)
		}
		if err := (runlane.Queue{Name: "q", Rate: rate}).Validate(); err != nil {
			t.Error(err)
		}
	})
}

func FuzzKeyRetention(f *testing.F) {
	f.Add([]byte(`{"ttl":"30d"}`))
	f.Add([]byte(`{"whileActive":true}`))
	f.Add([]byte(`{"ttl":"1e9d"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var k, again runlane.KeyRetention
		if json.Unmarshal(text, &k) != nil {
			return
		}
		b, err := json.Marshal(k)
		if err == nil {
			err = json.Unmarshal(b, &again)
		}
		if err != nil || k != again {
			t.Fatalf("%q is %+v, written %s, which is %+v, %v", text, k, b, again, err)
		}
	})
}

func FuzzIDs(f *testing.F) {
	for _, text := range []string{"run_1", "", "a:b", "\x00", "\u202eabc", "\xed\xa0\x80", "é漢🙂", strings.Repeat("x", 201)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for what, err := range map[string]error{
			"run id": runlane.RunID(text).Validate(), "task id": runlane.TaskID(text).Validate(), "queue": runlane.QueueName(text).Validate(),
			"schedule id": runlane.ScheduleID(text).Validate(), "environment": runlane.Environment(text).Validate(),
			"key": runlane.ValidateKey("key", text),
		} {
			if err != nil {
				if runlane.CodeOf(err) != runlane.ErrValidationFailed || len(err.Error()) > 600 || !utf8.ValidString(err.Error()) {
					t.Fatalf("%s %q: %v", what, text, err)
				}
				continue
			}
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\n\r\t\u202e\u2028") || what != "key" && strings.Contains(text, ":") {
				t.Fatalf("%s %q is valid", what, text)
			}
		}
	})
}

// A payload that is taken comes back byte for byte; one that is not is never repeated in the error.
func FuzzPayload(f *testing.F) {
	for _, text := range []string{`{"a":1}`, ` {"a": 1e999, "a": 2} `, `"\ud800"`, "", "nul", `{"a":}`, "\x00", strings.Repeat("[", 20_000)} {
		f.Add([]byte(text))
	}
	task := runlane.NewTask[json.RawMessage]("fuzz", nil)
	typed := runlane.NewTask[struct{ N int64 }]("fuzz", nil)
	f.Fuzz(func(t *testing.T, payload []byte) {
		p, err := task.With(payload).Prepare()
		if err != nil {
			if runlane.CodeOf(err) != runlane.ErrValidationFailed || len(err.Error()) > 200 {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(p.Payload, payload) {
			t.Fatalf("%q became %q", payload, p.Payload)
		}
		if _, err := typed.Decode(payload); err != nil && (runlane.CodeOf(err) != runlane.ErrValidationFailed || len(err.Error()) > 300) {
			t.Fatal(err)
		}
	})
}

// An event that was read and is written again is the same event, also one of an unknown type.
func FuzzEventRecord(f *testing.F) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, body := range []runlane.EventBody{
		&runlane.RunCreated{TaskID: "t", Queue: "q", RunAt: at, Retention: runlane.KeyRetention{TTL: time.Hour}},
		&runlane.RunDeliveryRequested{Delivery: runlane.Delivery{RunID: "r", Queue: "q", AvailableAt: at}},
		&runlane.RunLeaseClaimed{Lease: runlane.Lease{Token: "t", WorkerID: "w", ExpiresAt: at}},
		&runlane.RunFailed{Attempt: 1, Failure: runlane.Failure{Code: "boom", Meta: map[string]string{"k": "v"}}},
		&runlane.UnknownEvent{Type: "run.paused", Data: json.RawMessage(`{"a":[1.0]}`)},
	} {
		text, err := json.Marshal(runlane.EventRecord{ID: "e", Sequence: 1, Event: runlane.Event{RunID: "r", OccurredAt: at, Body: body}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"type":"run.created","data":null}`))
	f.Add([]byte(`{"type":"run.created"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var record, again runlane.EventRecord
		if err := json.Unmarshal(text, &record); err != nil {
			return
		}
		written, err := json.Marshal(record)
		if err != nil {
			return // a year that JSON has no form for
		}
		if err := json.Unmarshal(written, &again); err != nil {
			t.Fatalf("%s is written as %s: %v", text, written, err)
		}
		rewritten, err := json.Marshal(again)
		if err != nil || !bytes.Equal(written, rewritten) {
			t.Fatalf("%v\n%s", err, cmp.Diff(string(written), string(rewritten)))
		}
	})
}

// Anything as a schema and a body: both are read, or refused, and no error quotes the body.
func FuzzSignalSchema(f *testing.F) {
	for _, schema := range []string{
		`{"type":["object","null"],"properties":{"a":{"type":"integer","maximum":1e400}},"required":["a"],"additionalProperties":false}`,
		`{"anyOf":[{"enum":[1.0,"x"]},{"const":null},false]}`, `{"items":{"pattern":"^a+$"},"maxItems":2}`, `{"$ref":"#"}`, `true`, "{",
	} {
		f.Add([]byte(schema), []byte(`{"a":1}`))
		f.Add([]byte(schema), []byte(`["a",1e999999999]`))
	}
	f.Fuzz(func(t *testing.T, schema, body []byte) {
		w := &runlane.Waiting{
			For: []runlane.WaitingFor{runlane.WaitingSignal}, Names: []string{"s"}, Schemas: map[string]json.RawMessage{"s": schema},
		}
		for _, err := range []error{w.Validate(), w.CheckBody("s", slices.Concat(body, []byte("secret-of-the-body"))), w.CheckBody("s", body)} {
			if err != nil && (runlane.CodeOf(err) != runlane.ErrValidationFailed || strings.Contains(err.Error(), "secret-of")) {
				t.Fatalf("%q, %q: %v", schema, body, err)
			}
		}
	})
}
