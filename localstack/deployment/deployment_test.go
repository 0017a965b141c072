package deployment

import (
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
