package schema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/server/schema"
)

// A schema that judges one value in several ways, and itself below, takes payloads that are nested so deep that it ends.
func TestSchema_ThatBranchesAtEachLevel_Ends(t *testing.T) {
	t.Parallel()
	array := `{"type":"array","items":{"$ref":"#"}}`
	for name, c := range map[string]struct {
		schema         string
		taken, refused int // levels; 0 for none
	}{
		"one way":                    {array, 2000, 0},
		"branches of other types":    {`{"anyOf":[{"type":"string"},{"type":["integer","null"]},` + array + `,{"type":"object","additionalProperties":{"$ref":"#"}}]}`, 2000, 0},
		"two branches of one type":   {`{"anyOf":[` + array + `,{"type":"array","items":{"$ref":"#"},"minItems":1}]}`, 16, 17},
		"one of three":               {`{"oneOf":[` + array + `,` + array + `,{"items":{"$ref":"#"}}]}`, 0, 11},
		"a condition":                {`{"if":` + array + `,"then":` + array + `}`, 16, 17},
		"beside a reference":         {`{"$ref":"#/$defs/a","items":{"$ref":"#"},"$defs":{"a":{"items":{"$ref":"#"}}}}`, 16, 17},
		"a way around":               {`{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}],"$defs":{"a":{"contains":{"$ref":"#"}},"b":{"prefixItems":[{"$ref":"#"}]}}}`, 16, 17},
		"contains beside items":      {`{"items":{"$ref":"#"},"contains":{"$ref":"#"}}`, 16, 17},
		"branches without recursion": {`{"anyOf":[{"items":{"type":"array"}},{"items":{}}]}`, 2000, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check, err := schema.Compile(json.RawMessage(c.schema))
			if err != nil {
				t.Fatal(err)
			}
			nested := func(levels int) error {
				return check(json.RawMessage(strings.Repeat("[", levels) + strings.Repeat("]", levels)))
			}
			if err := nested(c.taken); c.taken > 0 && err != nil && strings.Contains(err.Error(), "nested") {
				t.Errorf("%d levels: %v", c.taken, err)
			}
			if err := nested(c.refused); c.refused > 0 && (err == nil || !strings.Contains(err.Error(), "nested more than")) {
				t.Errorf("%d levels: %v", c.refused, err)
			}
		})
	}
}
