package infra

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
)

// described is what the service would answer for a table created from the input.
func described(in *dynamodb.CreateTableInput) *types.TableDescription {
	d := &types.TableDescription{
		TableName:            in.TableName,
		TableStatus:          types.TableStatusActive,
		AttributeDefinitions: in.AttributeDefinitions,
		KeySchema:            in.KeySchema,
		StreamSpecification:  in.StreamSpecification,
	}
	for _, index := range in.GlobalSecondaryIndexes {
		d.GlobalSecondaryIndexes = append(d.GlobalSecondaryIndexes, types.GlobalSecondaryIndexDescription{
			IndexName: index.IndexName, IndexStatus: types.IndexStatusActive, KeySchema: index.KeySchema, Projection: index.Projection,
		})
	}
	return d
}

// The written-out form is the layout's; the test keeps it from being changed by accident.
func TestTableInput_IsTheLayout(t *testing.T) {
	t.Parallel()
	in := TableInput("runs")
	attributes := attributeTypes(in.AttributeDefinitions)
	got := []string{aws.ToString(in.TableName), string(in.BillingMode), describeKeys(in.KeySchema, attributes), describeStream(in.StreamSpecification)}
	for _, index := range in.GlobalSecondaryIndexes {
		got = append(got, aws.ToString(index.IndexName), describeKeys(index.KeySchema, attributes), describeProjection(index.Projection))
	}
	want := []string{
		"runs", "PAY_PER_REQUEST", "pk HASH (S) + sk RANGE (S)", "NEW_IMAGE",
		"due", "dp HASH (S) + da RANGE (S)", "KEYS_ONLY",
		"done", "fp HASH (S) + fa RANGE (S)", "INCLUDE ca fc na nf nl nt qu ra sf so sr ss tk",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definition (-want +got):\n%s", diff)
	}
}

// A key attribute of table or index is projected anyway; naming it would be refused by DynamoDB.
func TestDoneProjection_NamesNoKeyAndNothingTwice(t *testing.T) {
	t.Parallel()
	keys := []string{partitionKey, sortKey, duePartition, dueSort, donePartition, doneSort, TTLAttribute}
	seen := map[string]bool{}
	for _, name := range doneProjection() {
		if seen[name] || slices.Contains(keys, name) {
			t.Errorf("attribute %q is a key or named twice", name)
		}
		seen[name] = true
	}
}

func TestTableFaults_SameDefinition_FindsNothing(t *testing.T) {
	t.Parallel()
	got := described(TableInput("runs"))
	slices.Reverse(got.GlobalSecondaryIndexes)                                // the service keeps no order of indexes
	slices.Reverse(got.AttributeDefinitions)                                  // nor of attributes
	slices.Reverse(got.GlobalSecondaryIndexes[0].Projection.NonKeyAttributes) // nor of projected ones
	if faults := tableFaults(TableInput("runs"), got); len(faults) > 0 {
		t.Errorf("faults of an equal table: %q", faults)
	}
}

func TestTableFaults_NamesWhatDiffers(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(*types.TableDescription)
		want   string
	}{
		"still creating": {
			func(d *types.TableDescription) { d.TableStatus = types.TableStatusCreating }, `it is CREATING, want ACTIVE`,
		},
		"other key name": {
			func(d *types.TableDescription) { d.KeySchema = keySchema("id", sortKey) },
			`its keys are id HASH () + sk RANGE (S), want pk HASH (S) + sk RANGE (S)`,
		},
		"numeric sort key": {
			func(d *types.TableDescription) { d.AttributeDefinitions[1].AttributeType = types.ScalarAttributeTypeN },
			`its keys are pk HASH (S) + sk RANGE (N), want pk HASH (S) + sk RANGE (S)`,
		},
		"index missing": {
			func(d *types.TableDescription) { d.GlobalSecondaryIndexes = d.GlobalSecondaryIndexes[1:] }, `index "due" is missing`,
		},
		"index building": {
			func(d *types.TableDescription) { d.GlobalSecondaryIndexes[0].IndexStatus = types.IndexStatusCreating },
			`index "due" is CREATING, want ACTIVE`,
		},
		"index keys swapped": {
			func(d *types.TableDescription) {
				d.GlobalSecondaryIndexes[0].KeySchema = keySchema(dueSort, duePartition)
			},
			`index "due" has keys da HASH (S) + dp RANGE (S), want dp HASH (S) + da RANGE (S)`,
		},
		"projection too wide": {
			func(d *types.TableDescription) {
				d.GlobalSecondaryIndexes[0].Projection = &types.Projection{ProjectionType: types.ProjectionTypeAll}
			},
			`index "due" projects ALL, want KEYS_ONLY`,
		},
		"projection lacks an attribute": {
			func(d *types.TableDescription) {
				d.GlobalSecondaryIndexes[1].Projection.NonKeyAttributes = doneProjection()[1:]
			},
			`index "done" projects INCLUDE ca fc na nf nl nt qu ra sf so sr ss, want INCLUDE ca fc na nf nl nt qu ra sf so sr ss tk`,
		},
		"no stream": {
			func(d *types.TableDescription) { d.StreamSpecification = nil }, `its stream is off, want NEW_IMAGE`,
		},
		"stream of keys": {
			func(d *types.TableDescription) { d.StreamSpecification.StreamViewType = types.StreamViewTypeKeysOnly },
			`its stream is KEYS_ONLY, want NEW_IMAGE`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := described(TableInput("runs"))
			c.change(got)
			if diff := cmp.Diff([]string{c.want}, tableFaults(TableInput("runs"), got)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTTLFault(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		ttl  *types.TimeToLiveDescription
		want string
	}{
		"unknown":         {nil, `its time to live is off, want attribute "xt"`},
		"off":             {&types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusDisabled}, `its time to live is off, want attribute "xt"`},
		"other attribute": {&types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusEnabled, AttributeName: aws.String("ttl")}, `its time to live uses attribute "ttl", want "xt"`},
		"on":              {&types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusEnabled, AttributeName: aws.String(TTLAttribute)}, ""},
		"coming":          {&types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusEnabling, AttributeName: aws.String(TTLAttribute)}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := ttlFault(c.ttl); got != c.want {
				t.Errorf("fault %q, want %q", got, c.want)
			}
		})
	}
}

func TestDiffers_NamesTableFaultsAndRemedy(t *testing.T) {
	t.Parallel()
	err := differs("runs", []string{"one", "two"})
	if !errors.Is(err, ErrTableDiffers) {
		t.Errorf("%v does not wrap ErrTableDiffers", err)
	}
	for _, part := range []string{`"runs"`, "one; two", "template.yaml", "make local-up"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}
