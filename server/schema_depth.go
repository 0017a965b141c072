package server

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
)

// maxJudged bounds how often the deepest value of a payload is judged.
const maxJudged = 100_000

// A schema that contains itself judges each level of a payload by itself. Where it does so in several ways for one
// value, as in two branches of anyOf, the deepest value is judged as often as the ways multiply: twice more with each
// level. depthOf is how deep payloads may be nested then; 0 for a schema that judges each value but once a level.
func (l *loops) depthOf() int {
	ways := 1
	for at, component := range l.components() {
		within := slices.DeleteFunc(l.edgesOf(at), func(e edge) bool { return !component[e.to] })
		for i := range within {
			n := 1
			for j := range within {
				if i != j && within[i].meets(&within[j]) {
					n++
				}
			}
			ways = max(ways, n)
		}
	}
	if ways == 1 {
		return 0
	}
	return max(3, int(math.Log(maxJudged)/math.Log(float64(ways))))
}

// edge leads from a part of a schema to one that judges the same value, or a part of it.
type edge struct {
	to    string   // a pointer
	types []string // of the values that it judges; nil for any
	inner bool     // it judges what the value has in it
	some  bool     // of inner: whatever fits, also what other keywords judge
}

// meets reports whether two edges of one part may judge the same value.
func (e *edge) meets(o *edge) bool {
	sameType := e.types == nil || o.types == nil ||
		slices.ContainsFunc(e.types, func(t string) bool { return slices.Contains(o.types, t) })
	return sameType && (!e.inner || !o.inner || e.some || o.some)
}

// edgesOf are the ways from a part.
func (l *loops) edgesOf(at string) (found []edge) {
	part, ok := l.lookUp(at).(map[string]any)
	if !ok {
		return nil
	}
	same := func(to string) { found = append(found, edge{to: to, types: l.typesOf(to, 0)}) }
	inner := func(to, kind string, some bool) {
		found = append(found, edge{
			to:    to,
			types: []string{kind},
			inner: true,
			some:  some,
		})
	}
	for name, value := range part {
		to := at + "/" + escapePointer(name)
		each := func(add func(to string)) {
			switch value := value.(type) {
			case map[string]any:
				for key := range value {
					add(to + "/" + escapePointer(key))
				}
			case []any:
				for i := range value {
					add(to + "/" + strconv.Itoa(i))
				}
			}
		}
		_, list := value.([]any)
		switch name {
		case "$ref":
			if plain, ok := localRef(value); ok {
				same(plain)
			}
		case "allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies":
			each(same)
		case "not", "if", "then", "else":
			same(to)
		case "properties":
			each(func(to string) { inner(to, "object", false) })
		case "patternProperties":
			each(func(to string) { inner(to, "object", true) })
		case "additionalProperties", "unevaluatedProperties":
			inner(to, "object", false)
		case "items", "prefixItems":
			if list {
				each(func(to string) { inner(to, "array", false) })
			} else {
				inner(to, "array", false)
			}
		case "additionalItems", "unevaluatedItems":
			inner(to, "array", false)
		case "contains":
			inner(to, "array", true)
		}
	}
	return found
}

// typesOf are the types of values that a part takes, as it or what it refers to says; nil for any.
func (l *loops) typesOf(at string, followed int) (types []string) {
	part, _ := l.lookUp(at).(map[string]any)
	switch said := part["type"].(type) {
	case string:
		types = []string{said}
	case []any:
		for _, t := range said {
			if t, ok := t.(string); ok {
				types = append(types, t)
			}
		}
	default:
		if plain, ok := localRef(part["$ref"]); ok && followed < 10 {
			return l.typesOf(plain, followed+1)
		}
	}
	for i, t := range types {
		if t == "integer" {
			types[i] = "number"
		}
	}
	return types
}

// components are, for each part that contains itself, the parts of the schema that contain it and that it contains.
func (l *loops) components() map[string]map[string]bool {
	found := map[string]map[string]bool{}
	number, low := map[string]int{}, map[string]int{}
	var stack []string
	on := map[string]bool{}
	var visit func(at string)
	visit = func(at string) {
		number[at] = len(number) + 1
		low[at] = number[at]
		stack, on[at] = append(stack, at), true
		itself := false
		for _, e := range l.edgesOf(at) {
			itself = itself || e.to == at
			if number[e.to] == 0 {
				visit(e.to)
				low[at] = min(low[at], low[e.to])
			} else if on[e.to] {
				low[at] = min(low[at], number[e.to])
			}
		}
		if low[at] != number[at] {
			return
		}
		component := map[string]bool{}
		for {
			last := stack[len(stack)-1]
			stack, on[last], component[last] = stack[:len(stack)-1], false, true
			if last == at {
				break
			}
		}
		if len(component) == 1 && !itself {
			return
		}
		for part := range component {
			found[part] = component
		}
	}
	visit("")
	return found
}

// nesting is how deep the arrays and objects of a JSON value are.
func nesting(value []byte) int {
	decoder := json.NewDecoder(bytes.NewReader(value))
	deepest, depth := 0, 0
	for {
		token, err := decoder.Token()
		if err != nil {
			return deepest
		}
		switch token {
		case json.Delim('['), json.Delim('{'):
			depth++
			deepest = max(deepest, depth)
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
	}
}
