package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemaCheck judges payloads by a schema.
func schemaCheck(text json.RawMessage) (func(json.RawMessage) error, error) {
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		return nil, err
	}
	// What is judged by is looked through, not what was written: the reader takes "$REF" for "$ref", and joins
	// what is there twice.
	read, err := json.Marshal(&schema)
	if err != nil {
		return nil, err
	}
	var root any
	if err := json.Unmarshal(read, &root); err != nil {
		return nil, err
	}
	l := &loops{root: root, seen: map[string]bool{}}
	if err := l.findIn("", root); err != nil {
		return nil, err
	}
	deepest := l.depthOf()
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, err
	}
	return func(payload json.RawMessage) error {
		if deepest > 0 && nesting(payload) > deepest {
			return fmt.Errorf("it is nested more than %d deep, and its schema judges a value in several ways", deepest)
		}
		var value any
		if err := json.NewDecoder(bytes.NewReader(payload)).Decode(&value); err != nil {
			return errors.New("it is no JSON")
		}
		if err := resolved.Validate(value); err != nil {
			return errors.New("its schema says otherwise at " + schemaPlace(err.Error()))
		}
		return nil
	}, nil
}

// schemaPlace is the part of the schema that a fault is about. The rest of its text quotes the payload.
func schemaPlace(text string) string {
	place := "root"
	for {
		rest, found := strings.CutPrefix(text, "validating ")
		next, after, cut := strings.Cut(rest, ": ")
		if !found || !cut {
			return place
		}
		place, text = next, after
	}
}

// loops finds schemas that apply themselves to the same value, by whatever way: judging by one never ends.
type loops struct {
	root any
	seen map[string]bool // pointers: true while they are on the way, false once they are known to end
}

var (
	errLoop  = errors.New("a part of it refers to itself for the same value")
	errID    = errors.New(`"$id" is for the whole schema: a part of it cannot be another document`)
	errRefer = errors.New(`"$ref" is for "#" and "#/…" here, and "$dynamicRef" for nothing`)
)

// findIn begins at every part.
func (l *loops) findIn(at string, part any) error {
	switch part := part.(type) {
	case map[string]any:
		if _, named := part["$id"].(string); named && at != "" {
			return errID // its "#" would be itself, which lookUp does not know
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

// follow goes from a part to those that judge the same value.
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

// localRef is the pointer of a "$ref" within its document.
func localRef(reference any) (pointer string, ok bool) {
	text, _ := reference.(string)
	to, local := strings.CutPrefix(text, "#")
	plain, err := url.PathUnescape(to)
	return plain, local && err == nil && (plain == "" || plain[0] == '/')
}

// apply goes on into the keywords that judge the value that their schema judges.
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

// lookUp finds a part by its pointer.
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
