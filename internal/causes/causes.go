// Package causes returns what an error's message leaves out.
package causes

import (
	"strings"

	"github.com/runlane/runlane-go"
)

// Omitted returns the texts of causes that the message does not contain, one for each cause.
func Omitted(message string, cause error) []string {
	switch e := cause.(type) { //nolint:errorlint // the wrapping error says more than those it wraps
	case nil:
		return nil
	case *runlane.Error:
		if e != nil && strings.Contains(message, e.Message) {
			return Omitted(message, e.Cause)
		}
	case interface{ Unwrap() []error }:
		var texts []string
		for _, part := range e.Unwrap() {
			texts = append(texts, Omitted(message, part)...)
		}
		return texts
	}
	if text := cause.Error(); !strings.Contains(message, text) {
		return []string{text}
	}
	return nil
}
