package cli_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go/internal/tools/picture"
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

const recordingLabel = "A terminal: runs are listed, two of them explained, one that failed is made again."

// drawn is the shown part of a played script as a picture.
func drawn(played string) string {
	var p picture.Picture
	shown := false
	for text := range strings.Lines(played) {
		mark, rest, _ := strings.Cut(strings.TrimSuffix(text, "\n"), " ")
		switch {
		case mark == "#":
			shown = rest == "Shown."
		case !shown:
		case mark == "$":
			p.Command("runlane " + rest)
		case mark == "@":
			p.Note(strings.TrimPrefix(rest, "advance ") + " later")
		case mark == ">" || mark == "!":
			p.Answer(rest)
		}
	}
	return p.SVG(recordingLabel)
}
