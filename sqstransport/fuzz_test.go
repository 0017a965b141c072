package sqstransport_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/sqstransport"
)

// FuzzQueueURL gives anything as the address of a queue: it is refused without being repeated, or it is one of HTTP with a host.
func FuzzQueueURL(f *testing.F) {
	for _, text := range []string{
		"https://sqs.eu-west-1.amazonaws.com/123456789012/mail", "http://user:secret@host/1/a.fifo", "arn:aws:sqs:x:1:a", "://", "https:///a/b", "\x00",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := sqstransport.New(newFakeSQS(), map[runlane.QueueName]string{"mail": text}, nil)
		if err != nil {
			e, ok := errors.AsType[*runlane.Error](err)
			if !ok || e.Code != runlane.ErrConfigurationInvalid || len(text) > 40 && strings.Contains(e.Message, text) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if u, err := url.Parse(text); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			t.Fatalf("%q is taken", text)
		}
	})
}
