package clienttypes

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the types of the clients")

// The types of the clients are those of the description.
func TestTypes_AreOfTheDescription(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	text, err := os.ReadFile(filepath.Join(root, description))
	if err != nil {
		t.Fatal(err)
	}
	d, err := read(text)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{typescript: d.typeScript(), python: d.python()} {
		path = filepath.Join(root, path)
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s is not of the description (%v): %s", path, err, head)
		}
	}
}

// What the description may have of schemas, in both languages.
func TestTypes_OfEachSchema(t *testing.T) {
	t.Parallel()
	d, err := read([]byte(`{"components":{"schemas":{
		"Lease":{"type":"object","properties":{"until":{"type":"string"}},"required":["until"]},
		"lease":{"type":"object","properties":{"kind":{"type":"string","const":"lease"}},"required":["kind"]},
		"Free":{"type":"object"},
		"page.run":{"type":"object","properties":{
			"if":{"type":"string","enum":["always","failed"]},
			"in":{"type":"integer"},
			"items":{"type":"array","description":"all of them","items":{"$ref":"#/components/schemas/Lease"}},
			"meta":{"type":"object","additionalProperties":{"type":"string"}},
			"data":{"type":"object"}, "any":{}},"required":["items", "in"]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for text, parts := range map[string][]string{
		d.typeScript(): {
			"export interface Lease {\n  until: string;\n}", "export type Free = Record<string, unknown>;\n",
			"export interface LeaseObject {\n  kind: \"lease\";\n}",
			"export interface RunPage {", "  any?: unknown;\n", "  data?: Record<string, unknown>;\n",
			"  if?: (\"always\" | \"failed\");\n", "  /** all of them */\n  items: Lease[];\n", "  meta?: Record<string, string>;\n",
		},
		d.python(): {
			"class Lease(TypedDict):\n    until: str\n", "\n\nFree = dict[str, Any]\n", "    kind: Literal[\"lease\"]\n",
			"_RunPageNeeded = TypedDict(\"_RunPageNeeded\", {\n    \"in\": \"int\",\n    \"items\": \"list[Lease]\",\n})\n",
			"_RunPageWords = TypedDict(\"_RunPageWords\", {\n    \"if\": \"Literal[\\\"always\\\", \\\"failed\\\"]\",\n}, total=False)\n",
			"class RunPage(_RunPageNeeded, _RunPageWords, total=False):\n    any: Any\n    data: dict[str, Any]\n    meta: dict[str, str]\n",
		},
	} {
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("there is no %q in\n%s", part, text)
			}
		}
	}
	for _, bad := range []string{"{", `{"components":{"schemas":{"A":{},"a":{},"AObject":{}}}}`} {
		if _, err := read([]byte(bad)); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}
