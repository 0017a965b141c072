package schema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// dialect is a draft of JSON Schema. foreign are keywords of other drafts, which this one ignores.
type dialect struct {
	name    string
	draft   *jsonschema.Draft
	foreign []string
}

var dialects = map[string]*dialect{
	"json-schema.org/draft/2020-12/schema": {"draft 2020-12", jsonschema.Draft2020, []string{
		"$recursiveRef", "additionalItems", "dependencies",
	}},
	"json-schema.org/draft-07/schema": {"draft 7", jsonschema.Draft7, []string{
		"$dynamicRef", "$recursiveRef", "dependentRequired", "dependentSchemas", "maxContains", "minContains",
		"prefixItems", "unevaluatedItems", "unevaluatedProperties",
	}},
}

// dialectOf returns the dialect that a schema names, by default draft 2020-12.
func dialectOf(root any) (*dialect, error) {
	named := "https://json-schema.org/draft/2020-12/schema"
	if whole, ok := root.(map[string]any); ok {
		if given, ok := whole["$schema"]; ok {
			named, _ = given.(string)
		}
	}
	_, address, _ := strings.Cut(strings.TrimSuffix(named, "#"), "://")
	if known := dialects[address]; known != nil {
		return known, nil
	}
	return nil, fmt.Errorf("its dialect %.100q is not known here: $schema is for drafts 2020-12 and 7", named)
}

// ranges are pairs of keywords of which the first may not exceed the second.
var ranges = [][2]string{
	{"minContains", "maxContains"}, {"minItems", "maxItems"}, {"minLength", "maxLength"},
	{"minProperties", "maxProperties"}, {"minimum", "maximum"},
}

// judge refuses a valid schema with a part that checks nothing, or that no value can satisfy.
func (d *dialect) judge(schema any) error {
	part, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	for _, keyword := range d.foreign {
		if _, there := part[keyword]; there {
			return fmt.Errorf("%q is not a keyword of its dialect, %s: name another with $schema", keyword, d.name)
		}
	}
	for _, r := range ranges {
		if least, most := rational(part[r[0]]), rational(part[r[1]]); least != nil && most != nil && least.Cmp(most) > 0 {
			return fmt.Errorf("no value fits: %s is more than %s", r[0], r[1])
		}
	}
	for keyword, value := range part {
		if err := d.within(keyword, value); err != nil {
			return err
		}
	}
	return nil
}

func (d *dialect) within(keyword string, value any) error {
	switch keyword {
	case "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
		"propertyNames", "then", "unevaluatedItems", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "prefixItems":
		if list, ok := value.([]any); ok {
			for _, schema := range list {
				if err := d.judge(schema); err != nil {
					return err
				}
			}
			return nil
		}
		return d.judge(value)
	case "$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties":
		named, _ := value.(map[string]any)
		for _, schema := range named {
			if err := d.judge(schema); err != nil {
				return err
			}
		}
	}
	return nil
}

func rational(value any) *big.Rat {
	number, _ := value.(json.Number)
	r, _ := new(big.Rat).SetString(string(number))
	return r
}
