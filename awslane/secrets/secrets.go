// Package secrets reads variables that AWS keeps secret. It is separate from package awslane so that programs without
// secrets do not link the clients of Secrets Manager and Parameter Store, which are larger than DynamoDB's.
package secrets

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"golang.org/x/sync/errgroup"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Read reads variables that AWS keeps secret, by their ARNs:
//
//   - a secret of Secrets Manager is a JSON object of strings, each the value of the variable with its name,
//   - a parameter of Parameter Store, encrypted or not, is the value of the variable named by the last part of its name: /shop/WEBHOOK_SECRET is WEBHOOK_SECRET.
//
// Each is read once, with [awslane.Config]; functions.Start reads the secrets of RUNLANE_SECRETS before it opens the
// runtime. A secret that is missing, malformed or may not be read, and a variable in two secrets, is
// runlane.ErrConfigurationInvalid; an outage is runlane.ErrStorageUnavailable. Errors of the services are Retryable. No
// error and no log has a value in it.
func Read(ctx context.Context, arns []string) (map[string]string, error) {
	if len(arns) == 0 {
		return map[string]string{}, nil
	}
	cfg, err := awslane.Config(ctx)
	if err != nil {
		return nil, err
	}
	return read(ctx, cfg, arns)
}

func read(ctx context.Context, cfg aws.Config, arns []string) (map[string]string, error) {
	var mu sync.Mutex
	variables := map[string]string{}
	group, ctx := errgroup.WithContext(ctx)
	for _, arn := range arns {
		group.Go(func() error {
			found, err := readSecret(ctx, cfg, arn)
			if err != nil {
				return secretFault(arn, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for name, value := range found {
				if _, twice := variables[name]; twice {
					return invalid("two secrets have the variable "+name, "let one of them have it")
				}
				if strings.Contains(value, "\x00") {
					return invalid("secret "+arn+" has a zero byte, which no variable can have", secretHint)
				}
				variables[name] = value
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return variables, nil
}

func readSecret(ctx context.Context, cfg aws.Config, arn string) (map[string]string, error) {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) < 6 || parts[0] != "arn" {
		return nil, invalid("is no ARN", secretHint)
	}
	cfg.Region = parts[3]
	switch parts[2] {
	case "secretsmanager":
		client := secretsmanager.NewFromConfig(cfg)
		out, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &arn})
		if err != nil {
			return nil, err
		}
		return secretVariables(aws.ToString(out.SecretString))
	case "ssm":
		name := parts[5][strings.LastIndex(parts[5], "/")+1:]
		if !variableName.MatchString(name) {
			return nil, invalid("its name does not end with that of a variable", secretHint)
		}
		decrypt, client := true, ssm.NewFromConfig(cfg)
		out, err := client.GetParameter(ctx, &ssm.GetParameterInput{Name: &arn, WithDecryption: &decrypt})
		if err != nil {
			return nil, err
		}
		return map[string]string{name: aws.ToString(out.Parameter.Value)}, nil
	}
	return nil, invalid("is neither of Secrets Manager nor of Parameter Store", secretHint)
}

const secretHint = "give ARNs of Secrets Manager, whose secrets are JSON objects of texts, or of Parameter Store, " +
	"whose parameters are named like /shop/WEBHOOK_SECRET"

// secretVariables decodes the JSON object of a secret. The decoder's errors would quote it.
func secretVariables(text string) (map[string]string, error) {
	var values map[string]*string
	if err := json.Unmarshal([]byte(text), &values); err != nil || values == nil {
		return nil, invalid("is no JSON object of texts", secretHint)
	}
	variables := map[string]string{}
	for name, value := range values {
		switch {
		case !variableName.MatchString(name):
			return nil, invalid("has a key that is no name of a variable", secretHint)
		case value == nil:
			return nil, invalid("is no JSON object of texts", secretHint)
		}
		variables[name] = *value
	}
	return variables, nil
}

// secretFault adds the secret's ARN, and whether a retry may help.
func secretFault(arn string, err error) error {
	if e, ok := errors.AsType[*runlane.Error](err); ok {
		return invalid("secret "+arn+" "+e.Message, e.Hint)
	}
	api, refused := errors.AsType[smithy.APIError](err)
	response, answered := errors.AsType[*smithyhttp.ResponseError](err)
	if refused && answered && response.HTTPStatusCode() < http.StatusInternalServerError &&
		retry.IsErrorThrottles(retry.DefaultThrottles).IsErrorThrottle(err) != aws.TrueTernary {
		return &runlane.Error{
			Code:    runlane.ErrConfigurationInvalid,
			Message: "secret " + arn + " cannot be read: " + api.ErrorCode(),
			Hint:    "see that it exists, and that the role may read it and use its key",
			Cause:   err,
			// A new role gets its rights after seconds, and a secret may be created later: a warm environment has to
			// notice.
			Retryable: true,
		}
	}
	return &runlane.Error{
		Code:      runlane.ErrStorageUnavailable,
		Message:   "secret " + arn + " cannot be read now",
		Hint:      "wait; its service has to be reachable, also from a VPC, and this process needs credentials",
		Retryable: true,
		Cause:     err,
	}
}

func invalid(message, hint string) error {
	return &runlane.Error{Code: runlane.ErrConfigurationInvalid, Message: message, Hint: hint}
}
