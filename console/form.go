package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
)

// mostFields limits the fields of a form. A payload with more properties is entered as JSON.
const mostFields = 50

// field is a property of a payload or of a signal's body, described by its JSON Schema. Complex values are entered as
// JSON. The schema checks the whole value in any case.
type field struct {
	name     string
	required bool
	whole    bool // the field is the whole value, not a property

	Title       string            `json:"title"`
	Description string            `json:"description"`
	Type        json.RawMessage   `json:"type"`
	Format      string            `json:"format"`
	Enum        []json.RawMessage `json:"enum"`
	Default     json.RawMessage   `json:"default"`
}

// fieldsOf returns the properties of an object's schema in textual order. It returns none for other types, or for more
// than mostFields.
func fieldsOf(schema json.RawMessage) []field {
	var object struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if json.Unmarshal(schema, &object) != nil || len(object.Properties) == 0 {
		return nil
	}
	properties := json.NewDecoder(bytes.NewReader(object.Properties))
	if begin, err := properties.Token(); err != nil || begin != json.Delim('{') {
		return nil
	}
	var fields []field
	for properties.More() {
		name, err := properties.Token()
		f := field{}
		f.name, _ = name.(string) // keys are strings
		var described json.RawMessage
		if err != nil || properties.Decode(&described) != nil || len(fields) == mostFields {
			return nil
		}
		if json.Unmarshal(described, &f) != nil { // such as true, which allows anything
			f = field{name: f.name}
		}
		f.tidy()
		f.required = slices.Contains(object.Required, f.name)
		fields = append(fields, f)
	}
	return fields
}

// bodyFields returns the fields of a signal's body: its properties, or one field for a simple value.
func bodyFields(schema json.RawMessage) []field {
	fields := fieldsOf(schema)
	f := field{name: "Body", required: true, whole: true}
	if len(fields) > 0 || json.Unmarshal(schema, &f) != nil {
		return fields
	}
	if f.tidy(); len(f.choices()) > 0 || f.is("string") || f.is("integer") || f.is("number") {
		fields = []field{f}
	}
	return fields
}

// tidy normalizes values to the form in which a browser sends them back, without line breaks. A default of null is
// none.
func (f *field) tidy() {
	for i, c := range f.Enum {
		var tidy bytes.Buffer
		if json.Compact(&tidy, c) == nil {
			f.Enum[i] = tidy.Bytes()
		}
	}
	if string(f.Default) == "null" {
		f.Default = nil
	}
	var types []string
	if json.Unmarshal(f.Type, &types) == nil && len(types) == 2 && types[1] == "null" {
		f.Type = json.RawMessage(`"` + types[0] + `"`) // an empty field is left out
	}
}

func (f *field) is(kind string) bool { return string(f.Type) == `"`+kind+`"` }

func (f *field) choices() []json.RawMessage {
	if len(f.Enum) == 0 && f.is("boolean") {
		return []json.RawMessage{[]byte("true"), []byte("false")}
	}
	return f.Enum
}

// textOf returns a string's text, or the JSON of any other value.
func textOf(value json.RawMessage) string {
	var text string
	if len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

const fieldPrefix = "field:"

func (f *field) posted() string { return fieldPrefix + f.name }

// value converts the input to JSON; nil for an empty field, which is left out.
func (f *field) value(text string) (json.RawMessage, error) {
	choices := f.choices()
	wrong := ""
	if !f.is("string") {
		text = strings.TrimSpace(text)
	}
	switch {
	case text == "":
		return nil, nil
	case len(choices) > 0:
		if !slices.ContainsFunc(choices, func(c json.RawMessage) bool { return string(c) == text }) {
			wrong = "is not one of its values"
		}
	case f.is("string"):
		return json.Marshal(text)
	case !json.Valid([]byte(text)):
		wrong = "is not JSON"
	case (f.is("integer") || f.is("number")) && text[0] != '-' && (text[0] < '0' || text[0] > '9'):
		wrong = "is not a number"
	}
	if wrong != "" {
		return nil, &wrongField{name: f.posted(), error: &runlane.Error{
			Code:    runlane.ErrValidationFailed,
			Message: fmt.Sprintf("%s %s: %s", f.label(), wrong, clip(text, 60)),
			Hint:    "change it, or type the payload as JSON",
		}}
	}
	return json.RawMessage(text), nil
}

func (f *field) label() string {
	if f.Title != "" {
		return clip(f.Title, 100)
	}
	return clip(f.name, 100)
}

// node renders the field. Numbers are text inputs, since browsers round numeric ones.
func (f *field) node(id string, form typedForm) g.Node {
	begins := textOf(f.Default)
	if plain := f.is("string") || f.is("integer") || f.is("number"); len(f.choices()) > 0 || !plain {
		begins = string(f.Default)
	}
	typed := form.or(f.posted(), begins)
	common := g.Group{h.ID(id), h.Name(f.posted()), h.AutoComplete("off"), g.If(f.required, h.Required())}
	if f.Description != "" {
		common = append(common, h.Aria("describedby", id+"-is"))
	}
	var input g.Node
	switch choices := f.choices(); {
	case len(choices) > 0:
		options := g.Group{h.Option(h.Value(""), g.Text("–"))}
		for _, c := range choices {
			usual := g.If(string(c) == typed, h.Selected())
			options = append(options, h.Option(h.Value(string(c)), usual, g.Text(visible(textOf(c)))))
		}
		input = h.Select(common, options)
	case f.is("string"), f.is("integer"), f.is("number"):
		kind := "text"
		if f.is("string") && (f.Format == "date" || f.Format == "email") {
			kind = f.Format
		}
		input = h.Input(common, h.Type(kind), h.Value(typed),
			g.If(!f.is("string"), h.Attr("inputmode", "decimal")))
	default:
		input = h.Textarea(common, h.Rows("3"), h.Attr("spellcheck", "false"), h.Placeholder("JSON"),
			g.Text("\n"+typed)) // a browser drops the first line break
	}
	return g.Group{
		h.Label(h.For(id), g.Text(visible(f.label())), g.If(!f.required, g.Text(" (may be left out)"))),
		form.wrong(f.posted()),
		input,
		g.If(f.Description != "", h.P(h.ID(id+"-is"), h.Class("note"), g.Text(visible(clip(f.Description, 500))))),
	}
}

// payloadFromFields builds the payload from a form's fields. It refuses a form for an older schema, since removed properties
// would be dropped silently.
func (v *visitor) payloadFromFields(fields []field) (json.RawMessage, error) {
	for name := range v.r.PostForm {
		known := slices.ContainsFunc(fields, func(f field) bool { return f.posted() == name })
		if strings.HasPrefix(name, fieldPrefix) && !known {
			return nil, &runlane.Error{
				Code:    runlane.ErrValidationFailed,
				Message: fmt.Sprintf("the schema has no %s any more", clip(name[len(fieldPrefix):], 100)),
				Hint:    "open the form again",
			}
		}
	}
	if len(fields) == 1 && fields[0].whole {
		value, err := fields[0].value(v.r.PostFormValue(fields[0].posted()))
		if value == nil && err == nil {
			err = &wrongField{name: fields[0].posted(), error: &runlane.Error{
				Code:    runlane.ErrValidationFailed,
				Message: "nothing was given",
				Hint:    "fill in the field",
			}}
		}
		return value, err
	}
	var payload bytes.Buffer
	payload.WriteByte('{')
	for i := range fields {
		value, err := fields[i].value(v.r.PostFormValue(fields[i].posted()))
		if err != nil {
			return nil, err
		}
		if value == nil {
			continue
		}
		if payload.Len() > 1 {
			payload.WriteByte(',')
		}
		name, err := json.Marshal(fields[i].name)
		if err != nil {
			return nil, err
		}
		payload.Write(name)
		payload.WriteByte(':')
		payload.Write(value)
	}
	payload.WriteByte('}')
	return payload.Bytes(), nil
}
