package lanetest

import (
	"reflect"
	"testing"
	"time"
)

// unset names the fields that are zero, also those of structs in it.
func unset(name string, v reflect.Value) (names []string) {
	if _, instant := v.Interface().(time.Time); instant || v.Kind() != reflect.Struct {
		if v.IsZero() {
			return []string{name}
		}
		return nil
	}
	for i := range v.NumField() {
		names = append(names, unset(name+"."+v.Type().Field(i).Name, v.Field(i))...)
	}
	return names
}

// The cases of the catalog find a storage that loses a field of a task only if fullTask has it.
func TestFullTask_HasEveryFieldSet(t *testing.T) {
	t.Parallel()
	for _, name := range unset("TaskRecord", reflect.ValueOf(fullTask("full"))) {
		t.Errorf("fullTask does not set %s", name)
	}
	if names := unset("TaskRecord", reflect.ValueOf(plainTask("plain"))); len(names) == 0 {
		t.Error("of a plain task every field counts as set")
	}
}
