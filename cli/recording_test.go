package cli_test

import (
	"fmt"
	"html"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const recordingFile = "../docs/recording.svg"

// The README's picture is what the commands of testdata/recording.txt answer, which TestScripts plays. -update draws it anew.
func TestRecording_IsWhatTheCommandsAnswer(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("testdata/recording.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := drawn(play(t, string(script)))
	if *update {
		if err := os.WriteFile(recordingFile, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(recordingFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(got), "\n"), strings.Split(want, "\n")); diff != "" {
		t.Errorf("%s is not what the commands answer, go test ./cli -update draws it (-drawn +answers)\n%s", recordingFile, diff)
	}
}

const (
	recordingLine = 19 // pixels
	recordingHead = `<svg xmlns="http://www.w3.org/2000/svg" width="800" height="%[1]d" viewBox="0 0 800 %[1]d" role="img"
  aria-label="A terminal: runs are listed, two of them explained, one that failed is made again.">
<style>
text { font: 14px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #d6d9de; white-space: pre; animation: show .2s backwards }
.p { fill: #6cc5a0 } .c { fill: #fff; font-weight: 600 } .s2 { fill: #8b929c } .s31 { fill: #f27878 }
.s32 { fill: #7fd18a } .s33 { fill: #e9c46a } .s36 { fill: #6fc3df }
@keyframes show { from { opacity: 0 } }
@media (prefers-reduced-motion: reduce) { text { animation: none } }
</style>
<rect width="800" height="%[1]d" rx="8" fill="#1b1f24"/>
`
)

// drawn is the shown part of a played script as a picture. Lines appear one after the other, a moment after their command.
func drawn(played string) string {
	var lines strings.Builder
	shown, y, delay := false, 12, 0.3
	line := func(content string) {
		y += recordingLine
		fmt.Fprintf(&lines, "<text xml:space=\"preserve\" x=\"16\" y=\"%d\" style=\"animation-delay:%.1fs\">%s</text>\n", y, delay, content)
	}
	for text := range strings.Lines(played) {
		text = strings.TrimSuffix(text, "\n")
		mark, rest, _ := strings.Cut(text, " ")
		switch {
		case mark == "#":
			shown = rest == "Shown."
		case !shown:
		case mark == "$":
			if y > 12 {
				y += recordingLine / 2
				delay += 1.2
			}
			line(`<tspan class="p">$ </tspan><tspan class="c">runlane ` + html.EscapeString(rest) + `</tspan>`)
			delay += 0.6
		case mark == "@":
			y += recordingLine / 2
			delay += 1.2
			line(`<tspan class="s2"># ` + html.EscapeString(strings.TrimPrefix(rest, "advance ")) + ` later</tspan>`)
		case mark == ">" || mark == "!":
			line(styled(rest))
		}
	}
	return fmt.Sprintf(recordingHead, y+20) + lines.String() + "</svg>\n"
}

var terminalStyle = regexp.MustCompile(`\\e\[(\d+)m(.*?)\\e\[0m`)

// styled turns the escapes of a terminal, as scripts write them, into spans.
func styled(text string) string {
	return terminalStyle.ReplaceAllString(html.EscapeString(text), `<tspan class="s$1">$2</tspan>`)
}
