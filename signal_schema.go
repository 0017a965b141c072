package runlane

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxWaitSchemaBytes bounds the JSON Schemas of a wait, and of all waits of an attempt together: they are stored with
// the run until the wait is over.
const MaxWaitSchemaBytes = 4 << 10

// WithSchema returns the signal with a JSON Schema of its bodies; [SchemaOf] makes one from a Go type. The schema is
// stored with a run while it waits, in the clear, like the signal's name. A sender of a body that does not fit it gets
// [ErrValidationFailed] and nothing is stored. A signal sent before the wait is not checked and reaches the handler.
//
// Supported keywords: type, enum, const, anyOf, properties, required, additionalProperties, items, minItems, maxItems,
// minimum, maximum, minLength, maxLength, pattern (of package regexp), format (only date-time is checked), and the
// descriptive ones. A wait with any other keyword, or with more than [MaxWaitSchemaBytes], is ErrValidationFailed. An
// integer must be written as one: 1.0 is rejected, because most programs do not decode it into an integer.
func (s *Signal[T]) WithSchema(schema json.RawMessage) *Signal[T] {
	return &Signal[T]{name: s.name, schema: schema}
}

// CheckBody checks a signal's body against the wait's schema for its name. The error is [ErrValidationFailed]; it
// quotes the schema but not the body. A signal without a schema may have any body.
func (w *Waiting) CheckBody(signal string, body json.RawMessage) error {
	if w == nil || w.Schemas[signal] == nil {
		return nil
	}
	schema, err := readSchema(w.Schemas[signal])
	if err != nil {
		return schemaInvalid(signal, err)
	}
	fault := ""
	if value, err := decodeExactly(body); err != nil {
		fault = err.Error()
	} else if fault = schema.judge("", value); fault == "" {
		return nil
	}
	return &Error{
		Code:    ErrValidationFailed,
		Message: fmt.Sprintf("the body of signal %q does not fit its schema: %s", signal, fault),
		Hint:    "send a body that fits the schema; nothing was stored",
	}
}

// checkSchemas rejects schemas that cannot check a body.
func (w *Waiting) checkSchemas() error {
	if size := w.SchemaBytes(); size > MaxWaitSchemaBytes {
		return &Error{
			Code:    ErrValidationFailed,
			Message: fmt.Sprintf("the schemas of the wait have %d bytes, more than %d", size, MaxWaitSchemaBytes),
			Hint:    "leave out what describes, or say less of the parts",
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Schemas)) {
		if !slices.Contains(w.Names, name) && !w.Has(WaitingAnything) {
			return schemaInvalid(name, errors.New("the wait is for no signal of this name"))
		}
		if _, err := readSchema(w.Schemas[name]); err != nil {
			return schemaInvalid(name, err)
		}
	}
	return nil
}

// SchemaBytes returns the total size of the wait's schemas.
func (w *Waiting) SchemaBytes() (size int) {
	for _, schema := range w.Schemas {
		size += len(schema)
	}
	return size
}

func schemaInvalid(signal string, why error) error {
	return &Error{
		Code:    ErrValidationFailed,
		Message: fmt.Sprintf("the schema of signal %q cannot judge: %s", signal, why),
		Hint:    "runlane.Signal.WithSchema lists the keywords that a signal's schema may have",
	}
}

// keptSchemas returns the schemas in the one form that every storage returns.
func keptSchemas(given map[string]json.RawMessage) map[string]json.RawMessage {
	if len(given) == 0 {
		return nil
	}
	kept := maps.Clone(given)
	for name, schema := range given {
		if text, err := json.Marshal(schema); err == nil {
			kept[name] = text
		}
	}
	return kept
}

// bodySchema is a JSON Schema with bounded work: it has no references, so each part of it checks each part of the body
// at most once.
type bodySchema struct {
	never bool // the schema false

	Type                 schemaTypes            `json:"type"`
	Enum                 []json.RawMessage      `json:"enum"`
	Const                json.RawMessage        `json:"const"`
	AnyOf                []*bodySchema          `json:"anyOf"`
	Properties           map[string]*bodySchema `json:"properties"`
	Required             []string               `json:"required"`
	AdditionalProperties *bodySchema            `json:"additionalProperties"`
	Items                *bodySchema            `json:"items"`
	MinItems             *int                   `json:"minItems"`
	MaxItems             *int                   `json:"maxItems"`
	Minimum              *json.Number           `json:"minimum"`
	Maximum              *json.Number           `json:"maximum"`
	MinLength            *int                   `json:"minLength"`
	MaxLength            *int                   `json:"maxLength"`
	Pattern              *regexp.Regexp         `json:"pattern"`
	Format               string                 `json:"format"`

	// Descriptive keywords have no effect.
	Dialect     json.RawMessage `json:"$schema"`
	Comment     json.RawMessage `json:"$comment"`
	Title       json.RawMessage `json:"title"`
	Description json.RawMessage `json:"description"`
	Default     json.RawMessage `json:"default"`
	Examples    json.RawMessage `json:"examples"`
	Deprecated  json.RawMessage `json:"deprecated"`

	values []any // decoded Enum and Const
}

func readSchema(text json.RawMessage) (*bodySchema, error) {
	s := &bodySchema{}
	if !json.Valid(text) {
		return nil, errNoJSON
	}
	return s, s.UnmarshalJSON(text)
}

// UnmarshalJSON reads a schema or a part of it. An unknown keyword is an error, because ignoring it would check too
// little.
func (s *bodySchema) UnmarshalJSON(text []byte) error {
	switch string(bytes.TrimSpace(text)) {
	case "true":
		return nil
	case "false":
		s.never = true
		return nil
	case "null":
		return errors.New("it is null")
	}
	type plain bodySchema
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode((*plain)(s)); err != nil {
		return err
	}
	given := s.Enum
	if s.Const != nil {
		given = append(slices.Clone(given), s.Const)
	}
	for _, one := range given {
		value, err := decodeExactly(one)
		if err != nil {
			return err
		}
		s.values = append(s.values, value)
	}
	for _, bound := range []*json.Number{s.Minimum, s.Maximum} {
		if bound != nil && !numberFits(*bound) {
			return errNumber
		}
	}
	if s.Enum != nil && s.Const != nil {
		return errors.New("it has enum and const")
	}
	return nil
}

// schemaTypes is one type, or a list of them.
type schemaTypes []string

func (t *schemaTypes) UnmarshalJSON(text []byte) error {
	one := ""
	if json.Unmarshal(text, &one) == nil {
		*t = schemaTypes{one}
	} else if err := json.Unmarshal(text, (*[]string)(t)); err != nil {
		return err
	}
	for _, name := range *t {
		if !slices.Contains([]string{"array", "boolean", "integer", "null", "number", "object", "string"}, name) {
			return fmt.Errorf("it has the type %q", name)
		}
	}
	return nil
}

// judge returns the first fault of a value with its place, or "".
func (s *bodySchema) judge(at string, value any) string {
	wrong := ""
	switch {
	case s == nil:
		return ""
	case s.never:
		wrong = "is not taken"
	case s.Type != nil && !slices.ContainsFunc(s.Type, func(name string) bool { return hasType(name, value) }):
		wrong = "is not of type " + strings.Join(s.Type, " or ")
	case s.values != nil && !slices.ContainsFunc(s.values, func(v any) bool { return sameValue(v, value) }):
		wrong = "is none of its values"
	case s.AnyOf != nil && !slices.ContainsFunc(s.AnyOf, func(o *bodySchema) bool { return o.judge(at, value) == "" }):
		wrong = "fits none of anyOf"
	}
	if wrong == "" {
		switch value := value.(type) {
		case string:
			wrong = s.judgeText(value)
		case json.Number:
			wrong = s.judgeNumber(value)
		case []any:
			wrong = countFault("items", len(value), s.MinItems, s.MaxItems)
		case map[string]any:
			missing := slices.IndexFunc(s.Required, func(name string) bool { _, ok := value[name]; return !ok })
			if missing >= 0 {
				wrong = fmt.Sprintf("has no %q", s.Required[missing])
			}
		}
	}
	if wrong == "" {
		return s.judgeParts(at, value)
	}
	if at == "" {
		at = "it"
	}
	return at + " " + wrong
}

// judgeParts checks the items of a list or the fields of an object. It never quotes a name that only the body has.
func (s *bodySchema) judgeParts(at string, value any) string {
	switch value := value.(type) {
	case []any:
		for i, item := range value {
			if fault := s.Items.judge(at+"/"+strconv.Itoa(i), item); fault != "" {
				return fault
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			part, known := s.Properties[name]
			place := at + "/" + name
			if !known {
				part, place = s.AdditionalProperties, at+"/*"
			}
			if fault := part.judge(place, value[name]); fault != "" {
				return fault
			}
		}
	}
	return ""
}

func (s *bodySchema) judgeText(text string) string {
	switch {
	case s.Pattern != nil && !s.Pattern.MatchString(text):
		return "does not match its pattern"
	case s.Format == "date-time" && new(time.Time).UnmarshalText([]byte(text)) != nil:
		return "is not a date-time like 2026-01-31T12:00:00Z"
	default:
		return countFault("characters", utf8.RuneCountInString(text), s.MinLength, s.MaxLength)
	}
}

func (s *bodySchema) judgeNumber(n json.Number) string {
	switch {
	case s.Minimum != nil && exact(n).Cmp(exact(*s.Minimum)) < 0:
		return "is less than " + string(*s.Minimum)
	case s.Maximum != nil && exact(n).Cmp(exact(*s.Maximum)) > 0:
		return "is more than " + string(*s.Maximum)
	default:
		return ""
	}
}

func countFault(of string, n int, least, most *int) string {
	switch {
	case least != nil && n < *least:
		return fmt.Sprintf("has fewer than %d %s", *least, of)
	case most != nil && n > *most:
		return fmt.Sprintf("has more than %d %s", *most, of)
	default:
		return ""
	}
}

func hasType(name string, value any) bool {
	switch value := value.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case json.Number:
		return name == "number" || name == "integer" && !strings.ContainsAny(string(value), ".eE")
	case []any:
		return name == "array"
	default:
		return name == "object"
	}
}

// sameValue compares numbers by value.
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && exact(a).Cmp(exact(b)) == 0
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, sameValue)
	default:
		switch b.(type) {
		case []any, map[string]any:
			return false // not comparable with ==
		}
		return a == b
	}
}

var (
	errNoJSON = errors.New("it is not JSON")
	errNumber = errors.New("it has a number with too many digits, or beyond 1e308")
)

// decodeExactly keeps the digits of numbers and refuses numbers that are expensive to compare.
func decodeExactly(text []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	switch {
	case !json.Valid(text), decoder.Decode(&value) != nil:
		return nil, errNoJSON
	case !numbersFit(value):
		return nil, errNumber
	default:
		return value, nil
	}
}

func numbersFit(value any) bool {
	switch value := value.(type) {
	case json.Number:
		return numberFits(value)
	case []any:
		return !slices.ContainsFunc(value, func(v any) bool { return !numbersFit(v) })
	case map[string]any:
		for _, v := range value {
			if !numbersFit(v) {
				return false
			}
		}
	}
	return true
}

func numberFits(n json.Number) bool {
	_, exponent, _ := strings.Cut(strings.ToLower(string(n)), "e")
	power, err := strconv.Atoi("0" + strings.TrimLeft(exponent, "+-"))
	_, tooLarge := n.Float64()
	return err == nil && power <= 400 && len(n) <= 1000 && tooLarge == nil
}

// exact returns the value of a number that passed numberFits.
func exact(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return new(big.Rat)
	}
	return r
}
