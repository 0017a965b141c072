//go:build validate

package deployforms

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/runlane/runlane-go/internal/proof/samtemplate"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

const (
	templatePath   = "../../../cli/project/template.yaml" // what a project has
	translatorPath = "../../../scripts/validate/translate.py"
)

func load(t *testing.T) *samtemplate.Template {
	t.Helper()
	template, err := samtemplate.Load(templatePath)
	if err != nil {
		t.Fatal(err)
	}
	return template
}

func translate(t *testing.T, template string, sets []map[string]string) []*samtemplate.Template {
	t.Helper()
	translated, err := samtemplate.Translate(t.Context(), translatorPath, template, sets)
	if err != nil {
		t.Fatal(err)
	}
	return translated
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// at follows keys and indexes into what JSON gives; nil where there is nothing.
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
