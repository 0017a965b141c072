package console

import (
	"strings"
	"testing"
)

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
		if err := tree(text).Render(&page); err != nil {
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
