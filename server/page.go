package server

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"maps"
	"slices"
	"strings"
)

//go:embed page.css
var pageStyle string

func typeText(s *schema) string {
	switch {
	case s == nil:
		return ""
	case s.Ref != "":
		return strings.TrimPrefix(s.Ref, "#/components/schemas/")
	case s.Items != nil:
		return "list of " + typeText(s.Items)
	case s.Values != nil:
		return "object of " + typeText(s.Values)
	case s.Format != "":
		return s.Format
	case s.Type == "":
		return "any JSON"
	default:
		return s.Type
	}
}

// typeLink is typeText with a link to the object, if there is one.
func typeLink(s *schema) string {
	text := html.EscapeString(typeText(s))
	if s == nil || s.Ref == "" {
		return text
	}
	return `<a href="#` + text + `">` + text + `</a>`
}

// page is an HTML document under construction. html/template would keep every exported method of the program linked, a
// quarter of the command line's size.
type page struct{ strings.Builder }

func (p *page) add(format string, texts ...string) {
	escaped := make([]any, len(texts))
	for i, text := range texts {
		escaped[i] = html.EscapeString(text)
	}
	fmt.Fprintf(p, format+"\n", escaped...)
}

// render makes the documentation page. It has no scripts and loads nothing.
func render(d *description, table []operation) []byte {
	p := &page{}
	p.add(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s API</title>`, d.Info.Title)
	p.WriteString("<style>" + pageStyle + "</style>\n</head>\n<body>\n<header>\n")
	p.add("<h1>%s API, version %s</h1>\n<p>%s</p>\n<nav>", d.Info.Title, d.Info.Version, d.Info.Description)
	for _, tag := range d.Tags {
		p.add(`<a href="#%s">%s</a>`, anchor(tag.Name), tag.Name)
	}
	p.add(`<a href="#objects">Objects</a> <a href="openapi.json">openapi.json</a></nav>` + "\n</header>\n<main>")
	for _, tag := range d.Tags {
		p.add(`<h2 id="%s">%s</h2>`, anchor(tag.Name), tag.Name)
		for i := range table {
			if o := &table[i]; o.group == tag.Name {
				p.operation(o.method, o.path, d.Paths[o.path][strings.ToLower(o.method)])
			}
		}
	}
	p.add(`<h2 id="objects">Objects</h2>`)
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		p.object(name, d.Components.Schemas[name])
	}
	p.add("</main>\n</body>\n</html>")
	return []byte(p.String())
}

// anchor is the id of a heading, which has no spaces.
func anchor(name string) string { return strings.ReplaceAll(name, " ", "-") }

func (p *page) operation(method, path string, o *described) {
	p.add(`<section id="%s">`+"\n<h3><code>%s %s</code> %s</h3>", o.ID, method, path, o.Summary)
	if o.Description != "" {
		p.add("<p>%s</p>", o.Description)
	}
	if o.Scope != "" {
		p.add("<p>Scope: <code>%s</code></p>", string(o.Scope))
	}
	if len(o.Parameters) > 0 {
		p.add("<table>\n<thead><tr><th>Parameter</th><th>In</th><th>Type</th><th>Meaning</th></tr></thead>\n<tbody>")
		for _, q := range o.Parameters {
			p.add("<tr><td><code>%s</code></td><td>%s</td><td>%s</td><td>%s</td></tr>",
				q.Name, q.In, typeText(q.Schema), q.Description)
		}
		p.add("</tbody>\n</table>")
	}
	if o.Body != nil {
		left := ", may be left out"
		if o.Body.Required {
			left = ""
		}
		p.WriteString("<p>Body: " + o.Body.links() + left + "</p>\n")
	}
	p.add("<ul>")
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		answer := o.Responses[status]
		p.WriteString("<li><code>" + status + "</code> " + answer.links() + " ")
		p.add("%s</li>", answer.Description)
	}
	p.add("</ul>\n</section>")
}

func (c *content) links() string {
	var links []string
	for _, kind := range slices.Sorted(maps.Keys(c.Content)) {
		links = append(links, typeLink(c.Content[kind].Schema))
	}
	return strings.Join(links, " ")
}

func (p *page) object(name string, object *schema) {
	p.add(`<section id="%s">`+"\n<h3><code>%s</code></h3>", name, name)
	if len(object.Properties) > 0 {
		p.add("<table>\n<thead><tr><th>Field</th><th>Type</th><th>Meaning</th></tr></thead>\n<tbody>")
		for _, field := range slices.Sorted(maps.Keys(object.Properties)) {
			value := object.Properties[field]
			p.add("<tr><td><code>%s</code></td>", field)
			p.WriteString("<td>" + typeLink(value) + "</td>")
			p.add("<td>%s</td></tr>", value.Description)
		}
		p.add("</tbody>\n</table>")
	}
	p.add("</section>")
}

var pagePolicy = func() string {
	sum := sha256.Sum256([]byte(pageStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}()

func showPage(_ context.Context, c *call, _ *nothing) (*reply, error) {
	c.w.Header().Set("Content-Security-Policy", pagePolicy)
	return &reply{raw: c.page, media: "text/html; charset=utf-8"}, nil
}
