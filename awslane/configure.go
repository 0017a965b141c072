//go:build !lambda.norpc

package awslane

import (
	"context"
	"crypto/x509"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/runlane/runlane-go"
)

// configure reads all that the SDK supports: variables, files, profiles, single sign-on, roles.
func configure(ctx context.Context) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(httpClient()))
	if err != nil && badBundle() {
		err = &runlane.Error{
			Code:    runlane.ErrConfigurationInvalid,
			Message: bundleVariable + " names no file with certificates that can be read",
			Hint:    "set it to a PEM file, or unset it",
			Cause:   err,
		}
	}
	return cfg, err
}

// bundleVariable is the SDK's. Its error about a bad file explains hardly anything.
const bundleVariable = "AWS_CA_BUNDLE"

func badBundle() bool {
	name := os.Getenv(bundleVariable)
	if name == "" {
		return false
	}
	text, err := os.ReadFile(name) // the SDK reads it too
	return err != nil || !x509.NewCertPool().AppendCertsFromPEM(text)
}
