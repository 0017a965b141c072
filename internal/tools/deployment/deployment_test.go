package deployment

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParseOutputs(t *testing.T) {
	t.Parallel()
	outputs, err := parseOutputs([]byte(`[{"OutputKey": "TableName", "OutputValue": "runs", "Description": "the table"}]`))
	if err != nil || len(outputs) != 1 || outputs["TableName"] != "runs" {
		t.Error(outputs, err)
	}
	for text, says := range map[string]string{
		`{}`: "cannot unmarshal", ``: "unexpected end", `[{"OutputValue": "runs"}]`: "has no name", `[{"OutputKey":"A"},{"OutputKey":"A"}]`: "A is there twice",
	} {
		if _, err := parseOutputs([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The SDKs for Go take AWS_REGION before AWS_DEFAULT_REGION, and the SAM command line knows the latter alone: both are in one Region.
func TestReadOutputs_RegionOfTheSDK_IsTheTools(t *testing.T) { // sets variables
	root := t.TempDir()
	const script = "#!/bin/sh\necho \"[{\\\"OutputKey\\\": \\\"Region\\\", \\\"OutputValue\\\": \\\"$AWS_DEFAULT_REGION\\\"}]\"\n"
	if err := os.MkdirAll(filepath.Join(root, "scripts"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "scripts", "validate.sh"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ region, other, want string }{
		{"eu-west-1", "", "eu-west-1"}, {"eu-west-1", "us-east-1", "eu-west-1"}, {"", "us-east-1", "us-east-1"},
	} {
		t.Setenv("AWS_REGION", row.region)
		t.Setenv("AWS_DEFAULT_REGION", row.other)
		outputs, err := ReadOutputs(t.Context(), Options{Name: "any", Log: t.Output(), Root: root})
		if err != nil || outputs["Region"] != row.want {
			t.Errorf("%+v: %v, %v", row, outputs, err)
		}
	}
}

// A parameter that is not given has the template's default also where the stack has another value: the versions of the
// functions are named after the default.
func TestComplete_GivesEveryDefault(t *testing.T) {
	t.Parallel()
	const template = `{"Parameters":{
		"FifoQueue":{"Type":"String","Default":""},"LogLevel":{"Default":"INFO"},
		"SlowTimeout":{"Type":"String","Default":"900"},"TickConcurrency":{"Type":"Number","Default":2000000},
		"WebhookSecret":{"NoEcho":true}}}`
	got, err := complete([]byte(template), []string{"Alarms=false", "LogLevel=DEBUG"})
	want := []string{"Alarms=false", "LogLevel=DEBUG", `FifoQueue=""`, `SlowTimeout="900"`, `TickConcurrency="2000000"`}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
	if _, err := complete([]byte("{"), nil); err == nil {
		t.Error("a template that is none is taken")
	}
}

// An alias goes where the template says when that is new, and stays where a rollback by hand has put it when it is not.
func TestMoveAliases_FollowTheTemplateOnce(t *testing.T) {
	t.Parallel()
	described, moved := "", []string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			moved = append(moved, r.URL.Path+" "+string(body))
		}
		fmt.Fprintf(w, `{"FunctionVersion":"1","Description":%q}`, described)
	}))
	t.Cleanup(server.Close)
	s := &Stack{endpoint: server.URL, Outputs: map[string]string{
		"LocalBridgeAliaslive": "runs-Bridge live 7", "LocalNote": "no alias", "BridgeFunction": "runs-Bridge live 8",
	}}
	const want = `/2015-03-31/functions/runs-Bridge/aliases/live {"FunctionVersion":"7","Description":"deployed version 7"}`
	for description, moves := range map[string]int{"": 1, "deployed version 6": 1, "deployed version 7": 0} {
		described, moved = description, nil
		if err := s.moveAliases(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(moved) != moves || moves == 1 && moved[0] != want {
			t.Errorf("an alias that says %q is moved so: %q", description, moved)
		}
	}
}

// FuzzStackOutputs gives anything as what the SAM command line lists.
func FuzzStackOutputs(f *testing.F) {
	for _, text := range []string{`[]`, `null`, `[{"OutputKey":"A","OutputValue":"b"}]`, `[{"OutputKey":"A"},{"OutputKey":"A"}]`, `[{"OutputKey":1}]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		outputs, err := parseOutputs(text)
		if err != nil && outputs != nil || err == nil && outputs == nil {
			t.Fatal(outputs, err)
		}
		if _, unnamed := outputs[""]; unnamed {
			t.Fatalf("%s has an output without a name", text)
		}
	})
}
