//go:build validate

package samtemplate

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// An override of one deployment is undone by the next, which sends what --guided wrote to samconfig.toml: all parameters, but for
// the secret. It is why the runbook has every lasting value written there.
func TestOverride_OfOneDeployment_IsUndoneByThePlainOneAfterIt(t *testing.T) {
	t.Parallel()
	const stream = "arn:aws:dynamodb:us-east-1:123456789012:table/restored/stream/2026-01-01T00:00:00.000"
	target := filepath.Join(t.TempDir(), "sent.json")
	out, err := exec.CommandContext(t.Context(), "python", "../../../../scripts/validate/overrides.py", templatePath, target,
		"--guided --stack-name hello",
		"--stack-name hello --parameter-overrides ExistingTable="+stream+" BridgeTimeout=120",
		"--stack-name hello").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	var sent []map[string]*string
	if err := json.Unmarshal(text, &sent); err != nil || len(sent) != 3 {
		t.Fatalf("%d deployments, %v: %s", len(sent), err, text)
	}
	const kept = "what the stack has"
	for _, wanted := range []struct {
		name                    string
		guided, override, plain string
	}{
		{"ExistingTable", "", stream, ""},
		{"BridgeTimeout", "60", "120", "60"},
		{"FifoQueue", "", kept, ""},
		{"WebhookSecret", "secret", kept, kept},
	} {
		for n, value := range []string{wanted.guided, wanted.override, wanted.plain} {
			got := kept
			if given := sent[n][wanted.name]; given != nil {
				got = *given
			}
			if got != value {
				t.Errorf("deployment %d sends %s=%q, not %q", n+1, wanted.name, got, value)
			}
		}
	}
	for name := range load(t).Parameters {
		if sent[2][name] == nil && name != "WebhookSecret" {
			t.Errorf("the plain deployment keeps %s", name)
		}
	}
}
