package formats_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// shapes are the parts of everything that a recording has: for each kind of thing its fields, with their types and whether they are
// always there. An older program is known by the shapes of its recording: it reads these fields and no others.
type shapes map[string]*shape

type shape struct {
	seen   int
	fields map[string]*fieldShape
}

type fieldShape struct {
	seen  int
	types map[string]bool
}

func shapesOf(t testing.TB, r *recording) shapes {
	t.Helper()
	s := shapes{}
	for _, it := range r.Items {
		s.addItem(t, it)
	}
	for i := range r.Messages {
		s.addJSON(t, "message", r.Messages[i].Body)
	}
	return s
}

func (s shapes) add(kind string, fields map[string]string) {
	if s[kind] == nil {
		s[kind] = &shape{fields: map[string]*fieldShape{}}
	}
	s[kind].seen++
	for name, typ := range fields {
		if s[kind].fields[name] == nil {
			s[kind].fields[name] = &fieldShape{types: map[string]bool{}}
		}
		s[kind].fields[name].seen++
		s[kind].fields[name].types[typ] = true
	}
}

// kindOf is what an item is, by its key.
func kindOf(it item) string {
	kind := strings.Split(text(it["pk"]), ":")[1]
	switch sk, _, _ := strings.Cut(text(it["sk"]), ":"); {
	case kind == "run" && sk != "run", kind == "config":
		return kind + " " + sk
	default:
		return kind
	}
}

func (s shapes) addItem(t testing.TB, it item) {
	t.Helper()
	fields := map[string]string{}
	for name, v := range it {
		fields[name] = typeOf(v)
	}
	kind := kindOf(it)
	s.add(kind, fields)
	if list, ok := it["dl"].(*types.AttributeValueMemberL); ok {
		for _, row := range list.Value {
			s.add(kind+" dl", rowFields(row))
		}
	}
	if b, ok := it["ev"].(*types.AttributeValueMemberB); ok {
		s.addEvents(t, opened(t, b.Value))
	}
}

func rowFields(row types.AttributeValue) map[string]string {
	fields := map[string]string{}
	if m, ok := row.(*types.AttributeValueMemberM); ok {
		for name, v := range m.Value {
			fields[name] = typeOf(v)
		}
	}
	return fields
}

func typeOf(v types.AttributeValue) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", v), "*types.AttributeValueMember")
}

func (s shapes) addEvents(t testing.TB, stored []byte) {
	t.Helper()
	var events []json.RawMessage
	decodeJSON(t, string(stored), &events)
	for _, raw := range events {
		var e struct {
			Type string          `json:"t"`
			Data json.RawMessage `json:"d"`
		}
		decodeJSON(t, string(raw), &e)
		s.addJSON(t, "event", string(raw), "d")
		s.addJSON(t, "event "+e.Type, string(e.Data))
	}
}

// textMaps are the fields whose names an application chooses.
var textMaps = []string{"meta", "traceCarrier", "m", "c"}

func (s shapes) addJSON(t testing.TB, kind, object string, except ...string) {
	t.Helper()
	var v map[string]any
	decodeJSON(t, object, &v)
	fields := map[string]string{}
	flatten(fields, "", v, except)
	s.add(kind, fields)
}

// flatten names the fields of objects within objects by their path.
func flatten(fields map[string]string, path string, object map[string]any, except []string) {
	for name, v := range object {
		inner, isObject := v.(map[string]any)
		switch {
		case slices.Contains(except, name):
			fields[path+name] = "object"
		case isObject && !slices.Contains(textMaps, name):
			flatten(fields, path+name+".", inner, nil)
		case isObject:
			fields[path+name] = "texts"
		default:
			fields[path+name] = strings.TrimPrefix(fmt.Sprintf("%T", v), "json.")
		}
	}
}

func (s shapes) String() string {
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(s)) {
		for _, name := range slices.Sorted(maps.Keys(s[kind].fields)) {
			f := s[kind].fields[name]
			often := "sometimes"
			if f.seen == s[kind].seen {
				often = "always"
			}
			fmt.Fprintf(&b, "%s | %s | %s | %s\n", kind, name, strings.Join(slices.Sorted(maps.Keys(f.types)), " or "), often)
		}
	}
	return b.String()
}

// misread lists what an older program, which knows the fields of one recording, would read wrongly in another: a field that is not there
// any more, is not always there any more, or has a type that it had not. What was added it does not see.
func misread(older, newer string) (faults []string) {
	type field struct{ types, often string }
	read := func(text string) map[string]field {
		fields := map[string]field{}
		for _, line := range lines(text) {
			if parts := strings.Split(line, " | "); len(parts) == 4 {
				fields[parts[0]+" | "+parts[1]] = field{parts[2], parts[3]}
			}
		}
		return fields
	}
	now := read(newer)
	for name, was := range read(older) {
		is, there := now[name]
		if !there {
			faults = append(faults, name+" is not written any more")
			continue
		}
		if was.often == "always" && is.often != "always" {
			faults = append(faults, name+" was always there")
		}
		for _, typ := range strings.Split(is.types, " or ") {
			if !slices.Contains(strings.Split(was.types, " or "), typ) {
				faults = append(faults, fmt.Sprintf("%s is %s, and was %s", name, typ, was.types))
			}
		}
	}
	slices.Sort(faults)
	return faults
}

// A reader that knows only a released recording's fields finds all of them in what today's code writes, of the same types. What today's
// code adds, that reader does not look at: whether it may is docs/compatibility.md's to say.
func TestShapes_OlderReadersOfTheSameFormat_FindWhatTheyKnow(t *testing.T) {
	t.Parallel()
	today := readFile(t, current, shapesFile)
	for _, name := range recordings(t) {
		if number(name) != number(current) {
			continue
		}
		for _, fault := range misread(readFile(t, name, shapesFile), today) {
			t.Errorf("a program of recording %s misreads what is written now: %s", name, fault)
		}
	}
}

// number is the format of a recording.
func number(name string) string {
	n, _, _ := strings.Cut(name, ".")
	return n
}
