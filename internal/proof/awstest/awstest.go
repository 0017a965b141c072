// Package awstest gives tests the local AWS that make test starts. Tests that need it are left out by -short and by
// nothing else: without an endpoint they fail, so that a missing local AWS never looks like success.
package awstest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/runlane/runlane-go/infra"
	"github.com/runlane/runlane-go/internal/awsclient"
	"github.com/runlane/runlane-go/internal/proof/fault/front"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
)

// directDynamoDB is the variable in which local-up names DynamoDB Local itself, behind LocalStack: faster, and with an
// empty name space for every access key.
const directDynamoDB = "RUNLANE_LOCAL_DYNAMODB"

// Config is the standard configuration for local AWS. Skips under -short; fails without an endpoint.
func Config(t testing.TB) aws.Config {
	t.Helper()
	if testing.Short() {
		t.Skip("needs local AWS")
	}
	if !named("DYNAMODB") && !named("SQS") {
		t.Fatal("no local AWS: run make test, or make local-up and load .local/env")
	}
	return configuration(t)
}

// named reports whether the environment names an endpoint of a service.
func named(service string) bool {
	return os.Getenv("AWS_ENDPOINT_URL") != "" || os.Getenv("AWS_ENDPOINT_URL_"+service) != ""
}

// configOf is Config for a client of one service, whose endpoint has to be named: nothing is ever sent to AWS itself by
// default.
func configOf(t testing.TB, service string) aws.Config {
	t.Helper()
	if testing.Short() {
		t.Skip("needs local AWS")
	}
	if !named(service) {
		t.Fatalf(
			"no endpoint: set AWS_ENDPOINT_URL or AWS_ENDPOINT_URL_%s, or run make test, or make local-up and load "+
				".local/env",
			service,
		)
	}
	return configuration(t)
}

// connections are those of all tests of a process. Emulators hold fifty that they have not accepted yet, and reset
// others. A client for each test, which keeps ten and closes the rest, opened thousands.
var connections = sync.OnceValues(func() (aws.HTTPClient, error) {
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 256
		t.IdleConnTimeout = 20 * time.Second // before DynamoDB Local closes them
	})
	cfg, err := config.LoadDefaultConfig(context.Background(), config.WithHTTPClient(client)) // with AWS_CA_BUNDLE
	return awsclient.Keep(cfg.HTTPClient), err
})

func configuration(t testing.TB) aws.Config {
	t.Helper()
	cfg, err := config.LoadDefaultConfig(context.Background(), config.WithRegion(region()),
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("test", "test", "")))
	if err == nil {
		cfg.HTTPClient, err = connections()
	}
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func region() string {
	if r := os.Getenv("AWS_REGION"); r != "" {
		return r
	}
	return "us-east-1"
}

// DynamoDB is a client of DynamoDB, of DynamoDB Local directly where local-up names it.
func DynamoDB(t testing.TB) *dynamodb.Client {
	t.Helper()
	return dynamodb.NewFromConfig(configOf(t, "DYNAMODB"), func(o *dynamodb.Options) {
		o.DisableValidateResponseChecksum = true // DynamoDB Local sends none on errors
		if endpoint := os.Getenv(directDynamoDB); endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
			o.Credentials = credentials.NewStaticCredentialsProvider(nameSpace(t), "test", "")
		}
		if _, measures := t.(*testing.B); !measures {
			o.HTTPClient = CheckSameBytes(t, o.HTTPClient)
		}
	})
}

// Front is a client of DynamoDB behind a front, which answers as DynamoDB does where emulators are kinder. The log has
// its seed, and what it did.
func Front(t testing.TB, options *front.Options) (*front.Front, *dynamodb.Client) {
	t.Helper()
	direct := DynamoDB(t)
	endpoint, err := direct.Options().EndpointResolverV2.ResolveEndpoint(t.Context(), dynamodb.EndpointParameters{
		Region: aws.String(direct.Options().Region), Endpoint: direct.Options().BaseEndpoint,
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := front.Start(endpoint.URI.String(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		t.Logf("front: seed %d: %v", f.Seed(), f.Stats())
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	behind := direct.Options()
	behind.BaseEndpoint = aws.String(f.URL())
	behind.DisableValidateResponseChecksum = false
	if options != nil && options.Prompt { // nothing gets better with time there
		behind.Retryer = retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = 20 * time.Millisecond })
	}
	return f, dynamodb.New(behind)
}

// nameSpace is an access key of this process and of the test that t belongs to: DynamoDB Local keeps a data base, and a
// lock, for each.
func nameSpace(t testing.TB) string {
	test, _, _ := strings.Cut(t.Name(), "/")
	sum := sha256.Sum256([]byte(process + test))
	return "AKIA" + hex.EncodeToString(sum[:8])
}

var process = rand.Text()

// RequestTimeout is how long a storage under test waits for a request: an emulator on a busy machine takes longer at
// times than DynamoDB, and tests are not about that.
const RequestTimeout = time.Minute

// LocalStackDynamoDB is a client of DynamoDB behind LocalStack, where streams and functions see its tables.
func LocalStackDynamoDB(t testing.TB) *dynamodb.Client {
	t.Helper()
	return dynamodb.NewFromConfig(configOf(t, "DYNAMODB"), func(o *dynamodb.Options) {
		o.DisableValidateResponseChecksum = true
		o.HTTPClient = CheckSameBytes(t, o.HTTPClient)
	})
}

// Streams is a client of DynamoDB streams.
func Streams(t testing.TB) *dynamodbstreams.Client {
	t.Helper()
	return dynamodbstreams.NewFromConfig(configOf(t, "DYNAMODB_STREAMS"))
}

// SQS is a client of SQS.
func SQS(t testing.TB) *sqs.Client {
	t.Helper()
	return sqs.NewFromConfig(configOf(t, "SQS"))
}

// Table makes a table of the layout, without its stream, for the test and deletes it afterwards. DynamoDB Local looks
// through what every stream has kept on each request: a long test run takes a third of the time without.
func Table(t testing.TB, client *dynamodb.Client) string {
	t.Helper()
	input := infra.TableInput(Name(t))
	input.StreamSpecification = nil
	if _, err := client.CreateTable(context.Background(), input); err != nil {
		t.Fatalf("create table: %v", err)
	}
	table := &dynamodb.DescribeTableInput{TableName: input.TableName}
	waiter := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay = 250 * time.Millisecond
	})
	if err := waiter.Wait(context.Background(), table, patience.Limit); err != nil {
		t.Fatalf("wait for table: %v", err)
	}
	deleteAfter(t, client, *input.TableName)
	return *input.TableName
}

// StreamedTable is [Table] with its stream and its time to live, as it is deployed.
func StreamedTable(t testing.TB, client *dynamodb.Client) string {
	t.Helper()
	name := Name(t)
	if err := infra.CreateTable(context.Background(), client, name); err != nil {
		t.Fatalf("create table: %v", err)
	}
	deleteAfter(t, client, name)
	return name
}

func deleteAfter(t testing.TB, client *dynamodb.Client, table string) {
	t.Helper()
	t.Cleanup(func() {
		if err := infra.DeleteTable(context.Background(), client, table); err != nil {
			t.Errorf("delete table: %v", err)
		}
	})
}

// Queue makes a work queue with its dead-letter queue for the test and deletes both afterwards. A FIFO queue where fifo
// is set. What an emulator does not keep of the definition is not looked at: tests of package infra do.
func Queue(t testing.TB, client *sqs.Client, fifo bool) infra.Queue {
	t.Helper()
	name := queueName(t, fifo)
	queue := infra.Queue{Name: name, DeadLetterName: infra.DeadLetterName(name)}
	queue.DeadLetterURL, queue.DeadLetterARN = createQueue(
		t, client, queue.DeadLetterName, infra.DeadLetterAttributes(queue.DeadLetterName),
	)
	attributes, err := infra.QueueAttributes(name, queue.DeadLetterARN, nil)
	if err != nil {
		t.Fatal(err)
	}
	queue.URL, queue.ARN = createQueue(t, client, name, attributes)
	return queue
}

// LenientQueue is the work queue of [Queue] on any emulator, without a dead-letter queue. A suite behind it shows what
// is missing where it matters.
func LenientQueue(t testing.TB, client *sqs.Client, fifo bool) (url string) {
	t.Helper()
	name := queueName(t, fifo)
	url, _ = createQueue(t, client, name, infra.DeadLetterAttributes(name)) // those of a work queue, without redrive
	return url
}

func queueName(t testing.TB, fifo bool) string {
	t.Helper()
	if fifo {
		return Name(t) + ".fifo"
	}
	return Name(t)
}

func createQueue(t testing.TB, client *sqs.Client, name string, attributes map[string]string) (url, arn string) {
	t.Helper()
	created, err := client.CreateQueue(
		context.Background(), &sqs.CreateQueueInput{QueueName: aws.String(name), Attributes: attributes},
	)
	if err != nil {
		t.Fatalf("create queue: %v", err)
	}
	t.Cleanup(func() {
		if err := infra.DeleteQueue(context.Background(), client, infra.Queue{URL: *created.QueueUrl}); err != nil {
			t.Errorf("delete queue: %v", err)
		}
	})
	read, err := client.GetQueueAttributes(context.Background(), &sqs.GetQueueAttributesInput{
		QueueUrl: created.QueueUrl, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	if err != nil {
		t.Fatalf("read queue: %v", err)
	}
	return *created.QueueUrl, read.Attributes[string(types.QueueAttributeNameQueueArn)]
}

// Name is a fresh name for a table or a queue.
func Name(t testing.TB) string {
	t.Helper()
	return "t-" + strings.ToLower(rand.Text()[:12])
}
