package infra

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Keys and indexes of the table. All keys are strings; docs/internals/layout.md describes their values.
const (
	partitionKey = "pk"
	sortKey      = "sk"

	// dueIndex holds every active run once, keys only.
	dueIndex     = "due"
	duePartition = "dp"
	dueSort      = "da"

	// doneIndex holds every finished run once, with the attributes of doneProjection.
	doneIndex     = "done"
	donePartition = "fp"
	doneSort      = "fa"
)

// TTLAttribute is the Unix time in seconds after which DynamoDB may delete an item. Items without it never expire.
const TTLAttribute = "xt"

// activeTimeout limits the wait for a table to become active if the caller's context does not.
const activeTimeout = 5 * time.Minute

// ErrTableMissing and ErrTableDiffers are faults found by [CheckTable] and [CreateTable]; match with errors.Is.
var (
	ErrTableMissing = errors.New("table does not exist")
	ErrTableDiffers = errors.New("table differs from its definition")
)

// doneProjection returns the attributes that the done index has in addition to the keys: a list of finished runs shows
// them without reading each run.
//
//	tk task          qu queue         ca created        ra run at
//	na attempts      nf failures      nt retries        nl releases
//	fc failure code  so source type   sr source run     ss source schedule   sf fire time of that schedule
func doneProjection() []string {
	return []string{"tk", "qu", "ca", "ra", "na", "nf", "nt", "nl", "fc", "so", "sr", "ss", "sf"}
}

// TableInput returns the definition of the table: on-demand billing, the indexes due and done, and a stream of new
// images. [CreateTable] sets time to live afterwards.
func TableInput(name string) *dynamodb.CreateTableInput {
	return &dynamodb.CreateTableInput{
		TableName:   aws.String(name),
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			stringAttribute(partitionKey), stringAttribute(sortKey),
			stringAttribute(duePartition), stringAttribute(dueSort),
			stringAttribute(donePartition), stringAttribute(doneSort),
		},
		KeySchema: keySchema(partitionKey, sortKey),
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{
			{
				IndexName:  aws.String(dueIndex),
				KeySchema:  keySchema(duePartition, dueSort),
				Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
			},
			{
				IndexName: aws.String(doneIndex),
				KeySchema: keySchema(donePartition, doneSort),
				Projection: &types.Projection{
					ProjectionType:   types.ProjectionTypeInclude,
					NonKeyAttributes: doneProjection(),
				},
			},
		},
		StreamSpecification: &types.StreamSpecification{
			StreamEnabled:  aws.Bool(true),
			StreamViewType: types.StreamViewTypeNewImage,
		},
	}
}

func stringAttribute(name string) types.AttributeDefinition {
	return types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS}
}

func keySchema(hash, sort string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: aws.String(hash), KeyType: types.KeyTypeHash},
		{AttributeName: aws.String(sort), KeyType: types.KeyTypeRange},
	}
}

// CreateTable makes sure that the table exists, is active and has its time to live. It checks an existing table like
// [CheckTable] and changes nothing but a missing time to live. It waits at most five minutes.
//
// The error wraps [ErrTableDiffers] and lists the differences, or is the service's own.
func CreateTable(ctx context.Context, client *dynamodb.Client, name string) error {
	_, err := client.CreateTable(ctx, TableInput(name))
	var exists *types.ResourceInUseException
	if err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("create table %q: %w", name, err)
	}
	waiter := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 250*time.Millisecond, 5*time.Second
	})
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(name)}, activeTimeout); err != nil {
		return fmt.Errorf("wait until table %q is active: %w", name, err)
	}
	if err := checkDefinition(ctx, client, name); err != nil {
		return err
	}
	return enableTTL(ctx, client, name)
}

// CheckTable verifies that the table is active and has the keys, indexes, projections, stream and time to live of its
// definition. It ignores further indexes and the billing mode, and changes nothing.
//
// The error wraps [ErrTableMissing] or [ErrTableDiffers], with a hint, or is the service's own.
func CheckTable(ctx context.Context, client *dynamodb.Client, name string) error {
	if err := checkDefinition(ctx, client, name); err != nil {
		return err
	}
	ttl, err := describeTTL(ctx, client, name)
	if err != nil {
		return err
	}
	if fault := ttlFault(ttl); fault != "" {
		return differs(name, []string{fault})
	}
	return nil
}

func checkDefinition(ctx context.Context, client *dynamodb.Client, name string) error {
	out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(name)})
	var missing *types.ResourceNotFoundException
	if errors.As(err, &missing) {
		return fmt.Errorf(
			"table %q: %w: deploy template.yaml, or for local AWS run `make local-up`",
			name,
			ErrTableMissing,
		)
	}
	if err != nil {
		return fmt.Errorf("describe table %q: %w", name, err)
	}
	if faults := tableFaults(TableInput(name), out.Table); len(faults) > 0 {
		return differs(name, faults)
	}
	return nil
}

func enableTTL(ctx context.Context, client *dynamodb.Client, name string) error {
	ttl, err := describeTTL(ctx, client, name)
	if err != nil {
		return err
	}
	if ttlFault(ttl) == "" {
		return nil
	}
	if ttl != nil && ttl.TimeToLiveStatus == types.TimeToLiveStatusEnabled {
		return differs(name, []string{ttlFault(ttl)}) // on another attribute: an operator has to decide
	}
	_, err = client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: aws.String(name),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: aws.String(TTLAttribute),
			Enabled:       aws.Bool(true),
		},
	})
	if err == nil {
		return nil
	}
	// Another process may have enabled it in between; only the state afterwards counts.
	if ttl, again := describeTTL(ctx, client, name); again == nil && ttlFault(ttl) == "" {
		return nil
	}
	return fmt.Errorf("enable time to live of table %q: %w", name, err)
}

func describeTTL(ctx context.Context, client *dynamodb.Client, name string) (*types.TimeToLiveDescription, error) {
	out, err := client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(name)})
	if err != nil {
		return nil, fmt.Errorf("describe time to live of table %q: %w", name, err)
	}
	return out.TimeToLiveDescription, nil
}

// DeleteTable deletes the table and waits at most five minutes until it is gone. A missing table is no error. For
// tests: all data is lost.
func DeleteTable(ctx context.Context, client *dynamodb.Client, name string) error {
	_, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(name)})
	var missing *types.ResourceNotFoundException
	if errors.As(err, &missing) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete table %q: %w", name, err)
	}
	waiter := dynamodb.NewTableNotExistsWaiter(client, func(o *dynamodb.TableNotExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 250*time.Millisecond, 5*time.Second
	})
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(name)}, activeTimeout); err != nil {
		return fmt.Errorf("wait until table %q is deleted: %w", name, err)
	}
	return nil
}
