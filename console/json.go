package console

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
)

func pathEscape(s string) string { return url.PathEscape(s) }

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// Limits of one tree, and of all trees on a page. Larger or deeper values are shown as clipped text.
const (
	treeNodes = 2_000
	pageNodes = 10_000
	treeDepth = 16
	textShown = 64 << 10
)

// tree renders JSON as a folding tree. Numbers and the order of fields stay as written.
func (v *visitor) tree(text []byte) g.Node {
	t := &jsonTree{decoder: json.NewDecoder(bytes.NewReader(text))}
	t.decoder.UseNumber()
	if len(text) <= 1<<20 && v.nodes < pageNodes {
		node, ok := t.value(0)
		v.nodes += t.nodes
		if ok {
			return h.Div(h.Class("json"), node)
		}
	}
	shown := text[:min(len(text), textShown)]
	return h.Pre(h.Class("wrap json"), h.TabIndex("0"),
		g.Text(visible(string(shown))), g.If(len(shown) < len(text), g.Text("…")))
}

type jsonTree struct {
	decoder *json.Decoder
	nodes   int
}

// value reads one value; false if it is invalid or too large.
func (t *jsonTree) value(depth int) (g.Node, bool) {
	token, err := t.decoder.Token()
	t.nodes++
	if err != nil || t.nodes > treeNodes || depth > treeDepth {
		return nil, false
	}
	switch x := token.(type) {
	case json.Delim:
		return t.fold(x, depth)
	case string:
		return h.Span(h.Class("string"), g.Text(visible(quotedJSON(x)))), true
	case json.Number:
		return h.Span(h.Class("number"), g.Text(x.String())), true
	case bool:
		return h.Span(h.Class("word"), g.Textf("%t", x)), true
	default:
		return h.Span(h.Class("word"), g.Text("null")), true
	}
}

func (t *jsonTree) fold(open json.Delim, depth int) (g.Node, bool) {
	var items g.Group
	for t.decoder.More() {
		var name g.Node
		if open == '{' {
			key, err := t.decoder.Token()
			text, ok := key.(string)
			if err != nil || !ok {
				return nil, false
			}
			name = g.Group{h.Span(h.Class("name"), g.Text(visible(text))), g.Text(": ")}
		}
		value, ok := t.value(depth + 1)
		if !ok {
			return nil, false
		}
		items = append(items, h.Li(name, value))
	}
	if _, err := t.decoder.Token(); err != nil {
		return nil, false
	}
	kind := "field"
	if open == '[' {
		kind = "item"
	}
	if len(items) != 1 {
		kind += "s"
	}
	return h.Details(g.If(depth < 2, h.Attr("open")), h.Summary(g.Textf("%d %s", len(items), kind)), h.Ul(items)), true
}

// quotedJSON quotes a string without escaping HTML, which gomponents does.
func quotedJSON(text string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // writing a string to a string cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}
