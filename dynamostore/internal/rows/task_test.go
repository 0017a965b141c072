package rows

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

// set gives every field of a struct a value that is not zero.
func set(t *testing.T, name string, field reflect.Value) {
	t.Helper()
	switch field.Interface().(type) {
	case time.Time:
		field.Set(reflect.ValueOf(time.UnixMilli(7).UTC()))
		return
	case bool:
		field.SetBool(true)
		return
	}
	switch {
	case field.Kind() == reflect.Struct:
		for i := range field.NumField() {
			set(t, name+"."+field.Type().Field(i).Name, field.Field(i))
		}
	case field.CanInt():
		field.SetInt(7)
	case field.Kind() == reflect.String:
		field.SetString("of " + name)
	default:
		t.Fatalf("%s: give this test a value of type %s", name, field.Type())
	}
}

// A field of a task's record that its item, the expression that writes it or Record leaves out comes back as zero.
func TestTask_KeepsEveryFieldOfItsRecord(t *testing.T) {
	t.Parallel()
	var record lane.TaskRecord
	set(t, "TaskRecord", reflect.ValueOf(&record).Elem())
	task := NewTaskItem(runlane.Environment("test"), &record)
	put, err := task.Put()
	if err != nil {
		t.Fatal(err)
	}
	stored := item.Item{item.PK: put.Key[item.PK], item.SK: put.Key[item.SK]}
	for value, v := range put.Values {
		name := strings.TrimPrefix(value, ":")
		if !strings.Contains(put.Expression, "#"+name+" = :"+name) {
			t.Errorf("taskChange does not write %s", name)
			continue
		}
		stored[name] = v
	}
	var read Task
	if err := Unmarshal(stored, &read); err != nil {
		t.Fatal(err)
	}
	if got := read.Record(); got != record {
		t.Errorf("the record\n%+v comes back as\n%+v", record, got)
	}
}
