// Package awsenvironment builds the configuration of AWS's clients only from variables, which is what Lambda sets.
// Support for files, profiles, single sign-on and roles is a tenth of a program and delays each cold start
// (docs/internals/design.md, Modules and deployment). A test compares it with the SDK's config.LoadDefaultConfig.
package awsenvironment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// unread are variables that the SDK's configuration uses and Config does not support.
var unread = []string{
	"AWS_ACCOUNT_ID_ENDPOINT_MODE", "AWS_CA_BUNDLE", "AWS_DEFAULTS_MODE", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
	"AWS_PROFILE",
}

// Config reads the variables. An unsupported variable is an error that names it.
func Config() (aws.Config, error) {
	for _, name := range unread {
		if os.Getenv(name) != "" {
			return aws.Config{}, fmt.Errorf(
				"%s is set, and programs built with the tag lambda.norpc do not read it: unset it or build without "+
					"the tag",
				name,
			)
		}
	}
	keys := aws.Credentials{
		AccessKeyID:     firstSet("AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY"),
		SecretAccessKey: firstSet("AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY"),
		SessionToken:    os.Getenv("AWS_SESSION_TOKEN"),
		AccountID:       os.Getenv("AWS_ACCOUNT_ID"),
		Source:          "EnvConfigCredentials",
	}
	if !keys.HasKeys() {
		return aws.Config{}, errors.New(
			"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set, and programs built with the tag lambda.norpc " +
				"take credentials from nowhere else",
		)
	}
	cfg := aws.Config{
		AppID: os.Getenv("AWS_SDK_UA_APP_ID"), ConfigSources: []any{endpointVariables{}},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return keys, nil }),
		Region:      firstSet("AWS_REGION", "AWS_DEFAULT_REGION"),
	}
	if url := os.Getenv("AWS_ENDPOINT_URL"); url != "" {
		cfg.BaseEndpoint = &url
	}
	if text := os.Getenv("AWS_RETRY_MODE"); text != "" {
		mode, err := aws.ParseRetryMode(text)
		if err != nil {
			return aws.Config{}, fmt.Errorf("AWS_RETRY_MODE: %w", err)
		}
		cfg.RetryMode = mode
	}
	if text := os.Getenv("AWS_MAX_ATTEMPTS"); text != "" {
		attempts, err := strconv.Atoi(text)
		if err != nil {
			return aws.Config{}, fmt.Errorf("AWS_MAX_ATTEMPTS: %w", err)
		}
		cfg.RetryMaxAttempts = attempts
	}
	return cfg, nil
}

func firstSet(names ...string) string {
	for _, name := range names {
		if value := os.Getenv(name); value != "" {
			return value
		}
	}
	return ""
}

// endpointVariables implements the interfaces through which the SDK's clients ask for endpoints.
type endpointVariables struct{}

func (endpointVariables) GetServiceBaseEndpoint(_ context.Context, service string) (url string, found bool, err error) {
	url = os.Getenv("AWS_ENDPOINT_URL_" + strings.ReplaceAll(strings.ToUpper(service), " ", "_"))
	return url, url != "", nil
}

func (endpointVariables) GetUseFIPSEndpoint(context.Context) (state aws.FIPSEndpointState, found bool, err error) {
	yes, found, err := flagVariable("AWS_USE_FIPS_ENDPOINT")
	if yes {
		return aws.FIPSEndpointStateEnabled, found, err
	}
	return aws.FIPSEndpointStateDisabled, found, err
}

func (endpointVariables) GetUseDualStackEndpoint(
	context.Context,
) (state aws.DualStackEndpointState, found bool, err error) {
	yes, found, err := flagVariable("AWS_USE_DUALSTACK_ENDPOINT")
	if yes {
		return aws.DualStackEndpointStateEnabled, found, err
	}
	return aws.DualStackEndpointStateDisabled, found, err
}

func flagVariable(name string) (yes, found bool, err error) {
	switch text := os.Getenv(name); {
	case text == "":
		return false, false, nil
	case strings.EqualFold(text, "true"):
		return true, true, nil
	case strings.EqualFold(text, "false"):
		return false, true, nil
	default:
		return false, false, fmt.Errorf("%s is %q, which is neither true nor false", name, text)
	}
}
