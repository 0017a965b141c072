//go:build lambda.norpc

package awslane

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/runlane/runlane-go/internal/awsenvironment"
)

func configure(context.Context) (aws.Config, error) { return awsenvironment.Config() }
