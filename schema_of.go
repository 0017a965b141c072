package runlane

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
)

// SchemaOf returns the JSON Schema of encoding/json's output for a type, for [Signal.WithSchema]. Struct fields keep
// their order; a field without omitempty and omitzero is required; unknown fields are allowed. A type with its own JSON
// encoding, and a recursive reference, may be anything; a type with a text form (encoding.TextMarshaler) is a string.
func SchemaOf[T any]() json.RawMessage {
	return json.RawMessage(schemaOf(reflect.TypeFor[T](), nil).String())
}

// typeSchema is a schema in parts: its type, "" for anything, and its other keywords.
type typeSchema struct {
	name, more string
	null       bool
}

// String returns the JSON.
func (s typeSchema) String() string {
	switch {
	case s.name == "":
		return "{}"
	case s.null:
		return `{"type":["` + s.name + `","null"]` + s.more + "}"
	default:
		return `{"type":"` + s.name + `"` + s.more + "}"
	}
}

var (
	encodesItself = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler]()}
	writesText    = reflect.TypeFor[encoding.TextMarshaler]()
	readsText     = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// schemaOf returns the schema of t. within lists the types being described, to stop recursion.
func schemaOf(t reflect.Type, within []reflect.Type) typeSchema {
	has := func(i reflect.Type) bool { return t.Implements(i) || reflect.PointerTo(t).Implements(i) }
	switch {
	case t == reflect.TypeFor[time.Time]():
		return typeSchema{name: "string", more: `,"format":"date-time"`}
	case t == reflect.TypeFor[json.Number]():
		return typeSchema{name: "number"}
	case t.Kind() == reflect.Pointer:
		s := schemaOf(t.Elem(), within)
		s.null = true
		return s
	case slices.ContainsFunc(encodesItself, has), has(writesText) != has(readsText), slices.Contains(within, t):
		return typeSchema{}
	case has(writesText):
		return typeSchema{name: "string"}
	}
	within = append(slices.Clone(within), t)
	switch t.Kind() {
	case reflect.Bool:
		return typeSchema{name: "boolean"}
	case reflect.String:
		return typeSchema{name: "string"}
	case reflect.Float64:
		return typeSchema{name: "number"}
	case reflect.Float32:
		most := fmt.Sprint(float32(math.MaxFloat32))
		return typeSchema{name: "number", more: `,"minimum":-` + most + `,"maximum":` + most}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		most := int64(math.MaxInt64 >> (64 - t.Bits()))
		return typeSchema{name: "integer", more: fmt.Sprintf(`,"minimum":%d,"maximum":%d`, -most-1, most)}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		most := uint64(math.MaxUint64 >> (64 - t.Bits()))
		return typeSchema{name: "integer", more: fmt.Sprintf(`,"minimum":0,"maximum":%d`, most)}
	case reflect.Slice:
		if t.Elem() == reflect.TypeFor[byte]() {
			const base64 = `^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`
			return typeSchema{name: "string", more: `,"pattern":"` + base64 + `"`, null: true}
		}
		return typeSchema{name: "array", more: `,"items":` + schemaOf(t.Elem(), within).String(), null: true}
	case reflect.Array:
		return typeSchema{name: "array", more: `,"items":` + schemaOf(t.Elem(), within).String()}
	case reflect.Map:
		values := schemaOf(t.Elem(), within).String()
		return typeSchema{name: "object", more: `,"additionalProperties":` + values, null: true}
	case reflect.Struct:
		return typeSchema{name: "object", more: structSchema(t, within)}
	default:
		return typeSchema{}
	}
}

// typeField is a struct field as encoding/json sees it.
type typeField struct {
	name             string
	depth            int
	tagged, optional bool
	schema           string
}

func structSchema(t reflect.Type, within []reflect.Type) string {
	all := fieldsOfType(t, within, 0, false)
	var properties, required []string
	for i := range all {
		f := &all[i]
		hidden := slices.ContainsFunc(all, func(o typeField) bool {
			return o.name == f.name && (o.depth < f.depth || o.depth == f.depth && o.tagged && !f.tagged)
		})
		alike := func(o typeField) bool { return o.name == f.name && o.depth == f.depth && o.tagged == f.tagged }
		if hidden || slices.IndexFunc(all, alike) != i || slices.ContainsFunc(all[i+1:], alike) {
			continue // encoding/json drops ambiguous names
		}
		name := quoted(f.name)
		properties = append(properties, name+":"+f.schema)
		if !f.optional {
			required = append(required, name)
		}
	}
	more := ""
	if len(properties) > 0 {
		more = `,"properties":{` + strings.Join(properties, ",") + "}"
	}
	if len(required) > 0 {
		more += `,"required":[` + strings.Join(required, ",") + "]"
	}
	return more
}

func quoted(name string) string {
	text, err := json.Marshal(name)
	if err != nil {
		panic(err) // a string always encodes
	}
	return string(text)
}

// fieldsOfType returns the fields of a struct, including those of embedded structs.
func fieldsOfType(t reflect.Type, within []reflect.Type, depth int, optional bool) (fields []typeField) {
	for f := range t.Fields() {
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		inner, pointer := f.Type, false
		if f.Anonymous && inner.Kind() == reflect.Pointer {
			inner, pointer = inner.Elem(), true
		}
		flat := f.Anonymous && inner.Kind() == reflect.Struct && name == ""
		switch {
		case tag == "-", !f.IsExported() && !flat:
			continue
		case flat && slices.Contains(within, inner):
			continue
		case flat:
			within := append(slices.Clone(within), inner)
			fields = append(fields, fieldsOfType(inner, within, depth+1, optional || pointer)...)
			continue
		}
		one := typeField{name: name, depth: depth, tagged: name != "", schema: schemaOf(f.Type, within).String()}
		if name == "" {
			one.name = f.Name
		}
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "omitempty", "omitzero":
				one.optional = true
			case "string":
				one.schema = `{"type":"string"}`
			}
		}
		one.optional = one.optional || optional
		fields = append(fields, one)
	}
	return fields
}
