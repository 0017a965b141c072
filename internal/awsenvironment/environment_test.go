package awsenvironment_test

import (
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go/internal/awsenvironment"
)

// setOnly makes pairs of names and values the only variables of AWS, and its files empty.
func setOnly(t *testing.T, pairs ...string) {
	t.Helper()
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "") // restores it
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Setenv("AWS_CONFIG_FILE", os.DevNull)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for i := 0; i < len(pairs); i += 2 {
		t.Setenv(pairs[i], pairs[i+1])
	}
}

// clients are what a configuration makes of the two clients, as far as it can be compared.
func clients(t *testing.T, cfg aws.Config) map[string]any {
	t.Helper()
	keys, err := cfg.Credentials.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d, q := dynamodb.NewFromConfig(cfg).Options(), sqs.NewFromConfig(cfg).Options()
	return map[string]any{
		"keys":     []string{keys.AccessKeyID, keys.SecretAccessKey, keys.SessionToken, keys.AccountID},
		"dynamodb": []any{d.Region, d.BaseEndpoint, d.EndpointOptions.UseFIPSEndpoint, d.EndpointOptions.UseDualStackEndpoint, d.AppID},
		"sqs":      []any{q.Region, q.BaseEndpoint, q.EndpointOptions.UseFIPSEndpoint, q.EndpointOptions.UseDualStackEndpoint, q.AppID},
		"retries":  []any{d.RetryMode, d.RetryMaxAttempts, q.RetryMode, q.RetryMaxAttempts},
		"attempts": []int{d.Retryer.MaxAttempts(), q.Retryer.MaxAttempts()},
	}
}

func TestConfig_MakesTheClientsThatTheSDKsOwnConfigurationMakes(t *testing.T) {
	lambda := []string{
		"AWS_ACCESS_KEY_ID", "ASIA1", "AWS_SECRET_ACCESS_KEY", "secret", "AWS_SESSION_TOKEN", "token", "AWS_REGION", "eu-west-1", "AWS_DEFAULT_REGION", "us-east-1",
	}
	for name, more := range map[string][]string{
		"lambda":            {},
		"account":           {"AWS_ACCOUNT_ID", "123456789012"},
		"default region":    {"AWS_REGION", ""},
		"endpoint":          {"AWS_ENDPOINT_URL", "http://127.0.0.1:1"},
		"service endpoints": {"AWS_ENDPOINT_URL", "http://127.0.0.1:1", "AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:2"},
		"one service":       {"AWS_ENDPOINT_URL_SQS", "http://127.0.0.1:3"},
		"FIPS":              {"AWS_USE_FIPS_ENDPOINT", "true", "AWS_USE_DUALSTACK_ENDPOINT", "TRUE"},
		"no FIPS":           {"AWS_USE_FIPS_ENDPOINT", "false", "AWS_USE_DUALSTACK_ENDPOINT", "false"},
		"retries":           {"AWS_RETRY_MODE", "adaptive", "AWS_MAX_ATTEMPTS", "7"},
		"new retries":       {"AWS_NEW_RETRIES_2026", "true"},
		"application":       {"AWS_SDK_UA_APP_ID", "mails"},
	} {
		t.Run(name, func(t *testing.T) {
			setOnly(t, append(append([]string{}, lambda...), more...)...)
			theirs, err := config.LoadDefaultConfig(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ours, err := awsenvironment.Config()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(clients(t, theirs), clients(t, ours)); diff != "" {
				t.Errorf("(-SDK +ours)\n%s", diff)
			}
		})
	}
}

func TestConfig_WhatItCannotRead_IsAnErrorThatNamesTheVariable(t *testing.T) {
	for variable, value := range map[string]string{
		"AWS_PROFILE": "work", "AWS_CA_BUNDLE": "ca.pem", "AWS_DEFAULTS_MODE": "legacy", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
		"AWS_ACCOUNT_ID_ENDPOINT_MODE": "required", "AWS_RETRY_MODE": "never", "AWS_MAX_ATTEMPTS": "many", "AWS_SECRET_ACCESS_KEY": "",
	} {
		t.Run(variable, func(t *testing.T) {
			setOnly(t, "AWS_ACCESS_KEY_ID", "ASIA1", "AWS_SECRET_ACCESS_KEY", "secret", "AWS_REGION", "eu-west-1", variable, value)
			if _, err := awsenvironment.Config(); err == nil || !strings.Contains(err.Error(), variable) {
				t.Errorf("error is %v", err)
			}
		})
	}
}
