package runlane_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
)

func TestEventTypes_EveryConstantHasItsBody(t *testing.T) {
	t.Parallel()
	values := constants(t, "event.go", "EventType")
	if listed := runlane.EventTypes(); len(listed) != len(values) {
		t.Errorf("%d listed, %d constants", len(listed), len(values))
	}
	seen := map[string]string{}
	for _, value := range values {
		kind := runlane.EventType(value)
		if !slices.Contains(runlane.EventTypes(), kind) {
			t.Errorf("%s is not listed", kind)
		}
		body, err := runlane.UnmarshalBody(kind, []byte(`{}`))
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if _, unknown := body.(*runlane.UnknownEvent); unknown {
			t.Errorf("%s: its body is unknown", kind)
		}
		if got := (runlane.Event{Body: body}).Type(); got != kind {
			t.Errorf("the body of %s says that it is %s", kind, got)
		}
		// run.lease_claimed is *RunLeaseClaimed: names are one vocabulary.
		name := reflect.TypeOf(body).Elem().Name()
		if want := strings.ReplaceAll(strings.TrimPrefix(value, "run."), "_", ""); !strings.EqualFold(name, "run"+want) {
			t.Errorf("the body of %s is a %s", kind, name)
		}
		if other, twice := seen[name]; twice {
			t.Errorf("%s and %s share a body", kind, other)
		}
		seen[name] = value
	}
	if got := (runlane.Event{}).Type(); got != "" {
		t.Errorf("no body is of type %q", got)
	}
}

func TestEvent_JSONRoundTrips(t *testing.T) {
	t.Parallel()
	for i, body := range bodies(t) {
		t.Run(string(runlane.Event{Body: body}.Type()), func(t *testing.T) {
			t.Parallel()
			record := filled[runlane.EventRecord](t)
			record.Body = body
			want := record.Clone()
			dropBytes(want.Body)

			data, err := json.Marshal(record)
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{"RunCreated.Payload", "RunDebounced.Payload", "RunSucceeded.Output"} {
				if strings.Contains(string(data), secret) {
					t.Errorf("payload or output is in %s", data)
				}
			}
			var got runlane.EventRecord
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			if unknown, ok := got.Body.(*runlane.UnknownEvent); ok { // compared as JSON: json.Marshal may escape it
				equalJSON(t, bodies(t)[i].(*runlane.UnknownEvent).Data, unknown.Data)
				unknown.Data = want.Body.(*runlane.UnknownEvent).Data
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s\n%s", diff, data)
			}

			// The event alone, which has no id and no sequence.
			if data, err = json.Marshal(record.Event); err != nil {
				t.Fatal(err)
			}
			fields := map[string]json.RawMessage{}
			var alone runlane.Event
			if err := errors.Join(json.Unmarshal(data, &alone), json.Unmarshal(data, &fields)); err != nil {
				t.Fatal(err)
			}
			if unknown, ok := alone.Body.(*runlane.UnknownEvent); ok {
				unknown.Data = want.Body.(*runlane.UnknownEvent).Data
			}
			if diff := cmp.Diff(want.Event, alone); diff != "" {
				t.Errorf("event alone (-want +got)\n%s\n%s", diff, data)
			}
			if fields["id"] != nil || fields["sequence"] != nil {
				t.Errorf("event alone: %s", data)
			}
		})
	}
}

// dropBytes leaves what an event's JSON holds: payload and output are the user's bytes, kept beside it.
func dropBytes(body runlane.EventBody) {
	if b, ok := body.(*runlane.RunCreated); ok {
		b.Payload = nil
	}
	if b, ok := body.(*runlane.RunDebounced); ok {
		b.Payload = nil
	}
	if b, ok := body.(*runlane.RunSucceeded); ok {
		b.Output = nil
	}
}

func equalJSON(t *testing.T, want, got []byte) {
	t.Helper()
	var a, b any
	if err := errors.Join(json.Unmarshal(want, &a), json.Unmarshal(got, &b)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
}

func TestEvent_JSONIsHeaderTypeAndData(t *testing.T) {
	t.Parallel()
	record := runlane.EventRecord{ID: "evt_1", Sequence: 3, Event: runlane.Event{
		RunID: "run_1", Environment: "production", OccurredAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Actor: runlane.SystemActor,
		TraceCarrier: map[string]string{},
		Body:         &runlane.RunReleased{Attempt: 2, ResumeAt: time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC), Reason: "a < b"},
	}}
	got, err := record.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"id":"evt_1","sequence":3,"runId":"run_1","environment":"production","occurredAt":"2026-03-01T12:00:00Z",` +
		`"actor":{"type":"system"},"traceCarrier":{},"type":"run.released",` +
		`"data":{"attempt":2,"resumeAt":"2026-03-01T13:00:00Z","reason":"a < b"}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestEvent_TraceCarrier_EmptyAndAbsentSurviveJSON(t *testing.T) {
	t.Parallel()
	for _, carrier := range []map[string]string{nil, {}, {"k": "v"}} {
		body := &runlane.RunDeliveryRequested{Delivery: runlane.Delivery{RunID: "r", TraceCarrier: carrier}}
		data, err := json.Marshal(runlane.Event{RunID: "r", TraceCarrier: carrier, Body: body})
		if err != nil {
			t.Fatal(err)
		}
		var got runlane.Event
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		inner := got.Body.(*runlane.RunDeliveryRequested).Delivery.TraceCarrier
		if diff := cmp.Diff(carrier, got.TraceCarrier) + cmp.Diff(carrier, inner); diff != "" {
			t.Errorf("%v: %s", carrier, diff)
		}
	}
}

func TestEvent_UnknownType_KeepsItsBytes(t *testing.T) {
	t.Parallel()
	const data = `{"until": "2026-03-01T12:00:00Z",  "why": "a < b", "n": 1.0e2}`
	var event runlane.Event
	if err := json.Unmarshal([]byte(`{"runId":"run_1","type":"run.paused","data":`+data+`}`), &event); err != nil {
		t.Fatal(err)
	}
	unknown, ok := event.Body.(*runlane.UnknownEvent)
	if !ok || unknown.Type != "run.paused" || event.Type() != "run.paused" || string(unknown.Data) != data {
		t.Fatalf("got %#v", event.Body)
	}
	body, err := runlane.MarshalBody(unknown)
	if err != nil || string(body) != data {
		t.Errorf("body alone: got %s, %v", body, err)
	}
	body[0] = 'x'
	if string(unknown.Data) != data {
		t.Error("MarshalBody shares the event's bytes")
	}
	input := []byte(data)
	kept, err := runlane.UnmarshalBody("run.paused", input)
	if err != nil {
		t.Fatal(err)
	}
	input[0] = 'x'
	if string(kept.(*runlane.UnknownEvent).Data) != data {
		t.Error("UnmarshalBody shares its input")
	}
}

func TestEvent_BadJSON_IsAnError(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`[]`, `"x"`, `{`, `{"type":"run.started"}`, `{"type":"run.started","data":{"attempt":"one"}}`, `{"type":"run.started","data":[]}`,
		`{"occurredAt":"yesterday","type":"run.cancelled","data":{}}`,
	} {
		event := runlane.Event{RunID: "untouched"}
		if err := json.Unmarshal([]byte(text), &event); err == nil {
			t.Errorf("%s: read as %+v", text, event)
		}
		if event.RunID != "untouched" {
			t.Errorf("%s: the event was changed", text)
		}
	}
	if _, err := runlane.UnmarshalBody(runlane.EventStarted, []byte(`{"attempt":"one"}`)); !errors.Is(err, runlane.ErrInvariantViolation) {
		t.Errorf("got %v", err)
	}
	if _, err := json.Marshal(runlane.Event{RunID: "r"}); !errors.Is(err, runlane.ErrInvariantViolation) {
		t.Errorf("an event without a body: %v", err)
	}
	if _, err := runlane.MarshalBody(nil); !errors.Is(err, runlane.ErrInvariantViolation) {
		t.Errorf("no body: %v", err)
	}
	if _, err := json.Marshal(runlane.Event{Body: &runlane.UnknownEvent{Type: "x", Data: []byte(`{`)}}); err == nil {
		t.Error("an unknown body of broken JSON was written")
	}
}

func TestMarshalBody_IsWhatUnmarshalBodyReads(t *testing.T) {
	t.Parallel()
	for _, body := range bodies(t) {
		kind := runlane.Event{Body: body}.Type()
		data, err := runlane.MarshalBody(body)
		if err != nil {
			t.Fatal(err)
		}
		again, err := runlane.UnmarshalBody(kind, data)
		if err != nil {
			t.Fatal(err)
		}
		dropBytes(body)
		if diff := cmp.Diff(body, again); diff != "" {
			t.Errorf("%s (-want +got)\n%s", kind, diff)
		}
		if text := string(data); strings.Contains(text, `\u003c`) {
			t.Errorf("%s is escaped: %s", kind, text)
		}
	}
}

func TestKeyRetention_JSON(t *testing.T) {
	t.Parallel()
	for want, retention := range map[string]runlane.KeyRetention{
		`{}`:                              {},
		`{"whileActive":true}`:            {WhileActive: true},
		`{"ttl":"30d"}`:                   {TTL: 30 * 24 * time.Hour},
		`{"ttl":"1h30m"}`:                 {TTL: 90 * time.Minute},
		`{"whileActive":true,"ttl":"1w"}`: {WhileActive: true, TTL: 7 * 24 * time.Hour},
		`{"ttl":"-1ns"}`:                  {TTL: -1},
	} {
		got, err := json.Marshal(retention)
		if err != nil || string(got) != want {
			t.Errorf("%+v: got %s, %v, want %s", retention, got, err, want)
		}
		again := runlane.KeyRetention{WhileActive: true, TTL: 1} // must be replaced, not merged
		if err := json.Unmarshal(got, &again); err != nil || again != retention {
			t.Errorf("%s: got %+v, %v", got, again, err)
		}
	}
	for _, text := range []string{`{"ttl":"soon"}`, `{"ttl":30}`, `[]`} {
		var retention runlane.KeyRetention
		if err := json.Unmarshal([]byte(text), &retention); err == nil {
			t.Errorf("%s: read as %+v", text, retention)
		}
	}
	if data, err := json.Marshal(runlane.Run{ID: "r"}); err != nil || strings.Contains(string(data), "idempotencyRetention") {
		t.Errorf("a run without a key: %s, %v", data, err)
	}
}

// TestEvent_AtRest_HasWholeMilliseconds gives each instant of each body a fraction and another zone: a type whose times are forgotten fails.
func TestEvent_AtRest_HasWholeMilliseconds(t *testing.T) {
	t.Parallel()
	odd := time.Date(2026, 3, 1, 12, 0, 0, 1_999_999, time.FixedZone("east", 3600))
	var instants func(v reflect.Value, visit func(reflect.Value))
	instants = func(v reflect.Value, visit func(reflect.Value)) {
		switch {
		case v.Type() == reflect.TypeFor[time.Time]():
			visit(v)
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				instants(v.Field(i), visit)
			}
		}
	}
	for _, kind := range runlane.EventTypes() {
		body, err := runlane.UnmarshalBody(kind, []byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		instants(reflect.ValueOf(body).Elem(), func(v reflect.Value) { v.Set(reflect.ValueOf(odd)) })
		e := runlane.Event{RunID: "run_1", OccurredAt: odd, Meta: map[string]string{}, Body: body}
		got := e.AtRest()
		if !got.OccurredAt.Equal(runlane.UTCMillis(odd)) || string(got.Environment) != runlane.Environment("").Name() || got.Meta != nil {
			t.Errorf("%s: the header is not at rest: %+v", kind, got)
		}
		instants(reflect.ValueOf(got.Body).Elem(), func(v reflect.Value) {
			if at := v.Interface().(time.Time); at != runlane.UTCMillis(odd) {
				t.Errorf("%s: %v is not at rest", kind, at)
			}
		})
		instants(reflect.ValueOf(body).Elem(), func(v reflect.Value) {
			if at := v.Interface().(time.Time); at != odd {
				t.Errorf("%s: the caller's event was changed", kind)
			}
		})
	}
}
