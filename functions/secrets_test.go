package functions_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/functions"
)

// A function has the variables of its role's secrets before its program opens, and asks for no others.
func TestStart_SecretsOfTheRole_AreVariablesOfTheOpener(t *testing.T) {
	t.Parallel()
	const secret = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:shop"
	asked := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- string(body)
		_ = json.NewEncoder(w).Encode(map[string]string{"SecretString": `{"WEBHOOK_SECRET":"pa55"}`})
	}))
	t.Cleanup(server.Close)
	environment := []string{
		"AWS_ENDPOINT_URL=" + server.URL, "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_REGION=eu-west-1",
		"RUNLANE_SECRETS=bridge= relay=arn:aws:ssm:eu-west-1:123456789012:parameter/OTHER tick=" + secret,
	}
	answers, log := serve(t, "tick", "informed", environment, "{}", "{}")
	if len(answers) != 2 || answers[0] != "response: null" || answers[1] != "response: null" {
		t.Errorf("answers %v\n%s", answers, log)
	}
	if n := len(asked); n != 1 {
		t.Errorf("%d secrets were asked for, want one, once", n)
	} else if body := <-asked; !strings.Contains(body, secret) {
		t.Errorf("asked for %s", body)
	}
	if strings.Contains(log, "pa55") {
		t.Errorf("the log has the secret: %s", log)
	}
	answers, _ = serve(t, "bridge", "informed", environment, `{"Records":[]}`)
	if len(answers) != 1 || !strings.Contains(answers[0], "WEBHOOK_SECRET is not set") || len(asked) > 0 {
		t.Errorf("a role without secrets: %v, %d asked for", answers, len(asked))
	}
	answers, _ = serve(t, "tick", "informed", append(environment, "WEBHOOK_SECRET=typed"), "{}")
	if len(answers) != 1 || !strings.Contains(answers[0], "the variable WEBHOOK_SECRET is set, and a secret has it too") {
		t.Errorf("set twice: %v", answers)
	}
}

// A text that names no secrets of the role in the one form is refused: nothing else would say that they are missing.
func TestWithSecrets_TextOfAnotherForm_IsRefused(t *testing.T) {
	const arn = "arn:aws:ssm:eu-west-1:123456789012:parameter/X"
	open := functions.WithSecrets("worker", func(context.Context) (*core.Runtime, error) {
		t.Error("the program opened")
		return nil, nil // no one uses it
	})
	for _, given := range []string{
		arn, `"worker=` + arn + `"`, "worker = " + arn, "worker= " + arn, "worker:" + arn, "Worker=" + arn, "wroker=" + arn,
		"worker=" + arn + " worker=" + arn, "worker=" + arn + ",", "worker=X", "bridge=" + arn, " ",
	} {
		t.Setenv("RUNLANE_SECRETS", given)
		if _, err := open(t.Context()); !errors.Is(err, runlane.ErrConfigurationInvalid) {
			t.Errorf("%q: %v", given, err)
		}
	}
}
