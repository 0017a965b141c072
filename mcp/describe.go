package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/runlane/runlane-go/server"
)

// operation is what a tool does at the API.
type operation struct {
	method, path string
	inPath       []string
	inQuery      []string
	body         bool
	tool         *sdk.Tool
}

// schema is a JSON Schema as the API's description has it.
type schema = map[string]any

// The parts of the API's description that are read.
type (
	description struct {
		Paths      map[string]map[string]*described
		Components struct{ Schemas map[string]schema }
	}
	described struct {
		OperationID, Summary, Description string
		Parameters                        []parameter
		RequestBody                       *content
		Responses                         map[string]*content
	}
	parameter struct {
		Name, In, Description string
		Required              bool
		Schema                schema
	}
	content struct {
		Required bool
		Content  map[string]struct{ Schema schema }
	}
)

// described reads the description of the API, and makes an operation of each tool.
func describe(prefix string) (map[string]*operation, error) {
	text, err := server.OpenAPI(prefix)
	if err != nil {
		return nil, err
	}
	var api description
	if err := json.Unmarshal(text, &api); err != nil {
		return nil, err
	}
	found := map[string]*operation{}
	for path, methods := range api.Paths {
		for method, one := range methods {
			for i := range tools {
				if tools[i].operation != one.OperationID {
					continue
				}
				made, err := api.operation(&tools[i], strings.ToUpper(method), path, one)
				if err != nil {
					return nil, err
				}
				found[tools[i].name] = made
			}
		}
	}
	for i := range tools {
		if found[tools[i].name] == nil {
			return nil, fmt.Errorf("mcp: the API has no operation %s", tools[i].operation)
		}
	}
	return found, nil
}

// operation is a tool with the schemas of its operation. Path, query and the fields of the body are its arguments.
func (d *description) operation(t *tool, method, path string, one *described) (*operation, error) {
	o := &operation{method: method, path: path}
	properties, required := schema{}, []string{}
	for _, p := range one.Parameters {
		switch p.In {
		case "path":
			o.inPath = append(o.inPath, p.Name)
		case "query":
			o.inQuery = append(o.inQuery, p.Name)
		default: // headers are the connection's
			continue
		}
		if p.Description != "" {
			p.Schema["description"] = p.Description
		}
		properties[p.Name] = p.Schema
		if p.Required {
			required = append(required, p.Name)
		}
	}
	if one.RequestBody != nil {
		o.body = true
		body := d.resolved(one.RequestBody.Content["application/json"].Schema)
		fields, _ := body["properties"].(schema)
		maps.Copy(properties, fields)
		needed, _ := body["required"].([]any)
		for _, name := range needed {
			required = append(required, fmt.Sprint(name))
		}
	}
	in := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		in["required"] = required
	}
	input, err := d.complete(in)
	if err != nil {
		return nil, err
	}
	output, err := d.complete(maps.Clone(d.resolved(one.Responses["200"].Content["application/json"].Schema)))
	if err != nil {
		return nil, err
	}
	isRead, no := !t.writes, false
	o.tool = &sdk.Tool{
		Name:         t.name,
		Title:        one.Summary,
		Description:  strings.TrimSpace(one.Summary + ". " + one.Description + " " + t.text),
		InputSchema:  input,
		OutputSchema: output,
		Annotations: &sdk.ToolAnnotations{
			Title:           one.Summary,
			ReadOnlyHint:    isRead,
			DestructiveHint: &t.ends,
			IdempotentHint:  isRead || t.repeats,
			OpenWorldHint:   &no,
		},
	}
	return o, nil
}

// Where the API's description, and where a tool's schema, keep what others refer to.
const (
	componentsOfAPI = "#/components/schemas/"
	definitions     = "#/$defs/"
)

// resolved is the schema itself.
func (d *description) resolved(s schema) schema {
	if reference, ok := s["$ref"].(string); ok {
		return d.Components.Schemas[strings.TrimPrefix(reference, componentsOfAPI)]
	}
	return s
}

// complete is a schema with all that it refers to, so that it stands alone. The SDK would read any other type anew for
// each of its servers, of which there is one a request.
func (d *description) complete(s schema) (*jsonschema.Schema, error) {
	all := schema{}
	moved, _ := d.moved(s, all).(schema)
	if len(all) > 0 {
		moved["$defs"] = all
	}
	text, err := json.Marshal(moved)
	if err != nil {
		return nil, err
	}
	var whole jsonschema.Schema
	return &whole, json.Unmarshal(text, &whole)
}

// moved is a value of a schema whose references lead to definitions, which are collected.
func (d *description) moved(value any, all schema) any {
	switch value := value.(type) {
	case schema:
		changed := make(schema, len(value))
		for _, key := range slices.Sorted(maps.Keys(value)) {
			changed[key] = d.moved(value[key], all)
		}
		if reference, ok := value["$ref"].(string); ok {
			name := strings.TrimPrefix(reference, componentsOfAPI)
			changed["$ref"] = definitions + name
			if all[name] == nil {
				all[name] = schema{} // before what it refers to
				all[name] = d.moved(d.Components.Schemas[name], all)
			}
		}
		return changed
	case []any:
		changed := make([]any, len(value))
		for i := range value {
			changed[i] = d.moved(value[i], all)
		}
		return changed
	default:
		return value
	}
}
