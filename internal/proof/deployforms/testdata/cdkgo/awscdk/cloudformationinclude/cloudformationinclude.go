// Package cloudformationinclude stands for the package of that name. It replaces parameters in the template as that does.
package cloudformationinclude

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"
)

// CfnIncludeProps are those of an included template.
type CfnIncludeProps struct {
	TemplateFile *string
	Parameters   *map[string]interface{}
}

// CfnInclude is an included template.
type CfnInclude interface {
	GetResource(logicalId *string) awscdk.CfnResource
	GetOutput(logicalId *string) awscdk.CfnOutput
}

// Included is an included template that can be written.
type Included struct {
	Template   map[string]interface{}
	parameters map[string]interface{}
	declared   map[string]interface{}
}

// NewCfnInclude includes a template.
func NewCfnInclude(scope constructs.Construct, id *string, props *CfnIncludeProps) CfnInclude {
	constructs.NewConstruct(scope, id)
	text, err := os.ReadFile(*props.TemplateFile)
	if err != nil {
		panic(err)
	}
	i := &Included{parameters: *props.Parameters}
	if err := json.Unmarshal(text, &i.Template); err != nil {
		panic(err)
	}
	i.declared, _ = i.Template["Parameters"].(map[string]interface{})
	delete(i.Template, "Parameters")
	i.Template = i.replaced(i.Template).(map[string]interface{})
	i.Template["Parameters"] = map[string]interface{}{}
	return i
}

func (i *Included) replaced(value interface{}) interface{} {
	switch value := value.(type) {
	case map[string]interface{}:
		if name, ok := value["Ref"].(string); ok && i.parameters[name] != nil {
			return i.value(name)
		}
		out := map[string]interface{}{}
		for name, inner := range value {
			if text, ok := inner.(string); ok && name == "Fn::Sub" {
				inner = i.substituted(text)
			}
			if list, ok := inner.([]interface{}); ok && name == "Fn::Sub" {
				inner = []interface{}{i.substituted(list[0].(string)), list[1]}
			}
			out[name] = i.replaced(inner)
		}
		return out
	case []interface{}:
		out := []interface{}{}
		for _, inner := range value {
			out = append(out, i.replaced(inner))
		}
		return out
	default:
		return value
	}
}

// value is a parameter's: where a resource wants a number, the CDK makes one of a text.
func (i *Included) value(name string) interface{} {
	text := i.parameters[name].(string)
	declared, _ := i.declared[name].(map[string]interface{})
	if number, err := strconv.Atoi(text); err == nil && declared["Type"] == "Number" {
		return number
	}
	return text
}

func (i *Included) substituted(text string) string {
	for name, value := range i.parameters {
		text = strings.ReplaceAll(text, "${"+name+"}", value.(string))
	}
	return text
}

type element struct {
	id    string
	value map[string]interface{}
}

func (e *element) Ref() *string {
	text := "${Token[" + e.id + "]}"
	return &text
}

func (e *element) Value() interface{} { return e.value["Value"] }

func (e *element) AddPropertyOverride(path *string, value interface{}) {
	at := e.value["Properties"].(map[string]interface{})
	steps := strings.Split(*path, ".")
	for _, step := range steps[:len(steps)-1] {
		at = at[step].(map[string]interface{})
	}
	at[steps[len(steps)-1]] = value
}

func (i *Included) element(section, id string) *element {
	value, ok := i.Template[section].(map[string]interface{})[id].(map[string]interface{})
	if !ok {
		panic("there is no " + id)
	}
	return &element{id: id, value: value}
}

// GetResource is a resource of the template.
func (i *Included) GetResource(logicalId *string) awscdk.CfnResource {
	return i.element("Resources", *logicalId)
}

// GetOutput is an output of the template.
func (i *Included) GetOutput(logicalId *string) awscdk.CfnOutput {
	return i.element("Outputs", *logicalId)
}
