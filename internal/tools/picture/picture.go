// Package picture draws what a terminal shows as an SVG, for documents. Lines appear one after the other.
package picture

import (
	"fmt"
	"html"
	"regexp"
	"strings"
)

const (
	lineHeight = 19 // pixels
	top        = 12
	bottom     = 20

	head = `<svg xmlns="http://www.w3.org/2000/svg" width="800" height="%[1]d" viewBox="0 0 800 %[1]d" role="img"
  aria-label="%[2]s">
<style>
text { font: 14px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #d6d9de;
  white-space: pre; animation: show .2s backwards }
.p { fill: #6cc5a0 } .c { fill: #fff; font-weight: 600 } .s2 { fill: #8b929c } .s31 { fill: #f27878 }
.s32 { fill: #7fd18a } .s33 { fill: #e9c46a } .s36 { fill: #6fc3df }
@keyframes show { from { opacity: 0 } }
@media (prefers-reduced-motion: reduce) { text { animation: none } }
</style>
<rect width="800" height="%[1]d" rx="8" fill="#1b1f24"/>
`
)

// Picture is a terminal. The zero value is empty. A line has room for about 90 characters.
type Picture struct {
	lines  strings.Builder
	height int     // of the lines so far
	delay  float64 // of the next line, in seconds
}

// Command is what a user types, behind a prompt. Its answers come a moment later.
func (p *Picture) Command(text string) {
	p.pause()
	p.line(`<tspan class="p">$ </tspan><tspan class="c">` + html.EscapeString(text) + `</tspan>`)
	p.delay += 0.6
}

// Note is a comment between commands.
func (p *Picture) Note(text string) {
	p.pause()
	p.line(`<tspan class="s2"># ` + html.EscapeString(text) + `</tspan>`)
}

var style = regexp.MustCompile(`\\e\[(\d+)m(.*?)\\e\[0m`)

// Answer is a line that a command prints. Styles are escapes that are written out, as in \e[32mgreen\e[0m.
func (p *Picture) Answer(text string) {
	p.line(style.ReplaceAllString(html.EscapeString(text), `<tspan class="s$1">$2</tspan>`))
}

// SVG is the picture, with a label for those who do not see it.
func (p *Picture) SVG(label string) string {
	return fmt.Sprintf(head, top+p.height+bottom, html.EscapeString(label)) + p.lines.String() + "</svg>\n"
}

// pause lies before a command, unless it is the first.
func (p *Picture) pause() {
	if p.height > 0 {
		p.height += lineHeight / 2
		p.delay += 1.2
	}
}

func (p *Picture) line(content string) {
	p.height += lineHeight
	fmt.Fprintf(&p.lines, "<text xml:space=\"preserve\" x=\"16\" y=\"%d\" style=\"animation-delay:%.1fs\">%s</text>\n",
		top+p.height, 0.3+p.delay, content)
}
