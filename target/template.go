package target

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
)

// fieldName is a name of a secret, or one step of a path into a payload.
var fieldName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// template is a text with placeholders: ${payload.user.name}, ${run.id}, ${secret.NAME}; $${ is ${ itself. Secrets are
// filled in when the file is read.
type template []part

// part is literal text, or a value of the payload or the run.
type part struct {
	text string
	of   string // "payload" or "run"; "": literal
	path []string
}

// values are what placeholders stand for in an attempt.
type values struct {
	payload any // decoded, with json.Number
	run     map[string]string
}

func valuesOf(a *runlane.Attempt, payload []byte) (*values, error) {
	v := &values{}
	if a != nil {
		v.run = map[string]string{
			"id": string(a.Run.ID), "task": string(a.Run.TaskID), "attempt": strconv.Itoa(a.Number),
			"environment": a.Run.Environment.Name(), "effect": a.EffectID(),
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(payload))
	decoder.UseNumber()
	if err := decoder.Decode(&v.payload); err != nil {
		return nil, failed("the payload is not JSON", nil)
	}
	return v, nil
}

// runFields are the fields of ${run.…}.
var runFields = map[string]bool{"id": true, "task": true, "attempt": true, "environment": true, "effect": true}

// template parses a text. Faults are noted.
func (b *builder) template(what, text string) (t template) {
	literal := ""
	for {
		before, after, found := strings.Cut(text, "${")
		if found && strings.HasSuffix(before, "$") {
			literal, text = literal+before[:len(before)-1]+"${", after
			continue
		}
		literal += before
		if !found {
			return append(t, part{text: literal})
		}
		name, rest, closed := strings.Cut(after, "}")
		names := strings.Split(name, ".")
		switch {
		case !closed:
			b.fault("close it with }, or write $${ for the text ${", "%s has a placeholder without an end", what)
			return t
		case names[0] == "secret" && len(names) == 2:
			value, known := b.values[names[1]]
			if !known {
				b.fault("name it under secrets", "%s names a secret %q that the file does not have", what, names[1])
			}
			literal += value
		case names[0] == "payload" && validPath(names[1:]), names[0] == "run" && len(names) == 2 && runFields[names[1]]:
			t, literal = append(t, part{text: literal}, part{of: names[0], path: names[1:]}), ""
		default:
			b.fault("use payload.field, secret.NAME, run.id, run.task, run.attempt, run.effect or run.environment",
				"%s has the unknown placeholder ${%s}", what, name)
		}
		text = rest
	}
}

func validPath(names []string) bool {
	for _, name := range names {
		if !fieldName.MatchString(name) {
			return false
		}
	}
	return true
}

// render fills in the values, each through escape; nil changes nothing.
func (t template) render(v *values, escape func(string) string) (string, error) {
	var text strings.Builder
	for _, p := range t {
		if p.of == "" {
			text.WriteString(p.text)
			continue
		}
		value, err := p.value(v)
		if err != nil {
			return "", err
		}
		written, err := textOf(value)
		if err != nil {
			return "", err
		}
		if escape != nil {
			written = escape(written)
		}
		text.WriteString(written)
	}
	return text.String(), nil
}

// only returns the single placeholder of a text without anything else.
func (t template) only() (part, bool) {
	if len(t) == 3 && t[0].text == "" && t[1].of == "payload" && t[2].text == "" {
		return t[1], true
	}
	return part{}, false
}

func (p part) value(v *values) (any, error) {
	if p.of == "run" {
		return v.run[p.path[0]], nil
	}
	value := v.payload
	for _, name := range p.path {
		found := false
		switch in := value.(type) {
		case map[string]any:
			value, found = in[name]
		case []any:
			var n int
			if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(in) {
				n, found = i, true
				value = in[n]
			}
		}
		if !found {
			return nil, failed(fmt.Sprintf("the payload has no field %q", strings.Join(p.path, ".")), nil)
		}
	}
	return value, nil
}

// textOf writes a value within a text: a string as it is, null as nothing, anything else as JSON.
func textOf(value any) (string, error) {
	switch value := value.(type) {
	case string:
		return value, nil
	case nil:
		return "", nil
	default:
		text, err := json.Marshal(value)
		return string(text), err
	}
}

// tree is a body written as YAML: maps, lists and other values, whose texts are templates.
func (b *builder) tree(what string, value any) any {
	switch value := value.(type) {
	case string:
		return b.template(what, value)
	case []any:
		list := make([]any, len(value))
		for i := range value {
			list[i] = b.tree(what, value[i])
		}
		return list
	case map[string]any:
		fields := make(map[string]any, len(value))
		for name := range value {
			fields[name] = b.tree(what, value[name])
		}
		return fields
	case time.Time:
		b.fault("write it in quotes", "%s has a date, which JSON has not", what)
	case map[any]any:
		b.fault("write names in quotes", "%s has a name that is not text", what)
	}
	if _, err := json.Marshal(value); err != nil {
		b.fault("", "%s has a value that JSON has not", what)
	}
	return value
}

// filled fills in the templates of a tree. A text that is one placeholder becomes the value itself.
func filled(tree any, v *values) (any, error) {
	switch tree := tree.(type) {
	case template:
		if p, ok := tree.only(); ok {
			return p.value(v)
		}
		return tree.render(v, nil)
	case []any:
		list := make([]any, len(tree))
		for i := range tree {
			var err error
			if list[i], err = filled(tree[i], v); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		fields := make(map[string]any, len(tree))
		for name := range tree {
			var err error
			if fields[name], err = filled(tree[name], v); err != nil {
				return nil, err
			}
		}
		return fields, nil
	}
	return tree, nil
}

// failed is a failure that the same payload brings again.
func failed(message string, meta map[string]string) error {
	return runlane.Permanent(&runlane.Error{Code: ErrFailed, Message: message, Meta: meta})
}

// keyOf computes a key from a payload. Without its field there would be no key, and nothing would be refused.
func (t template) keyOf(payload json.RawMessage) string {
	v, err := valuesOf(nil, payload)
	if err == nil {
		var key string
		if key, err = t.render(v, nil); err == nil {
			return key
		}
	}
	panic(keyError(runlane.Permanent(err).Error()))
}

// keyError is a runtime.Error, so that the trigger's error has its text.
type keyError string

func (e keyError) Error() string { return string(e) }

// RuntimeError implements runtime.Error.
func (keyError) RuntimeError() {}
