package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/shown"
)

// A route declares its input as a struct. Tags give the source of a field (path:"NAME", query:"NAME" or body:"json"),
// its description (doc) and its checks (required:"true", min, max). The description of the API uses the same tags.

type place string

const (
	inPath  place = "path"
	inQuery place = "query"
)

type field struct {
	name     string
	place    place
	index    []int
	kind     reflect.Type
	required bool
	min, max int // of a number; both 0: any
	doc      string
}

type input struct {
	fields []field
	body   *field
	limit  int64 // of the body, in bytes
}

// newInput reads the tags of a struct type. Fields of embedded structs count as the struct's own.
func newInput(t reflect.Type, limit int64) *input {
	in := &input{limit: limit}
	in.add(t, nil)
	return in
}

func (in *input) add(t reflect.Type, prefix []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(slices.Clone(prefix), i)
		read := field{index: index, kind: f.Type, doc: f.Tag.Get("doc"), required: f.Tag.Get("required") == "true"}
		read.min, read.max = limitsOf(f.Tag)
		if f.Tag.Get("body") != "" {
			in.body = &read
			continue
		}
		if f.Anonymous {
			in.add(f.Type, index)
			continue
		}
		if read.name = f.Tag.Get(string(inPath)); read.name != "" {
			read.place, read.required = inPath, true
		} else {
			read.name, read.place = f.Tag.Get(string(inQuery)), inQuery
		}
		in.fields = append(in.fields, read)
	}
}

// validated is an id type with its own rules.
type validated interface{ Validate() error }

// named is an id in a body. An empty or null one, often from an unset variable, is refused: a filter would match too
// much.
type named[T ~string] struct{ ID T }

// UnmarshalJSON reads a text that is not empty and obeys the rules of ids.
func (n *named[T]) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &n.ID); err != nil || n.ID == "" {
		return badInput("a name or an id is not text, or empty", "leave the field out, or give it a value")
	}
	if id, ok := any(n.ID).(validated); ok {
		return id.Validate()
	}
	return nil
}

func (named[T]) text() reflect.Type { return reflect.TypeFor[T]() }

// limitsOf returns the bounds of a number. It ignores syntax errors, since all tags are in this package.
func limitsOf(tag reflect.StructTag) (least, most int) {
	least, _ = strconv.Atoi(tag.Get("min"))
	most, _ = strconv.Atoi(tag.Get("max"))
	return least, most
}

// span is a duration in the contract's form, like 90s or 2d.
type span time.Duration

// chosen is a value that callers write as words separated by commas. read sets it, or returns an unknown word.
type chosen interface {
	read(text string) (unknown *string)
	words() []string
}

type statusList []runlane.Status

func (l *statusList) read(text string) (unknown *string) {
	*l, unknown = shown.Statuses(text)
	return unknown
}

func (*statusList) words() []string { return shown.StatusWords() }

type flowStatusList []runlane.FlowStatus

func (l *flowStatusList) read(text string) (unknown *string) {
	*l, unknown = shown.FlowStatuses(text)
	return unknown
}

func (*flowStatusList) words() []string { return shown.FlowStatusWords() }

// readRequest fills a struct from a request. It refuses unknown parameters, since a misspelled one would be ignored.
func (in *input) readRequest(w http.ResponseWriter, r *http.Request, into reflect.Value) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badInput("the query is not encoded as queries are", "write % as %25 and & as %26")
	}
	known := 0
	for i := range in.fields {
		f := &in.fields[i]
		var given []string
		if f.place == inPath {
			given = []string{r.PathValue(f.name)}
		} else if given = query[f.name]; given != nil {
			known++
		}
		if err := f.read(given, into.FieldByIndex(f.index)); err != nil {
			return err
		}
	}
	if known < len(query) {
		return in.unknown(query)
	}
	if in.body == nil {
		return noBody(r)
	}
	return in.readBody(w, r, into.FieldByIndex(in.body.index))
}

func (in *input) unknown(query url.Values) error {
	var names []string
	for _, f := range in.fields {
		if f.place == inQuery {
			names = append(names, f.name)
		}
	}
	for name := range query {
		if !slices.Contains(names, name) {
			hint := "it has no parameters"
			if len(names) > 0 {
				hint = "parameters are " + strings.Join(names, ", ")
			}
			return badInput(fmt.Sprintf("there is no parameter %q here", clip(name)), hint)
		}
	}
	return nil
}

func clip(text string) string {
	const most = 100
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

var spanType = reflect.TypeFor[span]()

func (f *field) read(given []string, into reflect.Value) error {
	switch {
	case len(given) == 0 && f.required:
		return badInput("the parameter "+f.name+" is missing", f.doc)
	case len(given) == 0:
		return nil
	case len(given) > 1:
		return badInput(
			"the parameter "+f.name+" is given twice",
			"give it once; several statuses have commas between them",
		)
	}
	text := given[0]
	if text == "" { // probably an unset variable; the request would match more than was meant
		return badInput("the parameter "+f.name+" is empty", "leave it out, or give it a value")
	}
	if list, ok := into.Addr().Interface().(chosen); ok {
		if unknown := list.read(text); unknown != nil {
			return badInput(
				fmt.Sprintf("there is no status %q", clip(*unknown)),
				"statuses are "+strings.Join(list.words(), ", "),
			)
		}
		return nil
	}
	switch {
	case f.kind == spanType:
		d, err := runlane.ParseDuration(text)
		if err != nil {
			return badInput(fmt.Sprintf("%s is not a duration: %q", f.name, clip(text)), "write it like 90s or 2d")
		}
		into.SetInt(int64(d))
	case f.kind == timeType:
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return badInput(fmt.Sprintf("%s is not a time: %q", f.name, clip(text)), "write it like 2026-03-01T12:00:00Z")
		}
		into.Set(reflect.ValueOf(at))
	case f.kind.Kind() == reflect.Int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return badInput(fmt.Sprintf("%s is not a number: %q", f.name, clip(text)), f.doc)
		}
		if f.max != 0 && (n < f.min || n > f.max) {
			return badInput(fmt.Sprintf("%s is not from %d to %d", f.name, f.min, f.max), f.doc)
		}
		into.SetInt(int64(n))
	case f.kind.Kind() == reflect.Bool:
		yes, err := strconv.ParseBool(text)
		if err != nil {
			return badInput(fmt.Sprintf("%s is neither true nor false: %q", f.name, clip(text)), f.doc)
		}
		into.SetBool(yes)
	default:
		into.SetString(text)
		if id, ok := into.Interface().(validated); ok {
			return id.Validate()
		}
	}
	return nil
}

func noBody(r *http.Request) error {
	if r.ContentLength > 0 || len(r.TransferEncoding) > 0 {
		return badInput("the path takes no body", "leave it out")
	}
	return nil
}

// readBody reads one JSON object; an optional body may be missing. Unknown fields are refused.
func (in *input) readBody(w http.ResponseWriter, r *http.Request, into reflect.Value) error {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, in.limit))
	if err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large || r.Context().Err() != nil {
			return err
		}
		return badInput("the body ends early", "send as many bytes as Content-Length says")
	}
	if len(text) == 0 && !in.body.required {
		return nil
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return refusal(
			http.StatusUnsupportedMediaType,
			codeMediaType,
			"the body is not declared as JSON",
			"send Content-Type: application/json",
		)
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return refusal(http.StatusUnsupportedMediaType, codeMediaType, "the body is compressed", "send it as it is")
	}
	if in.limit == MaxBody { // not for triggers: their payload may be null, and is large
		if err := noNulls(text); err != nil {
			return err
		}
	}
	return parseBody(text, into.Addr().Interface())
}

// noNulls refuses null fields, which often come from unset variables: a null dryRun would mean false.
func noNulls(text []byte) error {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return nil //nolint:nilerr // parseBody says what is wrong
	}
	for name, value := range fields {
		if string(value) == "null" {
			return badInput(fmt.Sprintf("the field %q is null", clip(name)), "leave it out, or give it a value")
		}
	}
	return nil
}

// parseBody reads one JSON object strictly. Raw values keep their bytes.
func parseBody(text []byte, into any) error {
	if string(bytes.TrimSpace(text)) == "null" { // encoding/json ignores null
		return badInput("the body is null", "send one JSON object")
	}
	if err := checkListLengths(text, into); err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil {
		if _, err := decoder.Token(); !errors.Is(err, io.EOF) { // More is false at an unmatched closing bracket
			return badInput("the body has more than one value", "send one JSON object")
		}
		return nil
	}
	const hint = "send one JSON object, with the fields that /docs names"
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		where := "the body"
		if wrong.Field != "" {
			where = "the field " + clip(wrong.Field)
		}
		return badInput(fmt.Sprintf("%s cannot be a %s", where, wrong.Value), hint)
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return badInput(fmt.Sprintf("the body is not JSON from byte %d on", syntax.Offset), hint)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok { // encoding/json has no type for it
		return badInput("there is no field "+clip(name)+" here", hint)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return badInput("the body is not complete JSON", hint)
	}
	if e, ok := errors.AsType[*problem](err); ok {
		return e
	}
	if e, ok := errors.AsType[*runlane.Error](err); ok {
		return e
	}
	if wrong, ok := errors.AsType[*time.ParseError](err); ok {
		return badInput(fmt.Sprintf("this is not a time: %s", clip(wrong.Value)), "write it like \"2026-03-01T12:00:00Z\"")
	}
	return badInput("the body cannot be read", hint)
}

func (s *span) UnmarshalJSON(text []byte) error {
	var written string
	if err := json.Unmarshal(text, &written); err != nil {
		return badInput(fmt.Sprintf("a duration is a text, not %s", clip(string(text))), "write it like \"90s\" or \"2d\"")
	}
	d, err := runlane.ParseDuration(written)
	if err != nil {
		return badInput(fmt.Sprintf("this is not a duration: %q", clip(written)), "write it like 90s or 2d")
	}
	*s = span(d)
	return nil
}
