package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/runlane/runlane-go/infra"
)

// dummyKey is the access key and the secret of every caller of a local AWS. Real keys are never read or written.
const dummyKey = "test"

type settings struct {
	endpoint    string
	dynamodb    string // DynamoDB Local itself if known, else the endpoint
	region      string
	table       string
	environment string
	queues      []queueSetting
}

type queueSetting struct{ name, sqsName string }

func settingsFromEnvironment(getenv func(string) string) (settings, error) {
	or := func(name, fallback string) string {
		if value := getenv(name); value != "" {
			return value
		}
		return fallback
	}
	s := settings{
		endpoint:    strings.TrimSuffix(getenv("AWS_ENDPOINT_URL"), "/"),
		region:      or("AWS_REGION", "us-east-1"),
		table:       or("RUNLANE_TABLE", "runlane-local"),
		environment: or("RUNLANE_ENV", "default"),
	}
	if s.endpoint == "" {
		return settings{}, errors.New(
			"AWS_ENDPOINT_URL is not set: name the local endpoint (this command never talks to AWS itself)",
		)
	}
	s.dynamodb = or("RUNLANE_LOCAL_DYNAMODB", s.endpoint)
	var err error
	s.queues, err = parseQueues(or("RUNLANE_LOCAL_QUEUES", "default,webhooks"), s.table)
	return s, err
}

// parseQueues parses "default,orders.fifo". The suffix is the kind of the SQS queue and no part of the Runlane queue's
// name. SQS names start with the table's name, so that several tables can share one endpoint.
func parseQueues(list, table string) ([]queueSetting, error) {
	var queues []queueSetting
	seen := map[string]bool{}
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.TrimSpace(entry)
		name := strings.TrimSuffix(entry, ".fifo")
		switch {
		case name == "":
			return nil, fmt.Errorf("RUNLANE_LOCAL_QUEUES=%q has an empty name: write name,name or name.fifo", list)
		case seen[name]:
			return nil, fmt.Errorf("RUNLANE_LOCAL_QUEUES=%q names queue %q twice", list, name)
		}
		seen[name] = true
		queues = append(queues, queueSetting{name: name, sqsName: table + "-" + entry})
	}
	return queues, nil
}

// create creates table and queues, then writes the env file, so that everything in the file exists.
func create(ctx context.Context, s settings, envFile string) error {
	credentials := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: dummyKey, SecretAccessKey: dummyKey, Source: "local"}, nil
	})
	tables := dynamodb.New(dynamodb.Options{
		BaseEndpoint:                    aws.String(s.endpoint),
		Region:                          s.region,
		Credentials:                     credentials,
		DisableValidateResponseChecksum: true, // emulators send none with errors
	})
	if err := infra.CreateTable(ctx, tables, s.table); err != nil {
		return err
	}
	queues := sqs.New(sqs.Options{BaseEndpoint: aws.String(s.endpoint), Region: s.region, Credentials: credentials})
	var bindings []string
	for _, q := range s.queues {
		created, err := infra.CreateQueue(ctx, queues, q.sqsName, nil)
		if err != nil {
			return err
		}
		bindings = append(bindings, q.name+"="+created.URL)
	}
	return writeEnvironment(envFile, s.lines(strings.Join(bindings, ",")))
}

func (s settings) lines(bindings string) [][2]string {
	return [][2]string{
		{"AWS_ENDPOINT_URL", s.endpoint},
		{"AWS_ACCESS_KEY_ID", dummyKey},
		{"AWS_SECRET_ACCESS_KEY", dummyKey},
		{"AWS_REGION", s.region},
		{"AWS_DEFAULT_REGION", s.region},
		{"AWS_EC2_METADATA_DISABLED", "true"},
		{"RUNLANE_TABLE", s.table},
		{"RUNLANE_QUEUES", bindings},
		{"RUNLANE_ENV", s.environment},
		{"RUNLANE_LOCAL_DYNAMODB", s.dynamodb},
	}
}

// plain matches values that need no quoting in shells, make and programs.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:,=@%+-]+$`)

// writeEnvironment replaces the file atomically.
func writeEnvironment(path string, lines [][2]string) error {
	var text strings.Builder
	for _, line := range lines {
		if !plain.MatchString(line[1]) {
			return fmt.Errorf(
				"%s=%q cannot be written to %s: use letters, digits and _./:,=@%%+- only",
				line[0],
				line[1],
				path,
			)
		}
		fmt.Fprintf(&text, "%s=%s\n", line[0], line[1])
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".env-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temporary.Name()) }() // fails after a successful rename
	_, err = temporary.WriteString(text.String())
	if err = errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}
