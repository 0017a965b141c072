package shown

import (
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
)

// StatusWords are what [Statuses] takes.
func StatusWords() []string {
	known := []string{"active", "finished"}
	for _, status := range runlane.Statuses() {
		known = append(known, string(status))
	}
	return known
}

// Statuses reads statuses with commas between them. "active" and "finished" stand for all statuses of their kind.
// unknown is the first word that is none of [StatusWords].
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
