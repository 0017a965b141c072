package samtemplate

import (
	"maps"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/runlane/runlane-go/functions"
)

// programVariable makes this test's binary the functions' program, see program_test.go.
const programVariable = "SAMTEMPLATE_TEST_PROGRAM"

// Idle connections belong to the SDK's HTTP client, which lives as long as the process.
func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		functions.Start(openProgram) // does not return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

const templatePath = "../../../../template.yaml"

// load reads the project's template.
func load(t *testing.T) *Template {
	t.Helper()
	template, err := Load(templatePath)
	if err != nil {
		t.Fatal(err)
	}
	return template
}

// required are the parameters that have no default.
var required = map[string]string{"WebhookSecret": "secret"}

// withFIFO has the FIFO queue, which a parameter leaves out by default, and withServer the function.
var (
	withFIFO       = map[string]string{"FifoQueue": "orders"}
	withServer     = map[string]string{"ServerScopes": "read"}
	withEverything = map[string]string{"FifoQueue": "orders", "ServerScopes": "read", "EventBus": busARN}
)

// evaluate gives the parameters that have no default some value.
func evaluate(t *testing.T, parameters map[string]string) *Template {
	t.Helper()
	given := maps.Clone(required)
	maps.Copy(given, parameters)
	out, err := load(t).Evaluate(given)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// at follows keys and indexes into what YAML gives; nil where there is nothing.
func at(value any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := value.(map[string]any)
			value = m[step]
		case int:
			list, _ := value.([]any)
			if step >= len(list) {
				return nil
			}
			value = list[step]
		}
	}
	return value
}

func textAt(value any, path ...any) string {
	text, _ := at(value, path...).(string)
	return text
}

func listAt(value any, path ...any) []any {
	list, _ := at(value, path...).([]any)
	return list
}
