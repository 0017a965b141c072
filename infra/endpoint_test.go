package infra_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/runlane/runlane-go/infra"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
)

// bundle is one test's access to local AWS, with a separate name for everything it creates.
type bundle struct {
	tables *dynamodb.Client
	queues *sqs.Client
	name   string
}

func setup(t *testing.T) (context.Context, bundle) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs local AWS")
	}
	if os.Getenv("AWS_ENDPOINT_URL") == "" {
		t.Fatal("AWS_ENDPOINT_URL is not set: run `make local-up` and load .local/env, or pass -short")
	}
	ctx, _ := patience.Context(t)
	settings, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		t.Fatal(err)
	}
	b := bundle{
		tables: dynamodb.NewFromConfig(settings, func(o *dynamodb.Options) { o.DisableValidateResponseChecksum = true }),
		queues: sqs.NewFromConfig(settings),
		name:   "infra-test-" + strings.ToLower(rand.Text()),
	}
	t.Cleanup(func() {
		if err := infra.DeleteTable(context.WithoutCancel(ctx), b.tables, b.name); err != nil {
			t.Error(err)
		}
	})
	return ctx, b
}

func TestCreateTable_Twice_IsOneGoodTable(t *testing.T) {
	t.Parallel()
	ctx, b := setup(t)
	for range 2 {
		if err := infra.CreateTable(ctx, b.tables, b.name); err != nil {
			t.Fatal(err)
		}
		if err := infra.CheckTable(ctx, b.tables, b.name); err != nil {
			t.Fatal(err)
		}
	}
	ttl, err := b.tables.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(b.name)})
	if err != nil {
		t.Fatal(err)
	}
	if got := aws.ToString(ttl.TimeToLiveDescription.AttributeName); got != infra.TTLAttribute {
		t.Errorf("time to live attribute %q, want %q", got, infra.TTLAttribute)
	}
}

func TestCheckTable_MissingTable_NamesItAndTheRemedy(t *testing.T) {
	t.Parallel()
	ctx, b := setup(t)
	err := infra.CheckTable(ctx, b.tables, b.name)
	if !errors.Is(err, infra.ErrTableMissing) {
		t.Fatalf("error %v, want ErrTableMissing", err)
	}
	if !strings.Contains(err.Error(), b.name) || !strings.Contains(err.Error(), "make local-up") {
		t.Errorf("%q names neither table nor remedy", err)
	}
}

func TestCreateTable_OtherTableOfThatName_IsRefusedAndLeftAlone(t *testing.T) {
	t.Parallel()
	ctx, b := setup(t)
	other := infra.TableInput(b.name)
	other.GlobalSecondaryIndexes = other.GlobalSecondaryIndexes[:1]
	other.AttributeDefinitions = other.AttributeDefinitions[:4]
	other.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeKeysOnly}
	if _, err := b.tables.CreateTable(ctx, other); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"create": infra.CreateTable(ctx, b.tables, b.name),
		"check":  infra.CheckTable(ctx, b.tables, b.name),
	} {
		if !errors.Is(err, infra.ErrTableDiffers) {
			t.Fatalf("%s: error %v, want ErrTableDiffers", what, err)
		}
		for _, part := range []string{b.name, `index "done" is missing`, "its stream is KEYS_ONLY, want NEW_IMAGE"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", what, err, part)
			}
		}
	}
	out, err := b.tables.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(b.name)})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Table.GlobalSecondaryIndexes) != 1 {
		t.Errorf("the table was changed: it has %d indexes, want 1", len(out.Table.GlobalSecondaryIndexes))
	}
}

func TestCheckTable_WithoutTimeToLive_SaysSo(t *testing.T) {
	t.Parallel()
	ctx, b := setup(t)
	if _, err := b.tables.CreateTable(ctx, infra.TableInput(b.name)); err != nil {
		t.Fatal(err)
	}
	err := infra.CheckTable(ctx, b.tables, b.name)
	if !errors.Is(err, infra.ErrTableDiffers) || !strings.Contains(err.Error(), "time to live is off") {
		t.Fatalf("error %v, want ErrTableDiffers about the time to live", err)
	}
	if err := infra.CreateTable(ctx, b.tables, b.name); err != nil {
		t.Fatal(err)
	}
	if err := infra.CheckTable(ctx, b.tables, b.name); err != nil {
		t.Errorf("after CreateTable: %v", err)
	}
}
