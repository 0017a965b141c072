package console

import (
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
)

// What a page shows does the same as its button, whatever names a run, and needs no environment where that is the
// default one.
func TestCommands_AreWhatTheyLookLike(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"doctor":                                    "runlane doctor",
		"flows list":                                "runlane flows list",
		"runs cancel r1":                            "runlane runs cancel r1",
		"runs cancel --all":                         "runlane runs cancel -- --all",
		"runs retry --id=a;b":                       "runlane runs retry -- '--id=a;b'",
		"runs retry $(x)":                           "runlane runs retry '$(x)'",
		"runs signal --all -n --body true":          "runlane runs signal --body true -- --all -n",
		"runs signal r1 approved --body true":       "runlane runs signal --body true r1 approved",
		"runs cancel --status active --queue --all": "runlane runs cancel --status active --queue --all",
		"flows cancel --help --everything":          "runlane flows cancel --everything -- --help",
		"flows retry f1 --dry-run":                  "runlane flows retry --dry-run f1",
		"trigger TASK PAYLOAD":                      "runlane trigger TASK PAYLOAD",
		"trigger --help PAYLOAD":                    "runlane trigger -- --help PAYLOAD",
	} {
		words := strings.Fields(line)
		if got := commandLine(runlane.DefaultEnvironment, words); got != want {
			t.Errorf("%s: %s, not %s", line, got, want)
		}
	}
	if got := commandLine("staging", []string{"runs", "cancel", "--all"}); got != "runlane runs cancel --env staging -- --all" {
		t.Error(got)
	}
}
