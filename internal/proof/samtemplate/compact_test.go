package samtemplate

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What sam package adds is an address in S3 for each function, of at most a bucket's name and a hash.
const packagedGrowth = 4 * 150

func TestCompact_FitsInline(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(templatePath)
	if err != nil {
		t.Fatal(err)
	}
	compact, err := Compact(text)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes of at most %d", len(compact), InlineLimit)
	if len(compact)+packagedGrowth >= InlineLimit {
		t.Errorf("%d bytes, and packaging adds %d", len(compact), packagedGrowth)
	}
	template, err := Parse(compact)
	if err != nil {
		t.Fatal(err)
	}
	given := maps.Clone(required)
	given["FifoQueue"] = "orders"
	out, err := template.Evaluate(given)
	if err != nil {
		t.Fatal(err)
	}
	want := evaluate(t, withFIFO)
	for _, described := range []*Template{out, want} { // all else is the same
		for name, p := range described.Parameters {
			p.Description = ""
			described.Parameters[name] = p
		}
		for name, o := range described.Outputs {
			o.Description = ""
			described.Outputs[name] = o
		}
	}
	equal(t, "evaluated", asText(t, out), asText(t, want))
}

// referred lists the resources that a value names by Ref, GetAtt or Sub.
func referred(template *Template, value any, found map[string]bool) {
	add := func(text string) {
		name, _, _ := strings.Cut(text, ".")
		if _, ok := template.Resources[name]; ok {
			found[name] = true
		}
	}
	name, argument := Function(value)
	text, _ := argument.(string)
	switch {
	case text == "":
	case name == "Ref", name == "Fn::GetAtt":
		add(text)
	case name == "Fn::Sub":
		for _, match := range regexp.MustCompile(`\$\{([^}]+)\}`).FindAllStringSubmatch(text, -1) {
			add(match[1])
		}
	}
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			referred(template, v, found)
		}
	case []any:
		if len(value) == 2 { // Sub with its own names
			if text, ok := value[0].(string); ok && strings.Contains(text, "${") {
				referred(template, map[string]any{"Fn::Sub": text}, found)
			}
		}
		for _, v := range value {
			referred(template, v, found)
		}
	}
}

// circle returns a way from a resource back to itself, which the CDK refuses and at which local AWS does not end.
func circle(template *Template) []string {
	state := map[string]int{}
	var visit func(name string, way []string) []string
	visit = func(name string, way []string) []string {
		way = append(way, name)
		if state[name] == 1 {
			return way
		}
		if state[name] == 2 {
			return nil
		}
		state[name] = 1
		found := map[string]bool{}
		referred(template, template.Resources[name].Properties, found)
		for _, next := range slices.Sorted(maps.Keys(found)) {
			if back := visit(next, slices.Clone(way)); back != nil {
				return back
			}
		}
		state[name] = 2
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(template.Resources)) {
		if way := visit(name, nil); way != nil {
			return way
		}
	}
	return nil
}

func TestTemplate_NoResourceRefersToItself(t *testing.T) {
	t.Parallel()
	template := load(t)
	if way := circle(template); way != nil {
		t.Errorf("%s", strings.Join(way, " -> "))
	}
	tick := template.Resources["TickRole"]
	tick.Properties["Description"] = map[string]any{"Fn::Sub": "of ${Tick.Arn}"}
	if way := circle(template); way == nil {
		t.Error("a circle was not found")
	}
}
