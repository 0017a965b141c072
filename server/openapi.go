package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/shown"
)

// description is an OpenAPI 3.1 document, as far as this API needs it.
type description struct {
	OpenAPI    string                           `json:"openapi"`
	Info       about                            `json:"info"`
	Servers    []serverURL                      `json:"servers"`
	Security   []map[string][]string            `json:"security"`
	Tags       []group                          `json:"tags"`
	Paths      map[string]map[string]*described `json:"paths"`
	Components components                       `json:"components"`
}

type about struct {
	Title       string `json:"title"`
	Version     string `json:"version"`
	Description string `json:"description"`
}

type serverURL struct {
	URL string `json:"url"`
}

type group struct {
	Name string `json:"name"`
}

type components struct {
	Schemas         map[string]*schema        `json:"schemas"`
	SecuritySchemes map[string]securityScheme `json:"securitySchemes"`
}

type securityScheme struct {
	Type        string `json:"type"`
	Scheme      string `json:"scheme"`
	Description string `json:"description"`
}

type described struct {
	ID          string              `json:"operationId"`
	Tags        []string            `json:"tags"`
	Summary     string              `json:"summary"`
	Description string              `json:"description,omitempty"`
	Scope       Scope               `json:"x-runlane-scope,omitempty"`
	Parameters  []parameter         `json:"parameters,omitempty"`
	Body        *content            `json:"requestBody,omitempty"`
	Responses   map[string]*content `json:"responses"`
}

type parameter struct {
	Name        string  `json:"name"`
	In          string  `json:"in"`
	Required    bool    `json:"required,omitempty"`
	Description string  `json:"description,omitempty"`
	Schema      *schema `json:"schema"`
}

type content struct {
	Required    bool             `json:"required,omitempty"`
	Description string           `json:"description,omitempty"`
	Content     map[string]media `json:"content,omitempty"`
}

type media struct {
	Schema *schema `json:"schema"`
}

// schema is a JSON Schema. One without fields accepts anything.
type schema struct {
	Ref         string             `json:"$ref,omitempty"`
	Type        string             `json:"type,omitempty"`
	Format      string             `json:"format,omitempty"`
	Const       any                `json:"const,omitempty"`
	Description string             `json:"description,omitempty"`
	Enum        []string           `json:"enum,omitempty"`
	Minimum     *int               `json:"minimum,omitempty"`
	Maximum     *int               `json:"maximum,omitempty"`
	MinItems    int                `json:"minItems,omitempty"`
	MinLength   int                `json:"minLength,omitempty"`
	MaxLength   int                `json:"maxLength,omitempty"`
	Pattern     string             `json:"pattern,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	Items       *schema            `json:"items,omitempty"`
	Values      *schema            `json:"additionalProperties,omitempty"`
	Closed      bool               `json:"-"` // no other properties
}

// MarshalJSON writes "additionalProperties": false for a closed schema.
func (s *schema) MarshalJSON() ([]byte, error) {
	type plain schema
	if !s.Closed {
		return json.Marshal((*plain)(s))
	}
	return json.Marshal(struct {
		*plain
		Closed bool `json:"additionalProperties"`
	}{(*plain)(s), false})
}

const introduction = "Durable runs over HTTP. Objects are those of docs/json.md: each begins with v, the version " +
	"of the contract, and kind. Instants are RFC 3339 in UTC with milliseconds, durations texts like 36h or 30d. In " +
	"version 1 fields and kinds are only added: ignore those that you do not know. Errors are problems (RFC " +
	"9457) with code, hint and retryable."

// describe builds the document from the table of routes.
func describe(table []operation, prefix string) *description {
	d := &description{
		OpenAPI:  "3.1.0",
		Info:     about{Title: "Runlane", Version: strconv.Itoa(shown.Version), Description: introduction},
		Servers:  []serverURL{{URL: prefix + "/"}},
		Security: []map[string][]string{{"token": {}}, {}},
		Paths:    map[string]map[string]*described{},
		Components: components{
			Schemas: map[string]*schema{},
			SecuritySchemes: map[string]securityScheme{"token": {
				Type:        "http",
				Scheme:      "bearer",
				Description: "Callers on the server's machine need none where it was started without tokens.",
			}},
		},
	}
	s := schemas{made: d.Components.Schemas}
	s.made["problem"] = s.object(reflect.TypeFor[problem](), false)
	for i := range table {
		o := &table[i]
		if len(d.Tags) == 0 || d.Tags[len(d.Tags)-1].Name != o.group {
			d.addGroup(o.group)
		}
		if d.Paths[o.path] == nil {
			d.Paths[o.path] = map[string]*described{}
		}
		d.Paths[o.path][strings.ToLower(o.method)] = s.operation(o)
	}
	return d
}

func (d *description) addGroup(name string) {
	for _, known := range d.Tags {
		if known.Name == name {
			return
		}
	}
	d.Tags = append(d.Tags, group{Name: name})
}

func (d *description) text() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	err := encoder.Encode(d)
	return text.Bytes(), err
}

// schemas makes schemas of Go types and collects the named ones.
type schemas struct{ made map[string]*schema }

func (s *schemas) operation(o *operation) *described {
	one := &described{
		ID:          o.name,
		Tags:        []string{o.group},
		Summary:     o.summary,
		Description: o.text,
		Scope:       o.scope,
		Responses:   map[string]*content{},
	}
	for i := range o.in.fields {
		f := &o.in.fields[i]
		one.Parameters = append(one.Parameters, parameter{
			Name:        f.name,
			In:          string(f.place),
			Required:    f.required,
			Description: f.doc,
			Schema:      s.of(f.kind, true).within(f.min, f.max).filled(),
		})
	}
	for _, header := range o.headerParameters() {
		one.Parameters = append(one.Parameters, parameter{
			Name:        header[0],
			In:          "header",
			Description: header[1],
			Schema:      &schema{Type: "string", Pattern: header[2]},
		})
	}
	if o.in.body != nil {
		one.Body = &content{
			Required: o.in.body.required,
			Content:  map[string]media{"application/json": {Schema: s.of(o.in.body.kind, true)}},
		}
	}
	for _, a := range o.answers {
		one.Responses[strconv.Itoa(a.status)] = s.answer(&a)
	}
	if o.tagged {
		one.Responses["304"] = &content{Description: "nothing has changed since the ETag of If-None-Match"}
	}
	one.Responses["default"] = &content{
		Description: "a problem",
		Content:     map[string]media{"application/problem+json": {Schema: reference("problem")}},
	}
	return one
}

// headerParameters lists the headers that an operation reads: name, description, pattern.
func (o *operation) headerParameters() [][3]string {
	var headers [][3]string
	if !o.streams && o.scope != "" {
		const time = "how long the request may take, like 5s; 30s unless given, 1m at most"
		headers = append(headers, [3]string{"Request-Timeout", time, durationPattern})
	}
	if o.tagged {
		headers = append(headers, [3]string{"If-None-Match", "an ETag: 304 when the run is as it was"})
	}
	if o.streams {
		headers = append(headers, [3]string{"Last-Event-ID", "the id of the last event that was seen"})
	}
	if o.takesKey {
		headers = append(headers, [3]string{"Idempotency-Key", "a second trigger with it returns the first run"})
	}
	return headers
}

func reference(name string) *schema { return &schema{Ref: "#/components/schemas/" + name} }

// answer describes a successful answer. Objects are named after their kind.
func (s *schemas) answer(a *answer) *content {
	described := &content{Description: a.text}
	if a.of == nil && a.status == http.StatusNoContent {
		return described
	}
	if a.of == nil {
		described.Content = map[string]media{cmp.Or(a.media, "application/json"): {Schema: &schema{}}}
		return described
	}
	if described.Description == "" {
		described.Description = a.kind
	}
	if s.made[a.kind] == nil {
		s.made[a.kind] = &schema{} // in case the type contains itself
		one := s.object(a.of, false)
		one.Properties["v"] = &schema{Type: "integer", Const: shown.Version, Description: "version of the contract"}
		one.Properties["kind"] = &schema{Type: "string", Const: a.kind}
		one.Required = append([]string{"v", "kind"}, one.Required...)
		s.made[a.kind] = one
	}
	name := a.kind
	if a.list {
		name = "page." + a.kind
		described.Description = "a page of " + a.kind
		s.made[name] = &schema{
			Type:     "object",
			Required: []string{"v", "kind", "items"},
			Properties: map[string]*schema{
				"v":     {Type: "integer", Const: shown.Version, Description: "version of the contract"},
				"kind":  {Type: "string", Const: "page"},
				"items": {Type: "array", Items: reference(a.kind)},
				"next":  {Type: "string", Description: "for after; absent on the last page"},
			},
		}
	}
	described.Content = map[string]media{"application/json": {Schema: reference(name)}}
	return described
}

var (
	timeType  = reflect.TypeFor[time.Time]()
	rawType   = reflect.TypeFor[json.RawMessage]()
	eventType = reflect.TypeFor[shown.Event]()
	keepType  = reflect.TypeFor[retention]()
)

// durationPattern is the syntax of durations. Values that are too large match, and are refused later.
const durationPattern = `^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h|d|w))+$`

// filled sets a minimum length: an empty parameter is refused.
func (s *schema) filled() *schema {
	if s.Type == "string" && s.Pattern == "" && s.Enum == nil {
		s.MinLength = 1
	}
	return s
}

func (s *schema) within(least, most int) *schema {
	if most != 0 {
		s.Minimum, s.Maximum = &least, &most
	}
	return s
}

// taken returns the schema of a text in a request, by its Go type.
func taken(t reflect.Type) *schema {
	s := &schema{Type: "string"}
	switch {
	case t == reflect.TypeFor[runlane.WaitingFor]():
		s.Enum = textsOf(runlane.WaitingKinds())
	case t == reflect.TypeFor[statusWord]():
		s.Enum = shown.StatusWords()
	case t.Implements(reflect.TypeFor[validated]()):
		s.MinLength, s.MaxLength = 1, runlane.MaxIDBytes
	}
	return s
}

// of returns the schema of a type. If reads is true, callers send it, and unknown fields are refused.
func (s *schemas) of(t reflect.Type, reads bool) *schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == timeType:
		return &schema{Type: "string", Format: "date-time"}
	case t == rawType:
		return &schema{}
	case t == spanType:
		return &schema{Type: "string", Pattern: durationPattern}
	case t == keepType:
		return &schema{Type: "string", Pattern: durationPattern + "|^" + shown.WhileActive + "$"}
	}
	if list, ok := reflect.New(t).Interface().(chosen); ok {
		one := "(" + strings.Join(list.words(), "|") + ")"
		return &schema{Type: "string", Pattern: "^" + one + "(," + one + ")*$"}
	}
	if name, ok := reflect.Zero(t).Interface().(interface{ text() reflect.Type }); ok {
		return taken(name.text())
	}
	switch t.Kind() {
	case reflect.String:
		if reads {
			return taken(t)
		}
		return &schema{Type: "string"}
	case reflect.Bool:
		return &schema{Type: "boolean"}
	case reflect.Int, reflect.Int64:
		return &schema{Type: "integer"}
	case reflect.Slice:
		list := &schema{Type: "array", Items: s.of(t.Elem(), reads)}
		if t == reflect.TypeFor[statusWords]() {
			list.MinItems = 1
		}
		return list
	case reflect.Map:
		return &schema{Type: "object", Values: s.of(t.Elem(), reads)}
	case reflect.Struct:
		name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
		if s.made[name] == nil {
			s.made[name] = &schema{} // in case the type contains itself
			s.made[name] = s.object(t, reads)
		}
		return reference(name)
	default: // a type without a schema is a fault of this package; a test finds it
		return &schema{Type: "unknown " + t.String()}
	}
}

func (s *schemas) object(t reflect.Type, reads bool) *schema {
	if t == eventType {
		return eventSchema()
	}
	one := &schema{Type: "object", Properties: map[string]*schema{}, Closed: reads}
	s.fields(t, one, reads)
	return one
}

func (s *schemas) fields(t reflect.Type, one *schema, reads bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			needed := one.Required
			if f.Type.Kind() == reflect.Pointer { // it may be nil, so its fields are optional
				s.fields(f.Type.Elem(), one, reads)
				one.Required = needed
			} else {
				s.fields(f.Type, one, reads)
			}
			continue
		}
		if name == "-" || name == "" || !f.IsExported() {
			continue
		}
		property := s.of(f.Type, reads).within(limitsOf(f.Tag))
		if doc := f.Tag.Get("doc"); doc != "" {
			property.Description = doc
		}
		one.Properties[name] = property
		needed := !strings.Contains(options, "omit")
		if reads {
			needed = f.Tag.Get("required") == "true"
		}
		if needed {
			one.Required = append(one.Required, name)
		}
	}
}

// eventSchema is written by hand, because events encode their own JSON.
func eventSchema() *schema {
	text := func(doc string) *schema { return &schema{Type: "string", Description: doc} }
	return &schema{
		Type:     "object",
		Required: []string{"cursor", "id", "sequence", "runId", "environment", "occurredAt", "actor", "type", "data"},
		Properties: map[string]*schema{
			"cursor":      text("resumes behind this event, with after"),
			"id":          text(""),
			"sequence":    {Type: "integer", Description: "counted from 1"},
			"runId":       text(""),
			"environment": text(""),
			"occurredAt":  {Type: "string", Format: "date-time"},
			"actor": {Type: "object", Required: []string{"type"}, Properties: map[string]*schema{
				"type": text("system, operator, schedule, worker"), "id": text(""),
			}},
			"meta":         {Type: "object", Values: &schema{Type: "string"}},
			"traceCarrier": {Type: "object", Values: &schema{Type: "string"}},
			"type":         text("docs/internals/contract.md lists them; new ones may come"),
			"data":         {Type: "object", Description: "depends on the type"},
		},
	}
}
