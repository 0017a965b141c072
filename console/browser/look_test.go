package browser

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/runlane/runlane-go/memlane"
)

// A look is a page seen from far: so many cells, each with its mean brightness.
const (
	lookWidth, lookHeight = 40, 28
	// differs is how far two looks of one page may be apart: ids, times and fonts of another machine are.
	differs = 0.25
)

// The main pages look as they did, in both themes: seen from far, with a tolerance. make console-pictures takes new looks.
func TestPages_LookAsTheyDid(t *testing.T) {
	t.Parallel()
	p := newPerson(t, memlane.New(), nil)
	p.work()
	for name, path := range map[string]string{
		"overview": "/", "run": "/runs/" + string(p.Asking), "flow": "/flows/" + string(p.WaitingFlow), "queues": "/queues",
		"trigger": "/trigger?task=mail.invite",
	} {
		for _, theme := range []string{"light", "dark"} {
			p.open(path)
			p.until("the page is whole", `document.readyState == "complete"`)
			says[bool](p, fmt.Sprintf(`document.documentElement.dataset.theme = %q, true`, theme))
			says[bool](p, `document.querySelectorAll(".chart, .bar").forEach((e) => { e.style.visibility = "hidden"; }), true`) // by the clock
			got := p.look()
			file := filepath.Join("testdata", "looks", name+"-"+theme+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if apart := distance(t, got, string(want)); apart > differs {
				t.Errorf("%s, %s, looks otherwise, by %.2f: PICTURES=FOLDER make test-console shows it; "+
					"if it is meant, make console-pictures", name, theme, apart)
			}
			says[bool](p, `document.querySelectorAll("link[rel=stylesheet]").forEach((l) => l.remove()), true`)
			if apart := distance(t, p.look(), string(want)); apart <= differs {
				t.Errorf("%s, %s, without its style looks as with it: %.2f", name, theme, apart)
			}
			checks.Add(2)
		}
	}
}

// look is the page as a person sees it from far, a line of hexadecimal cells for each row.
func (p *person) look() string {
	p.t.Helper()
	shot, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		p.t.Fatal(err)
	}
	var look strings.Builder
	size := picture.Bounds().Size()
	for y := range lookHeight {
		for x := range lookWidth {
			cell := image.Rect(x*size.X/lookWidth, y*size.Y/lookHeight, (x+1)*size.X/lookWidth, (y+1)*size.Y/lookHeight)
			fmt.Fprintf(&look, "%02x", brightness(picture, cell))
		}
		look.WriteByte('\n')
	}
	return look.String()
}

// brightness is the mean of a part, of 255.
func brightness(picture image.Image, of image.Rectangle) int {
	sum, n := 0, 0
	for y := of.Min.Y; y < of.Max.Y; y++ {
		for x := of.Min.X; x < of.Max.X; x++ {
			r, g, b, _ := picture.At(x, y).RGBA()
			sum, n = sum+int(r+g+b)/3>>8, n+1
		}
	}
	return sum / max(n, 1)
}

// distance is how much of what two looks show beside their backgrounds is not at the same place: 0 for all of it, 1 for
// nothing.
func distance(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := cells(t, a), cells(t, b)
	apart, shown := 0, 0
	for i := range x {
		apart += max(x[i]-y[i], y[i]-x[i])
		shown += max(x[i], -x[i], y[i], -y[i])
	}
	return float64(apart) / float64(max(shown, 1))
}

// cells are those of a look, less their background: the most frequent one.
func cells(t *testing.T, look string) (all []int) {
	t.Helper()
	text := strings.ReplaceAll(look, "\n", "")
	often := map[int]int{}
	for i := 0; i+2 <= len(text); i += 2 {
		var cell int
		if _, err := fmt.Sscanf(text[i:i+2], "%x", &cell); err != nil {
			t.Fatal(err)
		}
		often[cell]++
		all = append(all, cell)
	}
	if len(all) != lookWidth*lookHeight {
		t.Fatalf("a look of %d cells", len(all))
	}
	background := 0
	for cell, n := range often {
		if n > often[background] {
			background = cell
		}
	}
	for i := range all {
		all[i] -= background
	}
	return all
}
