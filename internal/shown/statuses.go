package shown

import (
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
)

// StatusWords returns the words that [Statuses] accepts.
func StatusWords() []string {
	known := []string{"active", "finished"}
	for _, status := range runlane.Statuses() {
		known = append(known, string(status))
	}
	return known
}

// Statuses reads statuses separated by commas. "active" and "finished" stand for several. unknown is the first word
// that is not in [StatusWords], or nil.
func Statuses(text string) (found []runlane.Status, unknown *string) {
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		if !slices.Contains(StatusWords(), word) {
			return nil, &word
		}
		for _, status := range runlane.Statuses() {
			meant := string(status) == word ||
				word == "active" && status.Active() || word == "finished" && status.Terminal()
			if meant && !slices.Contains(found, status) {
				found = append(found, status)
			}
		}
	}
	return found, nil
}
