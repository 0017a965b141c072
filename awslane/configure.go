//go:build !lambda.norpc

package awslane

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
)

// configure reads what the SDK reads: variables, files, profiles, single sign-on, roles.
func configure(ctx context.Context) (aws.Config, error) {
	return config.LoadDefaultConfig(ctx, config.WithHTTPClient(httpClient()))
}
