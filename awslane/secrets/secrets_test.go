package secrets

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
)

const (
	shopSecret    = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:shop-AbCdEf"
	shopParameter = "arn:aws:ssm:eu-west-1:123456789012:parameter/shop/SMTP_PASSWORD"
)

// keeper answers as Secrets Manager and Parameter Store do: with a value, or with an error whose code begins with "!".
func keeper(t *testing.T, values map[string]string) aws.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			SecretId, Name string // the service's names
			WithDecryption bool
		}
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &asked); err != nil {
			t.Error(err)
		}
		value, known := values[asked.SecretId+asked.Name]
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		if !known {
			value = "!ResourceNotFoundException"
		}
		code, failed := strings.CutPrefix(value, "!")
		if failed {
			status := http.StatusBadRequest
			if code == "InternalServiceError" {
				status = http.StatusInternalServerError
			}
			w.Header().Set("X-Amzn-Errortype", code)
			w.WriteHeader(status)
		}
		var answer any
		switch target := r.Header.Get("X-Amz-Target"); {
		case failed:
			answer = map[string]string{"__type": code, "message": "see " + code}
		case target == "secretsmanager.GetSecretValue":
			answer = map[string]string{"SecretString": value}
		case target == "AmazonSSM.GetParameter" && asked.WithDecryption:
			answer = map[string]any{"Parameter": map[string]string{"Value": value}}
		default:
			t.Errorf("%s of %s", target, body)
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: aws.AnonymousCredentials{}, HTTPClient: server.Client(),
		RetryMaxAttempts: 1,
	}
}

func TestSecrets_OfBothKinds_AreVariables(t *testing.T) {
	t.Parallel()
	cfg := keeper(t, map[string]string{shopSecret: `{"WEBHOOK_SECRET":"a b=c","TOKEN":""}`, shopParameter: "geheim"})
	got, err := read(t.Context(), cfg, []string{shopSecret, shopParameter})
	want := map[string]string{"WEBHOOK_SECRET": "a b=c", "TOKEN": "", "SMTP_PASSWORD": "geheim"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestSecrets_WhatCannotBeRead_IsNamedWithoutItsValue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		arn, value, says string
		code             runlane.ErrorCode
		retryable        bool
	}{
		"no JSON":         {shopSecret, "pa55", "is no JSON object of texts", runlane.ErrConfigurationInvalid, false},
		"a zero byte":     {shopSecret, `{"P":"pa55\u0000"}`, "has a zero byte", runlane.ErrConfigurationInvalid, false},
		"null":            {shopSecret, "null", "is no JSON object of texts", runlane.ErrConfigurationInvalid, false},
		"null inside":     {shopSecret, `{"P":null}`, "is no JSON object of texts", runlane.ErrConfigurationInvalid, false},
		"a number":        {shopSecret, `{"PORT":5432,"P":"pa55"}`, "is no JSON object of texts", runlane.ErrConfigurationInvalid, false},
		"an odd name":     {shopSecret, `{"a b":"pa55"}`, "has a key that is no name", runlane.ErrConfigurationInvalid, false},
		"missing":         {shopSecret, "!ResourceNotFoundException", "ResourceNotFoundException", runlane.ErrConfigurationInvalid, true},
		"denied":          {shopSecret, "!AccessDeniedException", "AccessDeniedException", runlane.ErrConfigurationInvalid, true},
		"throttled":       {shopSecret, "!ThrottlingException", "cannot be read now", runlane.ErrStorageUnavailable, true},
		"an outage":       {shopParameter, "!InternalServiceError", "cannot be read now", runlane.ErrStorageUnavailable, true},
		"no such":         {shopParameter, "!ParameterNotFound", "ParameterNotFound", runlane.ErrConfigurationInvalid, true},
		"no name":         {"arn:aws:ssm:eu-west-1:123456789012:parameter/shop/smtp-password", "pa55", "does not end with", runlane.ErrConfigurationInvalid, false},
		"another service": {"arn:aws:s3:::bucket", "pa55", "is neither", runlane.ErrConfigurationInvalid, false},
		"no ARN":          {"shop", "pa55", "is no ARN", runlane.ErrConfigurationInvalid, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := read(t.Context(), keeper(t, map[string]string{c.arn: c.value}), []string{c.arn})
			if runlane.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), c.arn) {
				t.Errorf("%v", err)
			}
			if strings.Contains(err.Error(), "pa55") {
				t.Errorf("the value is told: %v", err)
			}
			var e *runlane.Error
			if got := errors.As(err, &e) && e.Retryable; got != c.retryable {
				t.Errorf("retryable: %t", got)
			}
		})
	}
}

func TestSecrets_OneVariableTwice_IsRefused(t *testing.T) {
	t.Parallel()
	cfg := keeper(t, map[string]string{shopSecret: `{"SMTP_PASSWORD":"pa55"}`, shopParameter: "pa55"})
	_, err := read(t.Context(), cfg, []string{shopSecret, shopParameter})
	if runlane.CodeOf(err) != runlane.ErrConfigurationInvalid || !strings.Contains(err.Error(), "SMTP_PASSWORD") {
		t.Errorf("%v", err)
	}
}

// FuzzSecretVariables gives anything as a secret: it is refused without being told, or is variables.
func FuzzSecretVariables(f *testing.F) {
	for _, text := range []string{`{"A":"b"}`, `{}`, `null`, `[]`, `{"A":1}`, `{"":""}`, `{"A":"\u0000"}`, "{", "pa55"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		variables, err := secretVariables(text)
		if err != nil {
			if runlane.CodeOf(err) != runlane.ErrConfigurationInvalid || len(err.Error()) > 300 {
				t.Fatal(err)
			}
			return
		}
		for name := range variables {
			if !variableName.MatchString(name) {
				t.Fatalf("%q", name)
			}
		}
	})
}
