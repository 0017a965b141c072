package runlane_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/runlane/runlane-go"
)

type welcome struct {
	UserID string `json:"userId"`
	Note   string `json:"note,omitempty"`
}

func TestNewTask_FillsDefaults(t *testing.T) {
	t.Parallel()
	task := runlane.NewTask[welcome]("emails.welcome", nil)
	want := &runlane.Definition{ID: "emails.welcome", IdempotencyTTL: runlane.DefaultIdempotencyTTL, Queue: runlane.DefaultQueue}
	ignore := cmpopts.IgnoreUnexported(runlane.Definition{})
	if diff := cmp.Diff(want, task.Definition(), ignore); diff != "" || task.Definition().Err() != nil {
		t.Errorf("%v: %s", task.Definition().Err(), diff)
	}
	prepared, err := task.With(welcome{UserID: "u"}).Prepare()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(runlane.Prepared{Payload: []byte(`{"userId":"u"}`), IdempotencyTTL: runlane.DefaultIdempotencyTTL}, prepared); diff != "" {
		t.Error(diff)
	}
}

func TestNewTask_CopiesItsOptions(t *testing.T) {
	t.Parallel()
	options := &runlane.TaskOptions[welcome]{
		ConcurrencyKey: func(p welcome) string { return "c-" + p.UserID }, ErrorMessages: true,
		IdempotencyKey: func(p welcome) string { return "i-" + p.UserID }, IdempotencyTTL: runlane.WhileActive,
		Queue: runlane.Queue{Name: "emails", Concurrency: 3}, Retry: runlane.Retry{MaxAttempts: 5, Backoff: runlane.Fixed(time.Second)},
		SingletonKey: func(p welcome) string { return "s-" + p.UserID }, Timeout: time.Minute,
	}
	task := runlane.NewTask("emails.welcome", options)
	*options = runlane.TaskOptions[welcome]{} // a later change is not seen
	want := &runlane.Definition{
		ID: "emails.welcome", ErrorMessages: true, IdempotencyTTL: runlane.WhileActive,
		Keys:  runlane.TaskKeys{Concurrency: true, Idempotency: true, Singleton: true},
		Queue: runlane.Queue{Name: "emails", Concurrency: 3},
		Retry: runlane.Retry{MaxAttempts: 5, Backoff: runlane.Fixed(time.Second)}, Timeout: time.Minute,
	}
	if diff := cmp.Diff(want, task.Definition(), cmpopts.IgnoreUnexported(runlane.Definition{})); diff != "" {
		t.Error(diff)
	}
	got, err := task.With(welcome{UserID: "u"}).Prepare()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(runlane.Prepared{
		Payload: []byte(`{"userId":"u"}`), ConcurrencyKey: "c-u", IdempotencyKey: "i-u", IdempotencyTTL: runlane.WhileActive, SingletonKey: "s-u",
	}, got); diff != "" {
		t.Error(diff)
	}
}

func TestNewTask_FaultsSurfaceLater(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		id      runlane.TaskID
		options *runlane.TaskOptions[int]
		want    string
	}{
		"no id":            {"", nil, "task id is empty"},
		"bad id":           {"a:b", nil, "task id contains ':'"},
		"queue":            {"t", &runlane.TaskOptions[int]{Queue: runlane.Queue{Concurrency: 3}}, "queue has a bad name"},
		"retry":            {"t", &runlane.TaskOptions[int]{Retry: runlane.Retry{MaxAttempts: -1}}, "Retry.MaxAttempts is -1"},
		"backoff alone":    {"t", &runlane.TaskOptions[int]{Retry: runlane.Retry{Backoff: runlane.Fixed(1)}}, "MaxAttempts allows no retry"},
		"timeout":          {"t", &runlane.TaskOptions[int]{Timeout: -1}, "Timeout is negative"},
		"ttl":              {"t", &runlane.TaskOptions[int]{IdempotencyTTL: -2}, "IdempotencyTTL is negative"},
		"several at once":  {"", &runlane.TaskOptions[int]{Timeout: -1}, "Timeout is negative"},
		"several, another": {"", &runlane.TaskOptions[int]{Timeout: -1}, "task id is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := runlane.NewTask(c.id, c.options)
			err := task.Definition().Err()
			got, ok := errors.AsType[*runlane.Error](err)
			if !ok || got.Code != runlane.ErrConfigurationInvalid || !strings.Contains(got.Message, c.want) || got.Hint == "" {
				t.Fatalf("got %v, want %s", err, c.want)
			}
			if strings.Contains(got.Error(), "\n") {
				t.Errorf("more than one line: %q", got.Error())
			}
			if _, prepareErr := task.With(1).Prepare(); !errors.Is(prepareErr, err) {
				t.Errorf("Prepare says %v", prepareErr)
			}
			if _, prepareErr := runlane.NewRawCall(task.Definition(), []byte(`1`)).Prepare(); !errors.Is(prepareErr, err) {
				t.Errorf("a raw call says %v", prepareErr)
			}
		})
	}
}

// exotic are valid JSON values that encoding/json would rewrite.
var exotic = []string{
	`{"a": "<b>", "n": 1.0e2}`,
	"  {\"a\":\t1 }\n",
	`"\ud800"`, // a surrogate without its other half
	`"\u003c&\u2028"`,
	`{"z":1,"a":2,"z":3}`,
	`1E400`,
	`-0.0`,
	`12345678901234567890123`,
	"\"\u2028<>&\"",
	"\"\xff\"", // not UTF-8, which json.Valid lets pass
	` null `,
}

func TestRawMessage_KeepsItsBytes(t *testing.T) {
	t.Parallel()
	task := runlane.NewTask[json.RawMessage]("raw", nil)
	for _, payload := range exotic {
		given := json.RawMessage(payload)
		for name, call := range map[string]runlane.Call{"task": task.With(given), "raw call": runlane.NewRawCall(task.Definition(), given)} {
			prepared, err := call.Prepare()
			if err != nil || string(prepared.Payload) != payload {
				t.Errorf("%s, %q: got %q, %v", name, payload, prepared.Payload, err)
				continue
			}
			prepared.Payload[0] = 'x'
			if string(given) != payload {
				t.Fatalf("%s: the prepared payload shares the caller's bytes", name)
			}
		}

		var got json.RawMessage
		stored := []byte(payload)
		handler := task.Handle(func(_ context.Context, _ *runlane.Attempt, p json.RawMessage) error { got = p; return nil })
		if err := handler.Execute(t.Context(), &runlane.Attempt{}, stored); err != nil || string(got) != payload {
			t.Errorf("handler, %q: got %q, %v", payload, got, err)
		}
		got[0] = 'x'
		if string(stored) != payload {
			t.Fatal("the handler shares the stored bytes")
		}

		var output json.RawMessage
		attempt := runlane.NewAttempt(runlane.Run{}, 1, runlane.AttemptHost{Reports: reports{
			output: func(b json.RawMessage) error { output = b; return nil },
		}})
		if err := attempt.SetOutput(json.RawMessage(payload)); err != nil || string(output) != payload {
			t.Errorf("output, %q: got %q, %v", payload, output, err)
		}
	}
}

func TestPayload_IsEncodedWithoutHTMLEscapes(t *testing.T) {
	t.Parallel()
	prepared, err := runlane.NewTask[welcome]("t", nil).With(welcome{UserID: "<a&b>", Note: "é"}).Prepare()
	if err != nil || string(prepared.Payload) != `{"userId":"<a&b>","note":"é"}` {
		t.Errorf("got %q, %v", prepared.Payload, err)
	}
}

func TestPrepare_RefusesWhatIsNoPayload(t *testing.T) {
	t.Parallel()
	raw := runlane.NewTask[json.RawMessage]("raw", nil)
	for want, call := range map[string]runlane.Call{
		"payload is not valid JSON at byte 11":             raw.With(json.RawMessage(`{"secret":}`)),
		"payload is not valid JSON at byte 7":              raw.With(json.RawMessage(`"secret`)),
		"payload is not valid JSON at byte 3":              raw.With(json.RawMessage(`1 2`)),
		"payload is not valid JSON at byte 0":              raw.With(nil),
		"payload of type chan int does not encode as JSON": runlane.NewTask[chan int]("c", nil).With(nil),
		"payload of type float64 does not encode as JSON":  runlane.NewTask[float64]("f", nil).With(math.NaN()),
		"payload of type func() does not encode as JSON":   runlane.NewTask[func()]("f", nil).With(func() {}),
		"payload has 134217729 bytes, more than 134217728": raw.With(json.RawMessage(`"` + strings.Repeat("s", runlane.MaxBodyBytes-1) + `"`)),
		"empty call": {},
	} {
		_, err := call.Prepare()
		got, ok := errors.AsType[*runlane.Error](err)
		if !ok || got.Code != runlane.ErrValidationFailed || got.Message != want {
			t.Errorf("got %v, want %s", err, want)
			continue
		}
		if strings.Contains(got.Error(), "secret") || strings.Contains(got.Error(), "sss") {
			t.Errorf("the error repeats the payload: %v", got)
		}
	}
	exact := json.RawMessage(`"` + strings.Repeat("s", runlane.MaxPayloadBytes-2) + `"`)
	if _, err := raw.With(exact).Prepare(); err != nil {
		t.Errorf("a payload of exactly the limit: %v", err)
	}
	if _, err := runlane.NewRawCall(nil, []byte(`1`)).Prepare(); !errors.Is(err, runlane.ErrValidationFailed) {
		t.Errorf("a raw call without a task: %v", err)
	}
	if _, err := runlane.NewRawCall(raw.Definition(), []byte(`{`)).Prepare(); !errors.Is(err, runlane.ErrValidationFailed) {
		t.Errorf("a raw call of broken JSON: %v", err)
	}
}

func TestPrepare_RefusesBadKeys(t *testing.T) {
	t.Parallel()
	bad := func(string) string { return "secret\n" }
	for what, options := range map[string]*runlane.TaskOptions[string]{
		"concurrency key": {ConcurrencyKey: bad}, "idempotency key": {IdempotencyKey: bad}, "singleton key": {SingletonKey: bad},
	} {
		_, err := runlane.NewTask("t", options).With("p").Prepare()
		if !errors.Is(err, runlane.ErrValidationFailed) || !strings.Contains(err.Error(), what) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", what, err)
		}
	}
	none := func(string) string { return "" }
	prepared, err := runlane.NewTask("t", &runlane.TaskOptions[string]{ConcurrencyKey: none, IdempotencyKey: none, SingletonKey: none}).With("p").Prepare()
	if err != nil || prepared.ConcurrencyKey+prepared.IdempotencyKey+prepared.SingletonKey != "" {
		t.Errorf("keys of \"\": %+v, %v", prepared, err)
	}
}

func TestWith_EncodesWhenTriggered(t *testing.T) {
	t.Parallel()
	payload := map[string]int{"n": 1}
	call := runlane.NewTask[map[string]int]("t", nil).With(payload)
	payload["n"] = 2
	prepared, err := call.Prepare()
	if err != nil || string(prepared.Payload) != `{"n":2}` {
		t.Errorf("got %s, %v", prepared.Payload, err)
	}
}

func TestHandle_DecodesAndPassesOn(t *testing.T) {
	t.Parallel()
	task := runlane.NewTask[welcome]("emails.welcome", nil)
	attempt := &runlane.Attempt{Number: 3}
	handler := task.Handle(func(ctx context.Context, a *runlane.Attempt, p welcome) error {
		if a != attempt || ctx != t.Context() {
			t.Error("not the attempt or context of the caller")
		}
		return errors.New("saw " + p.UserID)
	})
	if handler.Task != task.Definition() {
		t.Error("the handler is of another task")
	}
	if err := handler.Execute(t.Context(), attempt, []byte(`{"userId":"u","unknown":1}`)); err == nil || err.Error() != "saw u" {
		t.Errorf("got %v", err)
	}
}

func TestDecode_PayloadThatDoesNotFit_IsValidationFailed(t *testing.T) {
	t.Parallel()
	task := runlane.NewTask[welcome]("emails.welcome", nil)
	for _, payload := range []string{`{"userId":7}`, `[]`, `"secret"`, `{`, ``} {
		err := task.Handle(func(context.Context, *runlane.Attempt, welcome) error {
			t.Errorf("%s: the handler was called", payload)
			return nil
		}).Execute(t.Context(), nil, []byte(payload))
		got, ok := errors.AsType[*runlane.Error](err)
		if !ok || got.Code != runlane.ErrValidationFailed || got.Message != `payload of task "emails.welcome" does not decode into runlane_test.welcome` ||
			got.Cause == nil || strings.Contains(got.Error(), "secret") {
			t.Errorf("%s: got %v", payload, err)
		}
	}
	if p, err := task.Decode([]byte(` {"userId":"u"} `)); err != nil || p.UserID != "u" {
		t.Errorf("got %+v, %v", p, err)
	}
}

// TestTaskOptions_ReachEachForm sets every rule that does not depend on the payload's type, and looks for it in each form of the task.
func TestTaskOptions_ReachEachForm(t *testing.T) {
	t.Parallel()
	samples := map[reflect.Type]any{
		reflect.TypeFor[bool]():          true,
		reflect.TypeFor[int]():           7,
		reflect.TypeFor[string]():        "seven",
		reflect.TypeFor[time.Duration](): 7 * time.Second,
		reflect.TypeFor[runlane.Keep]():  runlane.KeepAll(7 * time.Hour),
		reflect.TypeFor[runlane.Queue](): runlane.Queue{Name: "seven", Concurrency: 7},
		reflect.TypeFor[runlane.Retry](): runlane.Retry{MaxAttempts: 7},
	}
	options := &runlane.TaskOptions[string]{}
	form := reflect.ValueOf(options).Elem()
	var names []string
	for i := range form.NumField() {
		name, field := form.Type().Field(i).Name, form.Field(i)
		if field.Kind() == reflect.Func {
			continue // of the payload
		}
		sample, ok := samples[field.Type()]
		if !ok {
			t.Fatalf("%s: give this test a sample of type %s", name, field.Type())
		}
		field.Set(reflect.ValueOf(sample))
		names = append(names, name)
	}
	task := runlane.NewTask("seven", options).Definition()
	record := task.Record(time.Now())
	for what, form := range map[string]any{"Definition": *task, "TaskRecord": record, "its Definition": *record.Definition()} {
		for _, name := range names {
			if what == "TaskRecord" && name == "Retry" {
				continue // as MaxAttempts and Backoff
			}
			want := reflect.ValueOf(options).Elem().FieldByName(name)
			if got := reflect.ValueOf(form).FieldByName(name); !got.IsValid() || !reflect.DeepEqual(got.Interface(), want.Interface()) {
				t.Errorf("%s has not the %s of the options", what, name)
			}
		}
	}
	if record.MaxAttempts != 7 || task.Err() != nil {
		t.Errorf("%+v, %v", record, task.Err())
	}
}
