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

// operation is an operation of the API with its tool.
type operation struct {
	method, path string
	inPath       []string
	inQuery      []string
	body         bool
	tool         *sdk.Tool
}

type schema = map[string]any

// The parts of the API's description that are used.
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

// describe reads the description of the API and returns the operations by tool.
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

// operation builds a tool. Its arguments are the parameters in path and query, and the fields of the body.
func (d *description) operation(t *tool, method, path string, one *described) (*operation, error) {
	o := &operation{method: method, path: path}
	properties, required := schema{}, []string{}
	for _, p := range one.Parameters {
		switch p.In {
		case "path":
			o.inPath = append(o.inPath, p.Name)
		case "query":
			o.inQuery = append(o.inQuery, p.Name)
		default: // headers belong to the connection
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

// Prefixes of references: in the API's description, and in a tool's schema.
const (
	componentsOfAPI = "#/components/schemas/"
	definitions     = "#/$defs/"
)

func (d *description) resolved(s schema) schema {
	if reference, ok := s["$ref"].(string); ok {
		return d.Components.Schemas[strings.TrimPrefix(reference, componentsOfAPI)]
	}
	return s
}

// complete returns a schema that includes everything it refers to. It returns *jsonschema.Schema because the SDK would
// parse any other type again for each of its servers, one per request.
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

// moved rewrites references to point to definitions, and collects those in all.
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
				all[name] = schema{} // in case it refers to itself
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
