// Package clienttypes makes the types of the clients in TypeScript and Python from the description of the API: what
// requests take, and what is answered. Its test holds the files to docs/openapi.json, and writes them with -update.
package clienttypes

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Files of the repository that have the description, and what is made of it.
const (
	description = "docs/openapi.json"
	typescript  = "clients/typescript/src/api.ts"
	python      = "clients/python/src/runlane/api.py"
)

const head = "Made of docs/openapi.json: go test ./internal/tools/clienttypes -update"

// schema is what the description uses of JSON Schema.
type schema struct {
	Ref         string             `json:"$ref"`
	Type        string             `json:"type"`
	Text        string             `json:"description"`
	Const       any                `json:"const"`
	Enum        []string           `json:"enum"`
	Items       *schema            `json:"items"`
	Properties  map[string]*schema `json:"properties"`
	Required    []string           `json:"required"`
	Additionals json.RawMessage    `json:"additionalProperties"`
}

// values is the schema of the values of a map, nil for what is none.
func (s *schema) values() *schema {
	var values schema
	if s.Properties != nil || json.Unmarshal(s.Additionals, &values) != nil {
		return nil
	}
	return &values
}

// document is a description: its schemas by name, and how a client calls each.
type document struct {
	schemas map[string]*schema
	names   map[string]string
}

func read(text []byte) (*document, error) {
	var api struct {
		Components struct {
			Schemas map[string]*schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &api); err != nil {
		return nil, err
	}
	d := &document{schemas: api.Components.Schemas, names: map[string]string{}}
	taken := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(d.schemas)) { // parts, which have a capital, come before kinds
		called := nameOf(name)
		if taken[called] != "" {
			called += "Object"
		}
		if other := taken[called]; other != "" {
			return nil, fmt.Errorf("%s and %s are both %s", other, name, called)
		}
		taken[called], d.names[name] = name, called
	}
	return d, nil
}

// nameOf is a kind as the name of a type: run.summary is RunSummary, page.run is RunPage.
func nameOf(kind string) string {
	rest, page := strings.CutPrefix(kind, "page.")
	var name strings.Builder
	for word := range strings.SplitSeq(rest, ".") {
		name.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	if page {
		name.WriteString("Page")
	}
	return name.String()
}

// named is the name of the schema that a reference leads to.
func (d *document) named(ref string) string {
	return d.names[ref[strings.LastIndexByte(ref, '/')+1:]]
}

// language is how types are written in one.
type language struct {
	words    map[string]string // types of JSON
	any      string
	list     func(of string) string
	mapOf    func(of string) string
	constant func(value any) string
	choice   func(values []string) string
}

// of is the type of a schema.
func (l *language) of(d *document, s *schema) string {
	switch values := s.values(); {
	case s.Ref != "":
		return d.named(s.Ref)
	case s.Const != nil:
		return l.constant(s.Const)
	case len(s.Enum) > 0:
		return l.choice(s.Enum)
	case s.Type == "array":
		return l.list(l.of(d, s.Items))
	case s.Type == "object" && values != nil && s.Properties == nil && len(s.Additionals) > 0:
		return l.mapOf(l.of(d, values))
	case s.Type == "object":
		return l.mapOf(l.any)
	case s.Type == "":
		return l.any
	default:
		return l.words[s.Type]
	}
}

func quoted(value any) string {
	text, _ := json.Marshal(value) // a constant of JSON
	return string(text)
}

var inTypeScript = language{
	words:    map[string]string{"string": "string", "integer": "number", "number": "number", "boolean": "boolean"},
	any:      "unknown",
	list:     func(of string) string { return of + "[]" },
	mapOf:    func(of string) string { return "Record<string, " + of + ">" },
	constant: quoted,
	choice: func(values []string) string {
		words := make([]string, len(values))
		for i, value := range values {
			words[i] = quoted(value)
		}
		return "(" + strings.Join(words, " | ") + ")"
	},
}

func (d *document) typeScript() string {
	var b strings.Builder
	fmt.Fprintf(&b, "// %s\n", head)
	for _, name := range slices.Sorted(maps.Keys(d.schemas)) {
		s := d.schemas[name]
		if s.Properties == nil {
			fmt.Fprintf(&b, "\nexport type %s = %s;\n", d.names[name], inTypeScript.of(d, s))
			continue
		}
		fmt.Fprintf(&b, "\nexport interface %s {\n", d.names[name])
		for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
			of := s.Properties[field]
			if of.Text != "" {
				fmt.Fprintf(&b, "  /** %s */\n", of.Text)
			}
			mark := "?"
			if slices.Contains(s.Required, field) {
				mark = ""
			}
			fmt.Fprintf(&b, "  %s%s: %s;\n", field, mark, inTypeScript.of(d, of))
		}
		b.WriteString("}\n")
	}
	return b.String()
}

var inPython = language{
	words:    map[string]string{"string": "str", "integer": "int", "number": "float", "boolean": "bool"},
	any:      "Any",
	list:     func(of string) string { return "list[" + of + "]" },
	mapOf:    func(of string) string { return "dict[str, " + of + "]" },
	constant: func(value any) string { return "Literal[" + quoted(value) + "]" },
	choice: func(values []string) string {
		words := make([]string, len(values))
		for i, value := range values {
			words[i] = quoted(value)
		}
		return "Literal[" + strings.Join(words, ", ") + "]"
	},
}

// reserved are words that are no names of fields in a class of Python.
var reserved = []string{"if", "for", "from", "in", "is", "class", "global", "not", "or", "and", "with", "while"}

// python writes a class for each schema. Python 3.10 has no word for one field that may be absent: such fields are a
// class apart, as those are whose name is a word of the language.
func (d *document) python() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\"\"\"%s\"\"\"\n\nfrom __future__ import annotations\n\n"+
		"from typing import Any, Literal, TypedDict\n", head)
	for _, name := range slices.Sorted(maps.Keys(d.schemas)) {
		s, called := d.schemas[name], d.names[name]
		needed, others := split(s)
		switch {
		case s.Properties == nil:
			fmt.Fprintf(&b, "\n\n%s = %s\n", called, inPython.of(d, s))
			continue
		case len(others) == 0:
			d.part(&b, called, s, needed, true)
			continue
		}
		var bases []string
		part := func(suffix string, fields []string, total bool) {
			if len(fields) > 0 {
				bases = append(bases, "_"+called+suffix)
				d.part(&b, "_"+called+suffix, s, fields, total)
			}
		}
		words, plain := divide(others, isReserved)
		part("Needed", needed, true)
		part("Words", words, false)
		if len(bases) == 0 {
			bases = []string{"TypedDict"}
		}
		fmt.Fprintf(&b, "\n\nclass %s(%s, total=False):\n", called, strings.Join(bases, ", "))
		if len(plain) == 0 {
			b.WriteString("    pass\n")
		}
		for _, field := range plain {
			d.field(&b, field, s.Properties[field])
		}
	}
	return b.String()
}

// split divides the fields of a schema into those that are always there, and the others.
func split(s *schema) (needed, others []string) {
	return divide(slices.Sorted(maps.Keys(s.Properties)), func(f string) bool { return slices.Contains(s.Required, f) })
}

func divide(all []string, is func(string) bool) (those, others []string) {
	for _, one := range all {
		if is(one) {
			those = append(those, one)
		} else {
			others = append(others, one)
		}
	}
	return those, others
}

func isReserved(field string) bool { return slices.Contains(reserved, field) }

// part is a class of some fields of a schema. Words of the language can be fields of one that is made by a call alone.
func (d *document) part(b *strings.Builder, called string, s *schema, fields []string, total bool) {
	if !slices.ContainsFunc(fields, isReserved) {
		fmt.Fprintf(b, "\n\nclass %s(TypedDict):\n", called)
		for _, field := range fields {
			d.field(b, field, s.Properties[field])
		}
		return
	}
	fmt.Fprintf(b, "\n\n%s = TypedDict(%q, {\n", called, called)
	for _, field := range fields {
		fmt.Fprintf(b, "    %q: %q,\n", field, inPython.of(d, s.Properties[field]))
	}
	b.WriteString("}")
	if !total {
		b.WriteString(", total=False")
	}
	b.WriteString(")\n")
}

func (d *document) field(b *strings.Builder, name string, s *schema) {
	fmt.Fprintf(b, "    %s: %s\n", name, inPython.of(d, s))
	if s.Text != "" {
		fmt.Fprintf(b, "    \"\"\"%s\"\"\"\n", s.Text)
	}
}
