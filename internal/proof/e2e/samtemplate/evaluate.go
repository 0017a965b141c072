package samtemplate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Evaluate returns the resources and outputs that exist for the given parameters, over the defaults. Parameters,
// mappings and conditions are resolved and the functions' globals merged in. What only a deployment knows stays as
// text: "${Table}" is a resource's Ref, "${Table.Arn}" an attribute, "${AWS::Region}" a pseudo parameter.
func (t *Template) Evaluate(parameters map[string]string) (*Template, error) {
	e := evaluation{template: t, parameters: map[string]string{}}
	for name, p := range t.Parameters {
		if p.Default != nil {
			e.parameters[name] = fmt.Sprint(p.Default)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		p, ok := t.Parameters[name]
		if !ok {
			return nil, fmt.Errorf("there is no parameter %s", name)
		}
		if !p.allows(parameters[name]) {
			return nil, fmt.Errorf("parameter %s does not allow %q", name, parameters[name])
		}
		e.parameters[name] = parameters[name]
	}
	out := &Template{Parameters: t.Parameters, Resources: map[string]Resource{}, Outputs: map[string]Output{}}
	for name, r := range t.Resources {
		if !e.holds(r.Condition) {
			continue
		}
		properties := r.Properties
		if r.Type == "AWS::Serverless::Function" {
			globals, _ := t.Globals["Function"].(map[string]any)
			properties = merge(globals, properties)
		}
		r.Properties, _ = e.value(properties).(map[string]any)
		out.Resources[name] = r
	}
	for name, o := range t.Outputs {
		if e.holds(o.Condition) {
			o.Value = e.value(o.Value)
			out.Outputs[name] = o
		}
	}
	return out, e.err
}

func (p *Parameter) allows(value string) bool {
	if len(p.AllowedValues) > 0 &&
		!slices.ContainsFunc(p.AllowedValues, func(v any) bool { return fmt.Sprint(v) == value }) {
		return false
	}
	if p.AllowedPattern == "" {
		return true
	}
	return regexp.MustCompile("^(?:" + p.AllowedPattern + ")$").MatchString(value)
}

// merge lays a function's properties over the globals: maps are merged, all else is replaced.
func merge(globals, own map[string]any) map[string]any {
	out := maps.Clone(globals)
	if out == nil {
		out = map[string]any{}
	}
	for name, value := range own {
		below, both := out[name].(map[string]any)
		above, isMap := value.(map[string]any)
		function, _ := Function(value)
		if both && isMap && function == "" {
			value = merge(below, above)
		}
		out[name] = value
	}
	return out
}

type evaluation struct {
	template   *Template
	parameters map[string]string
	err        error // the first
}

func (e *evaluation) fail(format string, values ...any) any {
	if e.err == nil {
		e.err = fmt.Errorf(format, values...)
	}
	return nil
}

// none is AWS::NoValue.
type none struct{}

func (e *evaluation) value(v any) any {
	if name, argument := Function(v); name != "" {
		return e.call(name, argument)
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, value := range v {
			if value = e.value(value); value != (none{}) {
				out[name] = value
			}
		}
		return out
	case []any:
		out := []any{}
		for _, value := range v {
			if value = e.value(value); value != any(none{}) {
				out = append(out, value)
			}
		}
		return out
	default:
		return v
	}
}

func (e *evaluation) call(name string, argument any) any {
	list, _ := argument.([]any)
	text, _ := argument.(string)
	switch {
	case name == "Ref" && text == "AWS::NoValue":
		return none{}
	case name == "Ref":
		return e.reference(text)
	case name == "Fn::GetAtt" && (text != "" || len(list) == 2):
		if text == "" { // the long form
			text = fmt.Sprint(list[0], ".", list[1])
		}
		resource, _, _ := strings.Cut(text, ".")
		if _, ok := e.template.Resources[resource]; !ok {
			return e.fail("GetAtt of %s: there is no such resource", text)
		}
		return "${" + text + "}"
	case name == "Fn::Sub" && text != "":
		return e.substitute(text, nil)
	case name == "Fn::Sub" && len(list) == 2:
		text, _ := list[0].(string)
		names, _ := list[1].(map[string]any)
		return e.substitute(text, names)
	case name == "Fn::If" && len(list) == 3:
		condition, _ := list[0].(string)
		if e.holds(condition) {
			return e.value(list[1])
		}
		return e.value(list[2])
	case name == "Fn::FindInMap" && len(list) == 3:
		mapping, first, second := fmt.Sprint(list[0]), fmt.Sprint(e.value(list[1])), fmt.Sprint(list[2])
		found, ok := e.template.Mappings[mapping][first][second]
		if !ok {
			return e.fail("mapping %s has no %s, %s", mapping, first, second)
		}
		return found
	case name == "Fn::Join" && len(list) == 2:
		parts, _ := e.value(list[1]).([]any)
		texts := make([]string, len(parts))
		for i, part := range parts {
			texts[i] = fmt.Sprint(part)
		}
		return strings.Join(texts, fmt.Sprint(list[0]))
	case name == "Fn::Split" && len(list) == 2:
		var parts []any
		for part := range strings.SplitSeq(fmt.Sprint(e.value(list[1])), fmt.Sprint(list[0])) {
			parts = append(parts, part)
		}
		return parts
	case name == "Fn::Select" && len(list) == 2:
		parts, _ := e.value(list[1]).([]any)
		index, isNumber := list[0].(int)
		if !isNumber || index < 0 || index >= len(parts) {
			return e.fail("Select of %v: there are %d", list[0], len(parts))
		}
		return parts[index]
	default:
		return e.fail("function %s of %v is not understood", name, argument)
	}
}

func (e *evaluation) reference(name string) any {
	if _, ok := e.template.Parameters[name]; ok {
		value, known := e.parameters[name]
		if !known {
			return e.fail("parameter %s has no value", name)
		}
		return value
	}
	owner, _, _ := strings.Cut(name, ".") // Bridge.Alias is SAM's
	if _, ok := e.template.Resources[owner]; !ok && !strings.HasPrefix(name, "AWS::") {
		return e.fail("Ref of %s: there is no such parameter or resource", name)
	}
	return "${" + name + "}"
}

var placeholder = regexp.MustCompile(`\$\{[^}]+\}`)

func (e *evaluation) substitute(text string, names map[string]any) string {
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		name := found[2 : len(found)-1]
		if value, ok := names[name]; ok {
			return fmt.Sprint(e.value(value))
		}
		return fmt.Sprint(e.reference(name))
	})
}

// holds evaluates a condition by name; "" holds.
func (e *evaluation) holds(condition string) bool {
	if condition == "" {
		return true
	}
	definition, ok := e.template.Conditions[condition]
	if !ok {
		e.fail("there is no condition %s", condition)
		return false
	}
	return e.truth(definition)
}

func (e *evaluation) truth(definition any) bool {
	name, argument := Function(definition)
	list, _ := argument.([]any)
	switch {
	case name == "Condition":
		return e.holds(fmt.Sprint(argument))
	case name == "Fn::Equals" && len(list) == 2:
		return fmt.Sprint(e.value(list[0])) == fmt.Sprint(e.value(list[1]))
	case name == "Fn::Not" && len(list) == 1:
		return !e.truth(list[0])
	case name == "Fn::And" && len(list) > 1:
		return !slices.ContainsFunc(list, func(d any) bool { return !e.truth(d) })
	case name == "Fn::Or" && len(list) > 1:
		return slices.ContainsFunc(list, e.truth)
	default:
		e.fail("condition %v is not understood", definition)
		return false
	}
}
