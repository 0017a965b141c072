package main

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go/internal/tools/picture"
	"github.com/runlane/runlane-go/lane"
)

var update = flag.Bool("update", false, "draw the README's picture of the demo anew")

const (
	recordingFile  = "../../../../docs/demo.svg"
	recordingLabel = "A terminal: make demo is killed in the middle of its deliveries, starts again, and has lost none of 329 runs."
)

// number is what differs between two demos: counts, and times.
var number = regexp.MustCompile(`\d[\d.]*(ms|s)?`)

// The README's picture is what make demo says, from where it is killed, except for its numbers and where it keeps its runs. -update
// draws it anew.
func TestRecording_IsWhatTheDemoSays(t *testing.T) {
	t.Setenv(againVariable, "yes")
	t.Setenv(lane.Variable, "")
	var stdout, stderr bytes.Buffer
	if status := run(t.Context(), []string{"-kill", "-state", t.TempDir()}, &stdout, &stderr, false); status != 0 {
		t.Fatalf("status %d\n%s%s", status, &stdout, &stderr)
	}
	var p picture.Picture
	p.Command("make demo")
	for text := range strings.Lines(stderr.String() + stdout.String()) {
		text = strings.TrimSpace(text)
		if !strings.HasPrefix(text, "delivering ") && !strings.HasPrefix(text, "look at ") {
			p.Answer(text)
		}
	}
	drawn := p.SVG(recordingLabel)
	if *update {
		if err := os.WriteFile(recordingFile, []byte(drawn), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	shown, err := os.ReadFile(recordingFile)
	if err != nil {
		t.Fatal(err)
	}
	lines := func(svg string) []string { return strings.Split(number.ReplaceAllString(svg, "0"), "\n") }
	if diff := cmp.Diff(lines(string(shown)), lines(drawn)); diff != "" {
		t.Errorf("%s is not what the demo says, go test . -update in this folder draws it (-drawn +says)\n%s", recordingFile, diff)
	}
}
