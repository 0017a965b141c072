package runlane_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
)

// fill gives every field that can be reached a different value, so that a test over fields cannot miss a new one.
func fill(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 1, 1, 0, 0, len(path), 0, time.UTC)))
		return
	case v.Type() == reflect.TypeFor[runlane.EventBody]():
		return // given by the test
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(path + " <&>")
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(len(path)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice: // of texts or structs, or of bytes
		if kind := v.Type().Elem().Kind(); kind == reflect.String || kind == reflect.Struct {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(t, v.Index(0), path)
			return
		}
		// of bytes: JSON, as all of them are here
		v.SetBytes([]byte(fmt.Sprintf("%q", path)))
	case reflect.Map:
		if v.Type().Elem().Kind() == reflect.Slice { // of bytes
			v.Set(reflect.ValueOf(map[string]json.RawMessage{path: json.RawMessage(fmt.Sprintf("%q", path))}))
			return
		}
		v.Set(reflect.ValueOf(map[string]string{path: "value", "other": path}))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), path)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	default:
		t.Fatalf("%s: no rule to fill a %s", path, v.Type())
	}
}

// filled is a value of the type with every field set, the same each time.
func filled[T any](t *testing.T) T {
	t.Helper()
	var v T
	fill(t, reflect.ValueOf(&v).Elem(), reflect.TypeFor[T]().Name())
	return v
}

// scribble changes every map entry and every byte it can reach, and counts them.
func scribble(v reflect.Value) (changed int) {
	switch v.Kind() {
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if v.Type().Elem().Kind() == reflect.Slice {
				changed += scribble(v.MapIndex(key))
				continue
			}
			v.SetMapIndex(key, reflect.ValueOf("scribbled"))
			changed++
		}
	case reflect.Slice:
		for i := range v.Len() {
			switch v.Index(i).Kind() {
			case reflect.String:
				v.Index(i).SetString("scribbled")
				changed++
				continue
			case reflect.Struct:
				for k := range v.Index(i).NumField() {
					v.Index(i).Field(k).SetString("scribbled")
					changed++
				}
				continue
			default:
			}
			v.Index(i).SetUint(^v.Index(i).Uint() & 0xff)
			changed++
		}
	case reflect.Pointer:
		if !v.IsNil() {
			changed += scribble(v.Elem())
			v.Elem().SetZero()
		}
	case reflect.Interface:
		changed += scribble(v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return 0
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				changed += scribble(v.Field(i))
			}
		}
	default:
	}
	return changed
}

// bodies is one filled body of every type that the contract knows, and one it does not.
func bodies(t *testing.T) []runlane.EventBody {
	t.Helper()
	var all []runlane.EventBody
	for _, kind := range append(runlane.EventTypes(), "run.unheard_of") {
		body, err := runlane.UnmarshalBody(kind, []byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		fill(t, reflect.ValueOf(body).Elem(), reflect.TypeOf(body).Elem().Name())
		if unknown, ok := body.(*runlane.UnknownEvent); ok {
			unknown.Type = kind
		}
		all = append(all, body)
	}
	return all
}

func TestClone_OfARunSharesNothing(t *testing.T) {
	t.Parallel()
	run, want := filled[runlane.Run](t), filled[runlane.Run](t)
	clone := run.Clone()
	if diff := cmp.Diff(&want, clone); diff != "" {
		t.Fatalf("(-original +clone)\n%s", diff)
	}
	if changed := scribble(reflect.ValueOf(clone).Elem()); changed < 10 {
		t.Fatalf("only %d places were scribbled on", changed)
	}
	if diff := cmp.Diff(want, run); diff != "" {
		t.Errorf("the clone shares with its original: %s", diff)
	}
	if clone := (*runlane.Run)(nil).Clone(); clone != nil {
		t.Errorf("nil became %v", clone)
	}
	empty := &runlane.Run{TraceCarrier: map[string]string{}, Payload: []byte{}}
	if diff := cmp.Diff(empty, empty.Clone()); diff != "" {
		t.Errorf("empty and absent are not the same: %s", diff)
	}
}

func TestClone_OfEveryEventSharesNothing(t *testing.T) {
	t.Parallel()
	for i, body := range bodies(t) {
		t.Run(reflect.TypeOf(body).Elem().Name(), func(t *testing.T) {
			t.Parallel()
			build := func() runlane.EventRecord {
				record := filled[runlane.EventRecord](t)
				record.Body = bodies(t)[i]
				return record
			}
			record, want := build(), build()
			clone := record.Clone()
			if diff := cmp.Diff(want, clone); diff != "" {
				t.Fatalf("(-original +clone)\n%s", diff)
			}
			if clone.Body == record.Body {
				t.Error("the body is shared")
			}
			if changed := scribble(reflect.ValueOf(&clone).Elem()); changed < 4 {
				t.Fatalf("only %d places were scribbled on", changed)
			}
			if diff := cmp.Diff(want, record); diff != "" {
				t.Errorf("the clone shares with its original: %s", diff)
			}
		})
	}
	if clone := (runlane.Event{RunID: "r"}).Clone(); clone.Body != nil || clone.RunID != "r" {
		t.Errorf("an event without a body became %+v", clone)
	}
	carrier := map[string]string{}
	if clone := (runlane.Event{TraceCarrier: carrier}).Clone(); clone.TraceCarrier == nil || clone.Meta != nil {
		t.Errorf("empty and absent are not the same: %+v", clone)
	}
}
