package browser

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/runlane/runlane-go/memlane"
)

var update = flag.Bool("update", false, "draw the pictures of the documents again")

// drawn makes XML of the part of the page that is seen: without scripts, and with links that lead nowhere. Names of
// columns are kept for a phone.
const drawn = `((height, phone) => {
	const below = new Set([...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().top > height));
	const copy = (e) => {
		const c = e.cloneNode(false);
		if (e.nodeType === Node.TEXT_NODE) c.data = c.data.slice(0, 500);
		for (const inside of e.childNodes) if (!below.has(inside)) c.append(copy(inside));
		return c;
	};
	const body = copy(document.body);
	body.querySelectorAll("script, dialog, [hidden]").forEach((e) => e.remove());
	body.querySelectorAll("a").forEach((e) => e.setAttribute("href", "#"));
	for (const e of [body, ...body.querySelectorAll("*")]) {
		for (const a of [...e.attributes]) {
			if (a.name.includes(":") || a.name.startsWith("data-") && !(phone && a.name === "data-label")) e.removeAttribute(a.name);
		}
	}
	return new XMLSerializer().serializeToString(body);
})(%d, %t)`

// Each picture of the documents is of the console as it is: it names the sum of the files that make it. They are
// drawn by make console-pictures.
func TestPictures_AreOfTheConsoleAsItIs(t *testing.T) {
	t.Parallel()
	sum := sumOf(t, "../*.go", "../assets/*")
	pictures := map[string]func(t *testing.T, file string){}
	for name, open := range map[string]func(p *person){
		"overview": func(p *person) { p.work(); p.open("/") },
		"run":      func(p *person) { p.work(); p.open("/runs/" + string(p.Asking)) },
		"flow":     func(p *person) { p.work(); p.open("/flows/" + string(p.WaitingFlow)) },
		"repair":   func(p *person) { p.failed(199); p.toRetryAll(200) },
	} {
		pictures[name] = func(t *testing.T, file string) { t.Helper(); draw(t, file, sum, open) }
	}
	for name, s := range sheets {
		pictures[name] = func(t *testing.T, file string) { t.Helper(); drawSheet(t, file, sum, s) }
	}
	for name, draw := range pictures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("..", "..", "docs", "console-"+name+".svg")
			text, err := os.ReadFile(file)
			if *update && !strings.Contains(string(text), sum) {
				draw(t, file)
				text, err = os.ReadFile(file)
			}
			if err != nil || !strings.Contains(string(text), sum) {
				t.Errorf("%s is of another console than today's: make console-pictures (%v)", file, err)
			}
			checks.Add(1)
		})
	}
}

// sumOf is the sum of the files that match, but for tests.
func sumOf(t *testing.T, patterns ...string) string {
	t.Helper()
	all := sha256.New()
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		slices.Sort(files)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(all, "%s %d %s", file, len(text), text)
		}
	}
	return hex.EncodeToString(all.Sum(nil))
}

func draw(t *testing.T, file, sum string, open func(p *person)) {
	t.Helper()
	const width, highest = 1100, 900
	p := newPerson(t, memlane.New(), nil)
	p.do(chromedp.EmulateViewport(width, highest))
	open(p)
	p.until("the page is whole", `document.readyState == "complete"`)
	height := min(says[int](p, `document.documentElement.scrollHeight`), highest)
	part := fmt.Sprintf(`<foreignObject width="%d" height="%d">%s</foreignObject>`, width, height,
		says[string](p, fmt.Sprintf(drawn, highest, false)))
	writePicture(t, file, sum, false, width, height, part)
}

// A sheet has the first part of every page, in columns. It is light or dark as its reader's browser is.
type sheet struct {
	phone                  bool
	width, height, columns int
	scale                  float64
}

var sheets = map[string]sheet{
	"pages": {false, 1100, 760, 3, 0.4},
	"phone": {true, 390, 760, 6, 0.5},
}

func drawSheet(t *testing.T, file, sum string, s sheet) {
	t.Helper()
	const gap, title = 24, 28
	p := newPerson(t, memlane.New(), nil)
	p.work()
	p.do(chromedp.EmulateViewport(int64(s.width), int64(s.height)))
	all := p.pages()
	delete(all, "api") // has its own style
	wide, high := int(float64(s.width)*s.scale), int(float64(s.height)*s.scale)
	var parts strings.Builder
	for i, name := range slices.Sorted(maps.Keys(all)) {
		p.open(all[name])
		p.until("the page is whole", `document.readyState == "complete"`)
		body := says[string](p, fmt.Sprintf(drawn, s.height, s.phone))
		x, y := gap+i%s.columns*(wide+gap), gap+i/s.columns*(high+title+gap)
		fmt.Fprintf(&parts, `<text x="%d" y="%d">%s</text><foreignObject width="%d" height="%d" transform="translate(%d %d) scale(%g)">%s</foreignObject>`+"\n",
			x, y+title-10, name, s.width, s.height, x, y+title, s.scale, body)
	}
	rows := (len(all) + s.columns - 1) / s.columns
	writePicture(t, file, sum, s.phone, gap+s.columns*(wide+gap), gap+rows*(high+title+gap), parts.String())
}

// writePicture writes an SVG whose style does not depend on how wide its reader's window is.
func writePicture(t *testing.T, file, sum string, phone bool, width, height int, parts string) {
	t.Helper()
	style, err := os.ReadFile(filepath.Join("..", "assets", "console.css"))
	if err != nil {
		t.Fatal(err)
	}
	narrow := "not all"
	if phone {
		narrow = "all"
	}
	picture := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d">
<!-- of the console %s, by make console-pictures -->
<style><![CDATA[
%s
svg { background: var(--card); }
svg > text { fill: var(--text); font: 16px system-ui, "DejaVu Sans", sans-serif; }
foreignObject > body { min-height: 100%%; }
]]></style>
%[5]s
</svg>
`, width, height, sum, strings.ReplaceAll(string(style), "(max-width: 48rem)", narrow), parts)
	if err := os.WriteFile(file, []byte(picture), 0o644); err != nil {
		t.Fatal(err)
	}
}
