package samfile

import "strings"

// WithoutExample leaves out the lines of the template that are the example application's.
func WithoutExample(template string) string {
	var kept strings.Builder
	for line := range strings.Lines(template) {
		if !strings.Contains(line, "# example") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
