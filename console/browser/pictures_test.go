package browser

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/runlane/runlane-go/memlane"
)

var update = flag.Bool("update", false, "draw the pictures of the documents again")

// drawn makes XML of the page as it is seen: without scripts, and with links that lead nowhere.
const drawn = `(() => {
	const body = document.body.cloneNode(true);
	body.querySelectorAll("script, dialog, [hidden]").forEach((e) => e.remove());
	body.querySelectorAll("a").forEach((e) => e.setAttribute("href", "#"));
	for (const e of [body, ...body.querySelectorAll("*")]) {
		for (const a of [...e.attributes]) if (a.name.includes(":") || a.name.startsWith("data-")) e.removeAttribute(a.name);
	}
	return new XMLSerializer().serializeToString(body);
})()`

// Each picture of the documents is of the console as it is: it names the sum of the files that make it. They are
// drawn by make console-pictures.
func TestPictures_AreOfTheConsoleAsItIs(t *testing.T) {
	t.Parallel()
	sum := sumOf(t, "../*.go", "../assets/*")
	for name, open := range map[string]func(p *person){
		"overview": func(p *person) { p.work(); p.open("/") },
		"run":      func(p *person) { p.work(); p.open("/runs/" + string(p.Asking)) },
		"flow":     func(p *person) { p.work(); p.open("/flows/" + string(p.WaitingFlow)) },
		"repair":   func(p *person) { p.failed(199); p.toRetryAll(200) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("..", "..", "docs", "console-"+name+".svg")
			text, err := os.ReadFile(file)
			if *update && !strings.Contains(string(text), sum) {
				draw(t, file, sum, open)
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
	body := says[string](p, drawn)
	style, err := os.ReadFile(filepath.Join("..", "assets", "console.css"))
	if err != nil {
		t.Fatal(err)
	}
	picture := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d">
<!-- of the console %s, by make console-pictures -->
<style><![CDATA[
%s]]></style>
<foreignObject width="%[1]d" height="%[2]d">
%[5]s
</foreignObject>
</svg>
`, width, height, sum, style, body)
	if err := os.WriteFile(file, []byte(picture), 0o644); err != nil {
		t.Fatal(err)
	}
}
