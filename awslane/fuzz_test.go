package awslane_test

import (
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
)

// FuzzParseQueues gives anything as RUNLANE_QUEUES: it is refused as configuration, or names valid queues with an address each.
func FuzzParseQueues(f *testing.F) {
	for _, text := range []string{"a=https://sqs.eu-west-1.amazonaws.com/1/a, b=http://h/1/b,", "a=", "=x", "a=x,a=y", ",,", "a", "\x00=\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		queues, err := awslane.ParseQueues(text)
		if err != nil {
			if runlane.CodeOf(err) != runlane.ErrConfigurationInvalid || len(err.Error()) > 600 {
				t.Fatal(err)
			}
			return
		}
		for name, url := range queues {
			if name.Validate() != nil || url == "" {
				t.Fatalf("%q binds %q to %q", text, name, url)
			}
		}
		if len(queues) == 0 {
			t.Fatalf("%q binds nothing", text)
		}
	})
}
