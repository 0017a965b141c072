// Package schema checks payloads by JSON Schema, for server.ReadTasks. It is apart from package server, so that the
// server as a function does not link it: the library makes the schemas of all drafts at the start of a program, which
// takes as long as the rest of that start.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// schemaAddress is the base URL of a schema's references. It is never loaded.
	schemaAddress = "https://schema.invalid/"
	// maxPlaced is the largest payload whose errors name the failing part of the schema, which collects every fault in
	// memory.
	maxPlaced = 64 << 10
	// maxDigits and maxExponent limit the numbers in payloads and schemas: they are compared exactly, and larger ones
	// take long.
	maxDigits   = 1000
	maxExponent = 400
)

// Compile returns a function that checks payloads by a schema: JSON Schema of draft 2020-12 or draft 7 without references
// to other documents. Numbers are exact. Its errors do not quote the payload.
func Compile(text json.RawMessage) (func(json.RawMessage) error, error) {
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if !numbersFit(root) {
		return nil, errNumber
	}
	dialect, err := dialectOf(root)
	if err != nil {
		return nil, err
	}
	l := &loops{root: root, seen: map[string]bool{}}
	if err := l.findIn("", root); err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(dialect.draft)
	compiler.UseLoader(jsonschema.SchemeURLLoader{}) // loads no other document
	if err := compiler.AddResource(schemaAddress, root); err != nil {
		return nil, err
	}
	schema, err := compiler.Compile(schemaAddress)
	if err != nil {
		return nil, schemaFault(err)
	}
	if err := dialect.judge(root); err != nil {
		return nil, err
	}
	deepest := l.depthOf()
	unlike := &jsonschema.Schema{Not: schema, DraftVersion: schema.DraftVersion} // does not collect faults
	return func(payload json.RawMessage) error {
		if deepest > 0 && nesting(payload) > deepest {
			return fmt.Errorf("it is nested more than %d deep, and its schema judges a value in several ways", deepest)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(payload))
		switch {
		case err != nil:
			return errors.New("it is not JSON")
		case !numbersFit(value):
			return errNumber
		case unlike.Validate(value) != nil:
			return nil //nolint:nilerr // an error of the negation means that the payload is valid
		case len(payload) > maxPlaced:
			return errors.New("its schema says otherwise")
		default:
			return errors.New("its schema says otherwise at " + schemaPlace(schema.Validate(value)))
		}
	}, nil
}

var errNumber = fmt.Errorf("it has a number of more than %d digits, or beyond 1e%d", maxDigits, maxExponent)

// numbersFit reports whether all numbers of a value are small enough to compare quickly.
func numbersFit(value any) bool {
	switch value := value.(type) {
	case json.Number:
		_, exponent, _ := strings.Cut(strings.ToLower(string(value)), "e")
		n, err := strconv.Atoi("0" + strings.TrimLeft(exponent, "+-"))
		return len(value) <= maxDigits && err == nil && n <= maxExponent
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

// schemaPlace returns the part of the schema that refused the payload. The rest of the error quotes the payload.
func schemaPlace(err error) string {
	fault, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return "root"
	}
	_, place, _ := strings.Cut(firstFault(fault).SchemaURL, "#")
	if place == "" {
		return "root"
	}
	return place
}

// firstFault returns the fault without causes that comes first in the schema, so that the result is always the same.
func firstFault(fault *jsonschema.ValidationError) *jsonschema.ValidationError {
	if len(fault.Causes) == 0 {
		return fault
	}
	first := firstFault(fault.Causes[0])
	for _, cause := range fault.Causes[1:] {
		if other := firstFault(cause); other.SchemaURL < first.SchemaURL {
			first = other
		}
	}
	return first
}

func schemaFault(err error) error {
	unsound, ok := errors.AsType[*jsonschema.SchemaValidationError](err)
	if !ok {
		return err
	}
	if fault, ok := errors.AsType[*jsonschema.ValidationError](unsound.Err); ok {
		return firstFault(fault)
	}
	return unsound.Err
}

// loops finds schemas that apply themselves, directly or through others, to the same value. Validation would never end.
type loops struct {
	root any
	seen map[string]bool // by pointer: true while visiting, false once known to end
}

var (
	errLoop  = errors.New("a part of it refers to itself for the same value")
	errID    = errors.New(`"$id" is for the whole schema: a part of it cannot be another document`)
	errRefer = errors.New(`"$ref" is for "#" and "#/…" here, and "$dynamicRef" for nothing`)
)

func (l *loops) findIn(at string, part any) error {
	switch part := part.(type) {
	case map[string]any:
		if _, named := part["$id"].(string); named && at != "" {
			return errID // its "#" would mean itself, which lookUp does not support
		}
		if err := l.follow(at); err != nil {
			return err
		}
		for name, inner := range part {
			if err := l.findIn(at+"/"+escapePointer(name), inner); err != nil {
				return err
			}
		}
	case []any:
		for i, inner := range part {
			if err := l.findIn(at+"/"+strconv.Itoa(i), inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow visits the parts that apply to the same value as this one.
func (l *loops) follow(at string) error {
	if onTheWay, seen := l.seen[at]; seen {
		if onTheWay {
			return errLoop
		}
		return nil
	}
	part, ok := l.lookUp(at).(map[string]any)
	if !ok {
		return nil
	}
	l.seen[at] = true
	defer func() { l.seen[at] = false }()
	if _, dynamic := part["$dynamicRef"].(string); dynamic {
		return errRefer
	}
	if reference, ok := part["$ref"].(string); ok {
		plain, local := localRef(reference)
		if !local {
			return errRefer
		}
		if err := l.follow(plain); err != nil {
			return err
		}
	}
	for name, inner := range part {
		if err := l.apply(at+"/"+name, name, inner); err != nil {
			return err
		}
	}
	return nil
}

// localRef returns the pointer of a "$ref" within the same document.
func localRef(reference any) (pointer string, ok bool) {
	text, _ := reference.(string)
	to, local := strings.CutPrefix(text, "#")
	plain, err := url.PathUnescape(to)
	return plain, local && err == nil && (plain == "" || plain[0] == '/')
}

// apply follows a keyword if its schemas apply to the same value.
func (l *loops) apply(at, keyword string, inner any) error {
	switch inner := inner.(type) {
	case map[string]any:
		if slices.Contains([]string{"not", "if", "then", "else"}, keyword) {
			return l.follow(at)
		}
		if keyword == "dependentSchemas" || keyword == "dependencies" {
			for name := range inner {
				if err := l.follow(at + "/" + escapePointer(name)); err != nil {
					return err
				}
			}
		}
	case []any:
		if slices.Contains([]string{"allOf", "anyOf", "oneOf"}, keyword) {
			for i := range inner {
				if err := l.follow(at + "/" + strconv.Itoa(i)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (l *loops) lookUp(pointer string) any {
	part := l.root
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		switch at := part.(type) {
		case map[string]any:
			part = at[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(at) {
				return nil
			}
			part = at[i]
		default:
			return nil
		}
	}
	return part
}

func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
