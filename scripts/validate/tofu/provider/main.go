// Command provider stands for hashicorp/aws, so that OpenTofu validates deploy/terraform without the registry of providers. It has
// the attributes of what the module uses, as version 6.25.0 has them, and makes nothing.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// recorded is taken from the npm package @cdktf/provider-aws 21.22.1, which is made from the provider.
//
//go:embed schema.json
var recorded []byte

type attributes map[string]struct {
	Type     any  `json:"type"`
	Required bool `json:"required"`
	Optional bool `json:"optional"`
	Computed bool `json:"computed"`
}

type provider struct {
	tfprotov6.ProviderServer

	Provider  attributes            `json:"provider"`
	Data      map[string]attributes `json:"data"`
	Resources map[string]attributes `json:"resources"`
}

func main() {
	p := &provider{}
	err := json.Unmarshal(recorded, p)
	if err == nil {
		err = tf6server.Serve("registry.opentofu.org/hashicorp/aws", func() tfprotov6.ProviderServer { return p })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "provider:", err)
		os.Exit(1)
	}
}

func (p *provider) GetProviderSchema(
	context.Context, *tfprotov6.GetProviderSchemaRequest,
) (*tfprotov6.GetProviderSchemaResponse, error) {
	return &tfprotov6.GetProviderSchemaResponse{
		ServerCapabilities: &tfprotov6.ServerCapabilities{},
		Provider:           schemaOf(p.Provider),
		ResourceSchemas:    schemasOf(p.Resources),
		DataSourceSchemas:  schemasOf(p.Data),
	}, nil
}

func (p *provider) GetResourceIdentitySchemas(
	context.Context, *tfprotov6.GetResourceIdentitySchemasRequest,
) (*tfprotov6.GetResourceIdentitySchemasResponse, error) {
	return &tfprotov6.GetResourceIdentitySchemasResponse{}, nil
}

func (p *provider) ValidateProviderConfig(
	_ context.Context, request *tfprotov6.ValidateProviderConfigRequest,
) (*tfprotov6.ValidateProviderConfigResponse, error) {
	return &tfprotov6.ValidateProviderConfigResponse{PreparedConfig: request.Config}, nil
}

func (p *provider) ValidateResourceConfig(
	context.Context, *tfprotov6.ValidateResourceConfigRequest,
) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return &tfprotov6.ValidateResourceConfigResponse{}, nil
}

func (p *provider) ValidateDataResourceConfig(
	context.Context, *tfprotov6.ValidateDataResourceConfigRequest,
) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	return &tfprotov6.ValidateDataResourceConfigResponse{}, nil
}

func (p *provider) StopProvider(
	context.Context, *tfprotov6.StopProviderRequest,
) (*tfprotov6.StopProviderResponse, error) {
	return &tfprotov6.StopProviderResponse{}, nil
}

func schemasOf(all map[string]attributes) map[string]*tfprotov6.Schema {
	out := map[string]*tfprotov6.Schema{}
	for name, one := range all {
		out[name] = schemaOf(one)
	}
	return out
}

func schemaOf(all attributes) *tfprotov6.Schema {
	types := map[string]tftypes.Type{"string": tftypes.String, "number": tftypes.Number, "bool": tftypes.Bool}
	block := &tfprotov6.SchemaBlock{}
	for name, a := range all {
		attribute := &tfprotov6.SchemaAttribute{Name: name, Required: a.Required, Optional: a.Optional, Computed: a.Computed}
		switch written := a.Type.(type) {
		case string:
			attribute.Type = types[written]
		case []any:
			element := types[written[1].(string)]
			attribute.Type = tftypes.Map{ElementType: element}
			if written[0] == "set" {
				attribute.Type = tftypes.Set{ElementType: element}
			}
		}
		block.Attributes = append(block.Attributes, attribute)
	}
	return &tfprotov6.Schema{Block: block}
}
