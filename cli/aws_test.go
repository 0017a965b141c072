package cli_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/awstest"
)

// Credentials of tests. None of these may ever be written by a command.
const (
	secretKey   = "very-secret-key"
	secretToken = "very-secret-token/of+a=session"
)

// onAWS makes the world's program one on AWS, behind an endpoint with a fault; "none" makes it what it was.
func (w *world) onAWS(t *testing.T, fault string) {
	t.Helper()
	if fault == "none" {
		w.endpoint = ""
		return
	}
	w.endpoint = awstest.Faulty(t, awstest.Fault(fault))
	w.env["AWS_SECRET_ACCESS_KEY"], w.env["AWS_SESSION_TOKEN"] = secretKey, secretToken
}

func (w *world) openOnAWS(ctx context.Context) (*core.Runtime, error) {
	endpoint := w.endpoint // requests that outlive a command go on reading it
	cfg := aws.Config{
		BaseEndpoint: &endpoint, Region: "eu-west-1", RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKIATEST", secretKey, secretToken),
	}
	l, err := awslane.New(cfg, awslane.Options{Table: "runs", Queues: map[runlane.QueueName]string{
		"default": w.endpoint + "/1/default", "emails": w.endpoint + "/1/emails", "slow": w.endpoint + "/1/slow",
	}})
	if err != nil {
		return nil, err
	}
	return core.Open(ctx, l, w.options())
}
