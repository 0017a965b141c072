// Package samtemplate reads the deployment template, evaluates it as CloudFormation would for given parameters, and
// judges what no tool judges. Its tests hold the template equal to package infra, to what the functions read and call,
// and to the documentation.
package samtemplate

import (
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Template is a template as written: short functions (!Ref) have become long ones ({Ref: ...}).
type Template struct {
	Parameters map[string]Parameter                 `yaml:"Parameters"`
	Rules      map[string]any                       `yaml:"Rules"`
	Mappings   map[string]map[string]map[string]any `yaml:"Mappings"`
	Conditions map[string]any                       `yaml:"Conditions"`
	Globals    map[string]any                       `yaml:"Globals"`
	Resources  map[string]Resource                  `yaml:"Resources"`
	Outputs    map[string]Output                    `yaml:"Outputs"`
}

// Parameter is one declaration. Default and AllowedValues are what the YAML says, numbers or text.
type Parameter struct {
	Type           string `yaml:"Type"`
	Description    string `yaml:"Description"`
	Default        any    `yaml:"Default"`
	AllowedValues  []any  `yaml:"AllowedValues"`
	MinValue       *int   `yaml:"MinValue"`
	MaxValue       *int   `yaml:"MaxValue"`
	AllowedPattern string `yaml:"AllowedPattern"`
	NoEcho         bool   `yaml:"NoEcho"`
	MinLength      *int   `yaml:"MinLength"`
	MaxLength      *int   `yaml:"MaxLength"`
}

// Resource is one resource.
type Resource struct {
	Type                string         `yaml:"Type"`
	Condition           string         `yaml:"Condition"`
	DeletionPolicy      string         `yaml:"DeletionPolicy"`
	UpdateReplacePolicy string         `yaml:"UpdateReplacePolicy"`
	Metadata            map[string]any `yaml:"Metadata"`
	Properties          map[string]any `yaml:"Properties"`
}

// Output is one output.
type Output struct {
	Description string `yaml:"Description"`
	Condition   string `yaml:"Condition"`
	Value       any    `yaml:"Value"`
}

// Load reads a template file.
func Load(path string) (*Template, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(text)
}

// Parse reads a template's text.
func Parse(text []byte) (*Template, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	if len(document.Content) != 1 {
		return nil, fmt.Errorf("the template is empty")
	}
	if err := expand(document.Content[0]); err != nil {
		return nil, err
	}
	var t Template
	if err := document.Content[0].Decode(&t); err != nil {
		return nil, err
	}
	return &t, nil
}

// expand turns nodes with a short function's tag into a mapping with the long name.
func expand(node *yaml.Node) error {
	for _, child := range node.Content {
		if err := expand(child); err != nil {
			return err
		}
	}
	name, short := strings.CutPrefix(node.Tag, "!")
	if !short || strings.HasPrefix(name, "!") {
		return nil
	}
	value := *node
	switch node.Kind {
	case yaml.ScalarNode:
		value.Tag = "!!str"
	case yaml.SequenceNode:
		value.Tag = "!!seq"
	case yaml.DocumentNode, yaml.MappingNode, yaml.AliasNode:
		return fmt.Errorf("line %d: !%s of something else than text or a list", node.Line, name)
	}
	value.Anchor = ""
	if name != "Ref" && name != "Condition" {
		name = "Fn::" + name
	}
	*node = yaml.Node{
		Kind: yaml.MappingNode, Tag: "!!map", Line: node.Line, Column: node.Column, Anchor: node.Anchor,
		Content: []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}, &value},
	}
	return nil
}

// Function returns the name and the argument of an intrinsic function, "" for any other value.
func Function(value any) (name string, argument any) {
	m, ok := value.(map[string]any)
	if !ok || len(m) != 1 {
		return "", nil
	}
	for name, argument := range m {
		if name == "Ref" || name == "Condition" || strings.HasPrefix(name, "Fn::") {
			return name, argument
		}
	}
	return "", nil
}
