package samtemplate

import (
	"encoding/json"

	"go.yaml.in/yaml/v3"
)

// InlineLimit is how many bytes of a template CloudFormation takes as text, as Terraform and the CDK hand it over.
const InlineLimit = 51200

// Compact turns a template's text into the same template as JSON without a blank. Comments and short functions go, and
// what only the console shows: groups and descriptions of parameters, descriptions of outputs.
func Compact(text []byte) ([]byte, error) {
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
	return json.Marshal(template)
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
