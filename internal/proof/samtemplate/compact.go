package samtemplate

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// InlineLimit is how many bytes of a template CloudFormation takes as text, as Terraform and the CDK hand it over.
const InlineLimit = 51200

// Compact turns a template's text into the same template in as few bytes as its tools still read: YAML in one line,
// with short functions, and with quotes only where they are needed. Comments go, and what only the console shows:
// groups and descriptions of parameters, descriptions of outputs.
func Compact(text []byte) ([]byte, error) {
	template, err := bare(text)
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	if err := writeFlow(&out, template); err != nil {
		return nil, err
	}
	out.WriteString("\n")
	return []byte(out.String()), nil
}

// bare is a template without groups and descriptions.
func bare(text []byte) (map[string]any, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	if err := expand(&document); err != nil {
		return nil, err
	}
	longAttributes(&document)
	var template map[string]any
	if err := document.Decode(&template); err != nil {
		return nil, err
	}
	delete(template, "Metadata")
	for _, section := range []string{"Parameters", "Outputs"} {
		entries, _ := template[section].(map[string]any)
		for _, entry := range entries {
			if fields, ok := entry.(map[string]any); ok {
				delete(fields, "Description")
			}
		}
	}
	return template, nil
}

// plain is a text that is one without quotes, in every version of YAML.
var (
	plain    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$`)
	reserved = regexp.MustCompile(`(?i)^(y|n|yes|no|on|off|true|false|null)$`)
	oneLine  = regexp.MustCompile(`^[ -~]*$`)
)

// flowText is a text with the quotes that it needs. In double quotes YAML reads what JSON writes.
func flowText(text string) (string, error) {
	if plain.MatchString(text) && !reserved.MatchString(text) {
		return text, nil
	}
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return "", err
	}
	double, single := strings.TrimSuffix(out.String(), "\n"), "'"+strings.ReplaceAll(text, "'", "''")+"'"
	if oneLine.MatchString(text) && len(single) <= len(double) {
		return single, nil
	}
	return double, nil
}

// writeFlow writes a value of a template, which is what YAML decoded into.
func writeFlow(out *strings.Builder, value any) error {
	switch value := value.(type) {
	case map[string]any:
		if short, argument := shortFunction(value); short != "" {
			out.WriteString(short + " ")
			return writeFlow(out, argument)
		}
		for i, name := range slices.Sorted(maps.Keys(value)) {
			out.WriteString([]string{"{", ","}[min(i, 1)])
			if err := writeFlow(out, name); err != nil {
				return err
			}
			out.WriteString(": ")
			if err := writeFlow(out, value[name]); err != nil {
				return err
			}
		}
		if len(value) == 0 {
			out.WriteString("{")
		}
		out.WriteString("}")
	case []any:
		out.WriteString("[")
		for i, item := range value {
			if i > 0 {
				out.WriteString(",")
			}
			if err := writeFlow(out, item); err != nil {
				return err
			}
		}
		out.WriteString("]")
	case string:
		text, err := flowText(value)
		out.WriteString(text)
		return err
	case int, bool:
		fmt.Fprint(out, value)
	default:
		return fmt.Errorf("a template has no %T: %v", value, value)
	}
	return nil
}

// shortFunction is a function as YAML may say it. One whose argument is another function is said in full: a node has
// one tag.
func shortFunction(value map[string]any) (short string, argument any) {
	name, argument := Function(value)
	switch argument := argument.(type) {
	case string:
	case []any:
		if name == "Fn::GetAtt" {
			return "!GetAtt", fmt.Sprint(argument[0], ".", argument[1])
		}
	default:
		return "", nil
	}
	if name == "Ref" {
		return "!Ref", argument
	}
	if short, ok := strings.CutPrefix(name, "Fn::"); ok {
		return "!" + short, argument
	}
	return "", nil // Condition is also a property
}

// longAttributes gives Fn::GetAtt its list, the only form that JSON templates have everywhere.
func longAttributes(node *yaml.Node) {
	for i, child := range node.Content {
		longAttributes(child)
		if node.Kind != yaml.MappingNode || i%2 == 0 || node.Content[i-1].Value != "Fn::GetAtt" ||
			child.Kind != yaml.ScalarNode {
			continue
		}
		for at := range child.Value {
			if child.Value[at] != '.' {
				continue
			}
			part := func(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text} }
			node.Content[i] = &yaml.Node{
				Kind:    yaml.SequenceNode,
				Tag:     "!!seq",
				Content: []*yaml.Node{part(child.Value[:at]), part(child.Value[at+1:])},
			}
			break
		}
	}
}
