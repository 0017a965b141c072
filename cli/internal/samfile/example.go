package samfile

import "strings"

// WithoutExample removes the lines of the example application from the template.
func WithoutExample(template string) string {
	var kept strings.Builder
	for line := range strings.Lines(template) {
		if !strings.Contains(line, "# example") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
