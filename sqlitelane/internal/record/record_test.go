package record

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// fill gives every field a value that no other has.
func fill(v reflect.Value, next *int) {
	*next++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), next)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(noon.Add(time.Duration(*next) * time.Second)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), next)
		}
	case reflect.String:
		v.SetString(strings.Repeat("x", *next))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*next))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		if kind := v.Type().Elem().Kind(); kind == reflect.String || kind == reflect.Struct {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			fill(v.Index(0), next)
			fill(v.Index(1), next)
			return
		}
		v.Set(reflect.ValueOf([]byte(strings.Repeat("y", *next))).Convert(v.Type()))
	case reflect.Map:
		if v.Type().Elem().Kind() == reflect.Slice {
			v.Set(reflect.ValueOf(map[string]json.RawMessage{strings.Repeat("k", *next): json.RawMessage("true")}))
			return
		}
		v.Set(reflect.ValueOf(map[string]string{strings.Repeat("k", *next): "", "": "v"}))
	default:
		panic(v.Type().String())
	}
}

func wholeRun() *runlane.Run {
	r := &runlane.Run{}
	next := 0
	fill(reflect.ValueOf(r).Elem(), &next)
	r.Status, r.Sealed = runlane.StatusRunning, nil // which no storage keeps
	return r
}

// Every status comes back, and is in a list of the file; one of another version is kept.
func TestRecord_EveryStatusComesBack(t *testing.T) {
	t.Parallel()
	for _, status := range append(runlane.Statuses(), "of another version") {
		r := Record{Run: runlane.Run{ID: "r", Status: status}}
		got, err := Decode("", "r", r.Encode(nil))
		if err != nil || got.Run.Status != status {
			t.Errorf("%s: %v, %+v", status, err, got)
		}
		if known := slices.Contains(runlane.Statuses(), status); known && (StatusNumber(status) == 0 || r.Places(false).Kind == 0) {
			t.Errorf("%s has no number, or no list", status)
		}
	}
}

// A field of a run that this package does not store would be lost: a new one fails here.
func TestRecord_EveryFieldComesBack(t *testing.T) {
	t.Parallel()
	r := Record{Run: *wholeRun(), Payload: Inline, Output: Inline}
	next := 0
	for _, status := range outboxStatuses {
		d := Delivery{}
		fill(reflect.ValueOf(&d).Elem(), &next)
		d.Status = status
		r.Deliveries = append(r.Deliveries, d)
	}
	r.PayloadSum, r.FirstPublished, r.Woken = -7, embedded.At(noon.Add(time.Hour)), embedded.Wait{Kind: embedded.DelayedWakeup, Due: embedded.At(noon.Add(-time.Hour))}
	r.Events, r.First, r.Chunks = []byte("events"), 9, 3
	got, err := Decode(r.Run.Environment, r.Run.ID, r.Encode(nil))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(r, *got, cmp.AllowUnexported(Record{})); d != "" {
		t.Fatalf("(-stored +read):\n%s", d)
	}
	empty := Record{Run: runlane.Run{ID: "run_1", Environment: "e", Status: runlane.StatusQueued}, Outbox: embedded.Outbox[string]{FirstPublished: embedded.Absent}}
	got, err = Decode("e", "run_1", empty.Encode(nil))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(empty, *got, cmp.AllowUnexported(Record{})); d != "" {
		t.Fatalf("(-stored +read):\n%s", d)
	}
}

// docs/compatibility.md, What an addition is: a field that a newer program wrote survives an older one's write.
func TestRecord_KeepsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	r := Record{Run: *wholeRun(), Outbox: embedded.Outbox[string]{FirstPublished: embedded.Absent}}
	w := writer{b: r.Encode(nil)}
	w.text(1000, "of a newer program")
	w.number(1001, -5)
	got, err := Decode("e", "run_1", w.b)
	if err != nil {
		t.Fatal(err)
	}
	added := writer{}
	added.text(1000, "of a newer program")
	added.number(1001, -5)
	if !bytes.HasSuffix(got.Encode(nil), added.b) {
		t.Fatal("the fields of a newer program are gone")
	}
}

func eventsOfEveryType(run *runlane.Run) (events []runlane.Event) {
	next := 0
	for _, kind := range runlane.EventTypes() {
		body, err := runlane.UnmarshalBody(kind, []byte("{}"))
		if err != nil {
			panic(err)
		}
		fill(reflect.ValueOf(body).Elem(), &next)
		events = append(events, runlane.Event{
			RunID: run.ID, Environment: run.Environment, OccurredAt: noon.Add(time.Minute), Body: body,
			Actor: runlane.Actor{Type: "user", ID: string(kind)}, Meta: map[string]string{"a": "b"}, TraceCarrier: map[string]string{},
		}, runlane.Event{
			RunID: run.ID, Environment: run.Environment, OccurredAt: noon, Body: body, Actor: runlane.SystemActor,
		})
	}
	return append(events, runlane.Event{
		RunID: run.ID, Environment: run.Environment, OccurredAt: noon, Actor: runlane.Actor{},
		Body: &runlane.UnknownEvent{Type: "run.paused", Data: []byte(`{"why": 1.0e2}`)},
	})
}

// A field of an event that this package does not store would be lost: a new one fails here.
func TestEvents_EveryTypeComesBackWhole(t *testing.T) {
	t.Parallel()
	run := wholeRun()
	var stored []byte
	var want []runlane.EventRecord
	for i, e := range eventsOfEveryType(run) {
		switch body := e.Body.(type) { // what stands in the run, and in the keys
		case *runlane.RunCreated:
			*body = runlane.RunCreated{
				TaskID: run.TaskID, Queue: run.Queue, Payload: run.Payload, RunAt: body.RunAt, ConcurrencyKey: run.ConcurrencyKey,
				IdempotencyKey: run.IdempotencyKey, Retention: run.Retention, Debounced: debouncedAtFirst(run.Debounced),
				SingletonKey: run.SingletonKey,
				Priority:     run.Priority, Source: run.Source,
			}
		case *runlane.RunSucceeded:
			body.Output = run.Output
		case *runlane.RunDeliveryRequested:
			d := &body.Delivery
			d.Environment, d.RunID, d.Queue = run.Environment, run.ID, run.Queue
		}
		var err error
		if stored, err = AppendEvent(stored, &e, embedded.At(run.CreatedAt)); err != nil {
			t.Fatal(err)
		}
		sequence := int64(i) + 5
		want = append(want, runlane.EventRecord{ID: embedded.EventID(run.ID, sequence), Sequence: sequence, Event: lane.EventAtRest(e)})
	}
	got, err := Events(run, stored, 5)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("(-stored +read):\n%s", d)
	}
}

func TestShelve_ComesBackFromEveryPlace(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 4096)
	for i := range noise {
		noise[i] = byte(i * i >> 3 * 31)
	}
	for name, c := range map[string]struct {
		bytes []byte
		place Place
	}{
		"none": {nil, Nowhere}, "empty": {[]byte{}, Inline}, "small": {[]byte(`{"a":1}`), Inline},
		"large and regular": {bytes.Repeat([]byte("webhook "), 500), InlineZstd},
		"very large":        {[]byte(strings.Join(strings.Split(string(bytes.Repeat(noise, 3)), "\n"), "z")), 0},
	} {
		place, stored := Shelve(c.bytes)
		if c.place != 0 && place != c.place {
			t.Errorf("%s: place %d, want %d", name, place, c.place)
		}
		got, err := Open(place, stored)
		if err != nil || !bytes.Equal(got, c.bytes) || (got == nil) != (c.bytes == nil) {
			t.Errorf("%s: %d bytes came back as %d, %v", name, len(c.bytes), len(got), err)
		}
	}
}

// FuzzRecord gives bytes that no program stored: they are refused, or read without harm.
func FuzzRecord(f *testing.F) {
	r := Record{Run: *wholeRun(), Payload: Inline, Output: InlineZstd, Outbox: embedded.Outbox[string]{FirstPublished: embedded.Absent}}
	f.Add(r.Encode(nil), []byte{}, []byte{})
	var events []byte
	for _, e := range eventsOfEveryType(&r.Run) {
		events, _ = AppendEvent(events, &e, embedded.At(noon))
	}
	_, packed := Shelve(bytes.Repeat([]byte("x"), 5000))
	f.Add([]byte{1, 2}, events, packed)
	f.Add([]byte{}, []byte{0xff, 0xff}, EncodeWakeup(&lane.Wakeup{Queue: "q"}))
	f.Fuzz(func(t *testing.T, stored, events, other []byte) {
		if got, err := Decode("e", "run_1", stored); err == nil {
			again, err := Decode("e", "run_1", got.Encode(nil))
			if err != nil {
				t.Fatalf("%x is read, and not when it is written again: %v", stored, err)
			}
			if d := cmp.Diff(got.Encode(nil), again.Encode(nil)); d != "" {
				t.Fatalf("%x changes when it is written again:\n%s", stored, d)
			}
		}
		_, _ = Events(wholeRun(), events, 1)
		for place := Nowhere; place <= ApartZstd+1; place++ {
			_, _ = Open(place, other)
		}
		_, _ = DecodeWakeup("q", other)
	})
}
