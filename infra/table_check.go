package infra

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// differs lists the faults with one hint: keys cannot be changed in place, and the template owns the rest.
func differs(name string, faults []string) error {
	return fmt.Errorf(
		"table %q: %w: %s; name another table, or recreate it from template.yaml (local AWS: `make local-down`, "+
			"then `make local-up`)",
		name,
		ErrTableDiffers,
		strings.Join(faults, "; "),
	)
}

// tableFaults lists the differences of a table from its definition, in a fixed order.
func tableFaults(want *dynamodb.CreateTableInput, got *types.TableDescription) []string {
	if got == nil {
		return []string{"it has no description"}
	}
	var faults []string
	if got.TableStatus != types.TableStatusActive && got.TableStatus != types.TableStatusUpdating {
		faults = append(faults, fmt.Sprintf("it is %s, want ACTIVE", got.TableStatus))
	}
	attributes := attributeTypes(got.AttributeDefinitions)
	if g, w := describeKeys(got.KeySchema, attributes), describeKeys(
		want.KeySchema,
		attributeTypes(want.AttributeDefinitions),
	); g != w {
		faults = append(faults, fmt.Sprintf("its keys are %s, want %s", g, w))
	}
	for _, index := range want.GlobalSecondaryIndexes {
		faults = append(faults, indexFaults(want, index, got, attributes)...)
	}
	if g, w := describeStream(got.StreamSpecification), describeStream(want.StreamSpecification); g != w {
		faults = append(faults, fmt.Sprintf("its stream is %s, want %s", g, w))
	}
	return faults
}

func indexFaults(
	want *dynamodb.CreateTableInput, index types.GlobalSecondaryIndex,
	got *types.TableDescription, attributes map[string]types.ScalarAttributeType,
) []string {
	name := aws.ToString(index.IndexName)
	at := slices.IndexFunc(got.GlobalSecondaryIndexes, func(g types.GlobalSecondaryIndexDescription) bool {
		return aws.ToString(g.IndexName) == name
	})
	if at < 0 {
		return []string{fmt.Sprintf("index %q is missing", name)}
	}
	found := got.GlobalSecondaryIndexes[at]
	var faults []string
	if found.IndexStatus != types.IndexStatusActive && found.IndexStatus != types.IndexStatusUpdating {
		faults = append(faults, fmt.Sprintf("index %q is %s, want ACTIVE", name, found.IndexStatus))
	}
	if g, w := describeKeys(found.KeySchema, attributes), describeKeys(
		index.KeySchema,
		attributeTypes(want.AttributeDefinitions),
	); g != w {
		faults = append(faults, fmt.Sprintf("index %q has keys %s, want %s", name, g, w))
	}
	if g, w := describeProjection(found.Projection), describeProjection(index.Projection); g != w {
		faults = append(faults, fmt.Sprintf("index %q projects %s, want %s", name, g, w))
	}
	return faults
}

func ttlFault(ttl *types.TimeToLiveDescription) string {
	switch {
	case ttl == nil, ttl.TimeToLiveStatus == types.TimeToLiveStatusDisabled,
		ttl.TimeToLiveStatus == types.TimeToLiveStatusDisabling,
		ttl.TimeToLiveStatus == "":
		return fmt.Sprintf("its time to live is off, want attribute %q", TTLAttribute)
	case aws.ToString(ttl.AttributeName) != TTLAttribute:
		return fmt.Sprintf("its time to live uses attribute %q, want %q", aws.ToString(ttl.AttributeName), TTLAttribute)
	}
	return ""
}

func attributeTypes(definitions []types.AttributeDefinition) map[string]types.ScalarAttributeType {
	kinds := make(map[string]types.ScalarAttributeType, len(definitions))
	for _, d := range definitions {
		kinds[aws.ToString(d.AttributeName)] = d.AttributeType
	}
	return kinds
}

func describeKeys(schema []types.KeySchemaElement, attributes map[string]types.ScalarAttributeType) string {
	parts := make([]string, 0, len(schema))
	for _, key := range schema {
		name := aws.ToString(key.AttributeName)
		parts = append(parts, fmt.Sprintf("%s %s (%s)", name, key.KeyType, attributes[name]))
	}
	return strings.Join(parts, " + ")
}

// describeProjection sorts the attributes: DynamoDB does not keep their order.
func describeProjection(p *types.Projection) string {
	if p == nil {
		return "nothing"
	}
	if p.ProjectionType != types.ProjectionTypeInclude {
		return string(p.ProjectionType)
	}
	return fmt.Sprintf("%s %s", p.ProjectionType, strings.Join(slices.Sorted(slices.Values(p.NonKeyAttributes)), " "))
}

func describeStream(s *types.StreamSpecification) string {
	if s == nil || !aws.ToBool(s.StreamEnabled) {
		return "off"
	}
	return string(s.StreamViewType)
}
