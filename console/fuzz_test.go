package console

import (
	"encoding/json"
	"strings"
	"testing"
)

// Whatever a schema is, its form is text, and whatever is typed there makes JSON of its property, or is refused.
func FuzzForm(f *testing.F) {
	for _, seed := range []string{
		`{"properties":{"a":{"type":"string","title":"<b>"},"b":{"enum":[null,"x",1.50]},"c":true,"d":{"type":["string","null"]}},"required":["a"]}`,
		`{"properties":{"\u202e<script":{"type":"boolean","default":true},"a":{"type":"integer"},"a":{"type":"number"}}}`,
		`{"properties":[]}`, `{"properties":{"a":`, `{"properties":null}`, `true`, "",
	} {
		for _, typed := range []string{"x", "1.50", `{"a":1} 2`, "\x00\xff", "-", " "} {
			f.Add([]byte(seed), typed)
		}
	}
	f.Fuzz(func(t *testing.T, schema []byte, typed string) {
		fields := bodyFields(schema)
		if len(fields) > mostFields {
			t.Fatalf("%d fields", len(fields))
		}
		for i := range fields {
			var page strings.Builder
			if err := fields[i].node("f", typedForm{}).Render(&page); err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{"<script", "<b>"} {
				if strings.Contains(page.String(), part) {
					t.Errorf("%q shows %q", schema, part)
				}
			}
			left := typed == "" || !fields[i].is("string") && strings.TrimSpace(typed) == ""
			value, err := fields[i].value(typed)
			if err == nil && (value == nil) != left || value != nil && !json.Valid(value) {
				t.Errorf("%q of %q is %q, %v", typed, fields[i].name, value, err)
			}
		}
	})
}

// Whatever a form says, a login leads to a path of this site: nothing in it is left for a browser to read in another way.
func FuzzPathHere(f *testing.F) {
	for _, seed := range []string{"/runs?find=a%2Fb", "//evil.example", "/\t/evil.example", `/\evil.example`, "https://evil.example", "/%2F/", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, to string) {
		at := pathHere(to)
		odd := strings.ContainsFunc(at, func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f })
		if !strings.HasPrefix(at, "/") || strings.HasPrefix(at, "//") || odd {
			t.Errorf("%q leads to %q", to, at)
		}
	})
}

// Whatever a payload is, its tree is text: no tag of it, and no mark of direction, stands on the page.
func FuzzTree(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,2.50,{"b":null}],"<b>":"</pre><script>"}`, `"` + "\u202e" + `"`, `[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]`,
		`{"a":1}{"b":2}`, `{"a":`, "\x00\xff", `1e400`, "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var page strings.Builder
		if err := new(visitor).tree(text).Render(&page); err != nil {
			t.Fatal(err)
		}
		shown := page.String()
		for _, part := range []string{"\u202e", "\x00", "<script", "<b>"} {
			if strings.Contains(shown, part) {
				t.Errorf("%q shows %q", text, part)
			}
		}
		for rest := shown; ; {
			_, after, found := strings.Cut(rest, "<")
			if !found {
				break
			}
			name := strings.TrimLeft(after, "/")
			if !strings.HasPrefix(name, "div") && !strings.HasPrefix(name, "details") && !strings.HasPrefix(name, "summary") &&
				!strings.HasPrefix(name, "ul") && !strings.HasPrefix(name, "li") && !strings.HasPrefix(name, "span") && !strings.HasPrefix(name, "pre") {
				t.Fatalf("%q makes a tag <%.20s", text, after)
			}
			rest = after
		}
	})
}
