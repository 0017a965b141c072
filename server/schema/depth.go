package schema

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
)

// maxJudged limits how often the deepest value of a payload is checked.
const maxJudged = 100_000

// depthOf returns the deepest allowed nesting of payloads; 0 means no limit. If a recursive schema applies itself to
// one value in several ways, such as two branches of anyOf, the checks of the deepest value multiply with each level.
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

// edge leads from a part of a schema to a part that checks the same value, or a value in it.
type edge struct {
	to    string   // a pointer
	types []string // of the values that it checks; nil means any
	inner bool     // it checks values inside the value
	some  bool     // if inner: it may check values that other keywords check too
}

// meets reports whether two edges of one part may check the same value.
func (e *edge) meets(o *edge) bool {
	sameType := e.types == nil || o.types == nil ||
		slices.ContainsFunc(e.types, func(t string) bool { return slices.Contains(o.types, t) })
	return sameType && (!e.inner || !o.inner || e.some || o.some)
}

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

// typesOf returns the types of values that a part accepts, following its reference; nil means any.
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

// components maps each recursive part to its strongly connected component (Tarjan's algorithm).
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
