package cli_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// leaves are the fields of a struct that are no structs, by their paths.
func leaves(path string, v reflect.Value) map[string]reflect.Value {
	if _, instant := v.Interface().(time.Time); instant || v.Kind() != reflect.Struct {
		return map[string]reflect.Value{strings.TrimPrefix(path, "."): v}
	}
	all := map[string]reflect.Value{}
	for i := range v.NumField() {
		for path, leaf := range leaves(path+"."+v.Type().Field(i).Name, v.Field(i)) {
			all[path] = leaf
		}
	}
	return all
}

// tasks list --json shows each field of a task's record. A new field needs a field of shown.Task, and a row here.
func TestTasksList_JSON_ShowsEveryFieldOfARecord(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.plain = true
	record := runlane.TaskRecord{
		ID:             "shown",
		Queue:          runlane.Queue{Name: "shipping", Concurrency: 7, DispatchTimeout: 90 * time.Second, Rate: runlane.PerMinute(600), Burst: 50},
		IdempotencyTTL: 36 * time.Hour,
		Keys:           runlane.TaskKeys{Concurrency: true, Idempotency: true, Singleton: true},
		MaxAttempts:    5,
		Backoff:        "fixed, 1m",
		Timeout:        2 * time.Minute,
		ErrorMessages:  true,
		Keep:           runlane.Keep{Succeeded: 7 * 24 * time.Hour, Failed: runlane.KeepForever, Cancelled: time.Hour},
		KeepLogs:       true,
		Version:        3,
		SeenAt:         w.now(),
	}
	keys := `"keys":["concurrency","idempotency","singleton"]`
	shown := map[string]string{
		"ID":                    `"taskId":"shown"`,
		"Queue.Name":            `"queue":"shipping"`,
		"Queue.Concurrency":     `"concurrency":7`,
		"Queue.DispatchTimeout": `"dispatchTimeout":"1m30s"`,
		"Queue.Rate.Count":      `"rate":"600/min"`,
		"Queue.Rate.Period":     `"rate":"600/min"`,
		"Queue.Burst":           `"burst":50`,
		"IdempotencyTTL":        `"idempotencyTtl":"1d12h"`,
		"Keys.Concurrency":      keys,
		"Keys.Idempotency":      keys,
		"Keys.Singleton":        keys,
		"MaxAttempts":           `"maxAttempts":5`,
		"Backoff":               `"backoff":"fixed, 1m"`,
		"Timeout":               `"timeout":"2m"`,
		"ErrorMessages":         `"errorMessages":true`,
		"Keep.Succeeded":        `"keep":{"succeeded":"1w","failed":"forever","cancelled":"1h"}`,
		"Keep.Failed":           `"failed":"forever"`,
		"Keep.Cancelled":        `"cancelled":"1h"`,
		"KeepLogs":              `"keepLogs":true`,
		"Version":               `"version":3`,
		"SeenAt":                `"seenAt":"2026-03-01T12:00:00Z"`,
	}
	if err := w.storage.PutTask(t.Context(), &lane.PutTaskCommand{Record: record}); err != nil {
		t.Fatal(err)
	}
	got := mustRun(t, w, "tasks", "list", "--json")
	fields := leaves("", reflect.ValueOf(record))
	for path, field := range fields {
		if field.IsZero() {
			t.Errorf("give %s a value here", path)
		}
		if text := shown[path]; text == "" || !strings.Contains(got.stdout, text) {
			t.Errorf("%s is not shown as %q:\n%s", path, text, got.stdout)
		}
	}
	if len(fields) != len(shown) {
		t.Errorf("a record has %d fields, %d are expected here", len(fields), len(shown))
	}
}
