package infra

import (
	"encoding/json"
	"testing"
)

// FuzzParseRedrive gives anything as the redrive policy of a queue: what is read is what it says.
func FuzzParseRedrive(f *testing.F) {
	for _, text := range []string{
		`{"deadLetterTargetArn":"arn:aws:sqs:x:1:a","maxReceiveCount":5}`, `{"maxReceiveCount":"5"}`, `{"maxReceiveCount":5e0}`, `{}`, `null`, `"`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, ok := parseRedrive(text); ok && !json.Valid([]byte(text)) {
			t.Fatalf("%q is read", text)
		}
	})
}
