package main

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// recorded is what `tofu providers schema -json` says of hashicorp/aws, reduced to what the module uses.
//
//go:embed schema.json
var recorded []byte

type schemas struct {
	Provider    schema            `json:"provider"`
	Resources   map[string]schema `json:"resource_schemas"`
	DataSources map[string]schema `json:"data_source_schemas"`
}

type schema struct {
	Version int64 `json:"version"`
	Block   block `json:"block"`
}

type block struct {
	Attributes map[string]attribute `json:"attributes"`
	Blocks     map[string]nested    `json:"block_types"`
}

type attribute struct {
	Type     any  `json:"type"`
	Required bool `json:"required"`
	Optional bool `json:"optional"`
	Computed bool `json:"computed"`
}

type nested struct {
	Mode  string `json:"nesting_mode"`
	Least int64  `json:"min_items"`
	Most  int64  `json:"max_items"`
	Block block  `json:"block"`
}

func load() (*schemas, error) {
	var s schemas
	return &s, json.Unmarshal(recorded, &s)
}

func (s *schema) protocol() *tfprotov6.Schema {
	return &tfprotov6.Schema{Version: s.Version, Block: s.Block.protocol()}
}

func (b *block) protocol() *tfprotov6.SchemaBlock {
	out := &tfprotov6.SchemaBlock{}
	for name, a := range b.Attributes {
		out.Attributes = append(out.Attributes, &tfprotov6.SchemaAttribute{
			Name: name, Type: typeOf(a.Type), Required: a.Required, Optional: a.Optional, Computed: a.Computed,
		})
	}
	for name, n := range b.Blocks {
		mode := tfprotov6.SchemaNestedBlockNestingModeList
		if n.Mode == "set" {
			mode = tfprotov6.SchemaNestedBlockNestingModeSet
		}
		out.BlockTypes = append(out.BlockTypes, &tfprotov6.SchemaNestedBlock{
			TypeName: name, Nesting: mode, MinItems: n.Least, MaxItems: n.Most, Block: n.Block.protocol(),
		})
	}
	return out
}

func typeOf(written any) tftypes.Type {
	switch written := written.(type) {
	case string:
		switch written {
		case "string":
			return tftypes.String
		case "number":
			return tftypes.Number
		case "bool":
			return tftypes.Bool
		}
	case []any:
		element := typeOf(written[1])
		switch written[0] {
		case "list":
			return tftypes.List{ElementType: element}
		case "set":
			return tftypes.Set{ElementType: element}
		case "map":
			return tftypes.Map{ElementType: element}
		}
	}
	panic(fmt.Sprintf("schema.json: type %v", written))
}
