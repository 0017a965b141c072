package rows

import (
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
)

// described are all structs that describe items.
func described() map[string]func() any {
	return map[string]func() any{
		"run": func() any { return &Run{} }, "bulk": func() any { return &Bulk{} }, "log": func() any { return &Log{} },
		"owner": func() any { return &Owner{} }, "slot": func() any { return &SlotItem{} }, "schedule": func() any { return &Schedule{} },
		"occurrence": func() any { return &Occurrence{} }, "progress": func() any { return &Progress{} },
		"shards": func() any { return &Shards{} }, "task": func() any { return &Task{} }, "position": func() any { return &WalkPosition{} },
	}
}

// Items are what the SDK's own package for attribute values makes of the structs, and are read as it reads them.
func TestItem_MarshalsAndUnmarshalsAsTheSDKDoes(t *testing.T) {
	t.Parallel()
	for name, empty := range described() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				value := empty()
				draw(t, reflect.ValueOf(value).Elem())
				ours, err := Marshal(value)
				theirs, theirErr := attributevalue.MarshalMap(value)
				if err != nil || theirErr != nil {
					t.Fatal(err, theirErr)
				}
				if diff := cmp.Diff(theirs, ours, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
					t.Fatalf("marshaled (-SDK +ours)\n%s", diff)
				}
				ours["unknown"] = item.Text("to this version")
				read, theirRead := empty(), empty()
				if err := Unmarshal(ours, read); err != nil {
					t.Fatal(err)
				}
				if err := attributevalue.UnmarshalMap(ours, theirRead); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(theirRead, read, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
					t.Fatalf("unmarshaled (-SDK +ours)\n%s", diff)
				}
			})
		})
	}
}

// draw fills what an item's struct may hold, half of it with nothing.
func draw(t *rapid.T, v reflect.Value) {
	if v.Kind() != reflect.Struct && rapid.Bool().Draw(t, "nothing") {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(rapid.String().Draw(t, "text"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "number"))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Tag.Get("dynamodbav") != "-" {
				draw(t, v.Field(i))
			}
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(rapid.MapOfN(rapid.StringN(1, 5, -1), rapid.String(), 1, 3).Draw(t, "texts")))
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "bytes"))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			draw(t, v.Index(i))
		}
	default:
		t.Fatalf("no item has a %s", v.Type())
	}
}

func TestItem_StoredOtherwiseThanDescribed_IsAnInvariantViolation(t *testing.T) {
	t.Parallel()
	for name, stored := range map[string]item.Item{
		"a number for text":   {"st": item.Num(1)},
		"text for a number":   {"sq": item.Text("1")},
		"a fraction":          {"sq": &types.AttributeValueMemberN{Value: "1.5"}},
		"text for bytes":      {"pl": item.Text("x")},
		"a list for a map":    {"tc": &types.AttributeValueMemberL{}},
		"numbers in a map":    {"tc": &types.AttributeValueMemberM{Value: item.Item{"a": item.Num(1)}}},
		"a set for text":      {"tk": &types.AttributeValueMemberSS{Value: []string{"a"}}},
		"bytes for a number":  {"na": &types.AttributeValueMemberB{Value: []byte("1")}},
		"a number too large":  {"sq": &types.AttributeValueMemberN{Value: "9223372036854775808"}},
		"a flag for a number": {"na": &types.AttributeValueMemberBOOL{Value: true}},
	} {
		if err := Unmarshal(stored, &Run{}); runlane.CodeOf(err) != runlane.ErrInvariantViolation {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Unmarshal(item.Item{"dl": &types.AttributeValueMemberL{Value: []types.AttributeValue{item.Text("x")}}}, &Log{}); err == nil {
		t.Error("text for a delivery is taken")
	}
	if _, err := Marshal(&Run{Meta: map[string]string{"": "x"}}); err == nil {
		t.Error("DynamoDB has no empty names")
	}
	if _, err := Marshal(&struct {
		F float64 `dynamodbav:"f"`
	}{}); err == nil || !strings.Contains(err.Error(), "does not marshal") {
		t.Errorf("a fraction in a struct: %v", err)
	}
}
