package samtemplate

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write deploy/cdk/typescript/template.json")

// The template that the CDK construct includes is made from that of a project.
func TestIncluded_IsMadeFromTheTemplate(t *testing.T) {
	t.Parallel()
	const path = "../../../deploy/cdk/typescript/template.json"
	text, err := os.ReadFile("../../../cli/project/template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, err := Included(text)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("deploy/cdk/typescript/template.json is older than cli/project/template.yaml: go test ./internal/proof/samtemplate -run Included -update")
	}
}
