// Command provider stands for hashicorp/aws: it has the recorded schemas of what the Terraform module uses, creates
// nothing, and answers with identities that follow from names. So OpenTofu validates, plans and applies the module
// without an account, and a test compares what it would have made with the deployment template.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

func main() {
	s, err := load()
	if err == nil {
		err = tf6server.Serve("registry.opentofu.org/hashicorp/aws", func() tfprotov6.ProviderServer {
			return &provider{schemas: s}
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "provider:", err)
		os.Exit(1)
	}
}

// provider answers what OpenTofu asks of a provider that has resources and data sources and nothing else.
type provider struct {
	tfprotov6.ProviderServer
	schemas *schemas
}

func (p *provider) GetMetadata(context.Context, *tfprotov6.GetMetadataRequest) (*tfprotov6.GetMetadataResponse, error) {
	out := &tfprotov6.GetMetadataResponse{ServerCapabilities: &tfprotov6.ServerCapabilities{}}
	for name := range p.schemas.Resources {
		out.Resources = append(out.Resources, tfprotov6.ResourceMetadata{TypeName: name})
	}
	for name := range p.schemas.DataSources {
		out.DataSources = append(out.DataSources, tfprotov6.DataSourceMetadata{TypeName: name})
	}
	return out, nil
}

func (p *provider) GetProviderSchema(
	context.Context, *tfprotov6.GetProviderSchemaRequest,
) (*tfprotov6.GetProviderSchemaResponse, error) {
	out := &tfprotov6.GetProviderSchemaResponse{
		ServerCapabilities: &tfprotov6.ServerCapabilities{},
		Provider:           p.schemas.Provider.protocol(),
		ResourceSchemas:    map[string]*tfprotov6.Schema{},
		DataSourceSchemas:  map[string]*tfprotov6.Schema{},
	}
	for name, s := range p.schemas.Resources {
		out.ResourceSchemas[name] = s.protocol()
	}
	for name, s := range p.schemas.DataSources {
		out.DataSourceSchemas[name] = s.protocol()
	}
	return out, nil
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

func (p *provider) ConfigureProvider(
	context.Context, *tfprotov6.ConfigureProviderRequest,
) (*tfprotov6.ConfigureProviderResponse, error) {
	return &tfprotov6.ConfigureProviderResponse{}, nil
}

func (p *provider) StopProvider(
	context.Context, *tfprotov6.StopProviderRequest,
) (*tfprotov6.StopProviderResponse, error) {
	return &tfprotov6.StopProviderResponse{}, nil
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

func (p *provider) UpgradeResourceState(
	_ context.Context, request *tfprotov6.UpgradeResourceStateRequest,
) (*tfprotov6.UpgradeResourceStateResponse, error) {
	s := p.schemas.Resources[request.TypeName]
	kind := s.protocol().ValueType()
	value, err := request.RawState.Unmarshal(kind)
	if err != nil {
		return nil, err
	}
	state, err := tfprotov6.NewDynamicValue(kind, value)
	return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: &state}, err
}

func (p *provider) ReadResource(
	_ context.Context, request *tfprotov6.ReadResourceRequest,
) (*tfprotov6.ReadResourceResponse, error) {
	return &tfprotov6.ReadResourceResponse{NewState: request.CurrentState}, nil
}

func (p *provider) PlanResourceChange(
	_ context.Context, request *tfprotov6.PlanResourceChangeRequest,
) (*tfprotov6.PlanResourceChangeResponse, error) {
	s := p.schemas.Resources[request.TypeName]
	planned, err := fill(&s, request.ProposedNewState, func(string, tftypes.Type, map[string]tftypes.Value) any {
		return tftypes.UnknownValue
	})
	return &tfprotov6.PlanResourceChangeResponse{PlannedState: planned}, err
}

func (p *provider) ApplyResourceChange(
	_ context.Context, request *tfprotov6.ApplyResourceChangeRequest,
) (*tfprotov6.ApplyResourceChangeResponse, error) {
	s := p.schemas.Resources[request.TypeName]
	state, err := fill(&s, request.PlannedState, func(name string, kind tftypes.Type, values map[string]tftypes.Value) any {
		return identity(request.TypeName, name, kind, values)
	})
	return &tfprotov6.ApplyResourceChangeResponse{NewState: state}, err
}

func (p *provider) ReadDataSource(
	_ context.Context, request *tfprotov6.ReadDataSourceRequest,
) (*tfprotov6.ReadDataSourceResponse, error) {
	s := p.schemas.DataSources[request.TypeName]
	state, err := fill(&s, request.Config, func(name string, kind tftypes.Type, values map[string]tftypes.Value) any {
		return identity(request.TypeName, name, kind, values)
	})
	return &tfprotov6.ReadDataSourceResponse{State: state}, err
}

// fill gives every computed attribute that has no value one.
func fill(s *schema, given *tfprotov6.DynamicValue,
	value func(name string, kind tftypes.Type, values map[string]tftypes.Value) any,
) (*tfprotov6.DynamicValue, error) {
	kind := s.protocol().ValueType()
	object, err := given.Unmarshal(kind)
	if err != nil || object.IsNull() {
		return given, err
	}
	values := map[string]tftypes.Value{}
	if err := object.As(&values); err != nil {
		return nil, err
	}
	for name, a := range s.Block.Attributes {
		if a.Computed && (values[name].IsNull() || !values[name].IsKnown()) {
			of := typeOf(a.Type)
			values[name] = tftypes.NewValue(of, value(name, of, values))
		}
	}
	state, err := tfprotov6.NewDynamicValue(kind, tftypes.NewValue(kind, values))
	return &state, err
}
