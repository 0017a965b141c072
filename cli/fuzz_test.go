package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"testing"
	"unicode/utf8"

	"github.com/runlane/runlane-go"
)

// FuzzBatchLine gives anything as a line of a batch: it is read, or refused with a place and a next step.
func FuzzBatchLine(f *testing.F) {
	for _, text := range []string{
		`{"task":"t","payload":{"a":1e999},"delay":"1d","runAt":"2026-03-01","meta":{"a":"b"}}`, `{"TASK":"t","task":"u"}`, `{"tusk":1}`,
		`{"meta":{"a":1}}`, `{"idempotencyKey":null}`, `{"task":"\ud800"}`, `[]`, "{", "\x00", `{"a":1}{}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if text = bytes.TrimSpace(text); len(text) == 0 {
			return // what reads lines leaves empty ones out
		}
		line, err := readBatchLine(text)
		if err == nil {
			if !json.Valid(text) || line.Payload != nil && !json.Valid(line.Payload) {
				t.Fatalf("%q is read", text)
			}
			return
		}
		e, ok := errors.AsType[*usageError](err)
		if !ok || e.message == "" || e.next == "" || !utf8.ValidString(e.message) {
			t.Fatalf("%q: %#v", text, err)
		}
	})
}

// FuzzFilter gives anything as the arguments of a command that selects runs.
func FuzzFilter(f *testing.F) {
	f.Add("--status=active,failed", "--task", "x", "2026-03-01T12:00")
	f.Add("--status", "none", "--statsu=failed", "")
	f.Add("--meta=a=b", "--", "-x", "\x00")
	f.Add("-", "---status=", "--older=1d", "--since=2026-13-01")
	f.Fuzz(func(t *testing.T, a, b, c, at string) {
		set := flag.NewFlagSet("fuzz", flag.ContinueOnError)
		set.SetOutput(io.Discard)
		var selected filter
		selected.define(set)
		options := triggerFlags{}
		set.Var(&options.meta, "meta", "")
		var names words[runlane.QueueName]
		set.Var(&names, "names", "")
		timeFlag(set, &options.runAt, "at", "")
		durationFlag(set, &options.delay, "older", "")
		_, err := parseFlags(set, []string{a, b, c, "--since=" + at, "--at=" + at})
		if err != nil {
			if e, ok := errors.AsType[*usageError](err); !ok || e.message == "" {
				t.Fatalf("%q %q %q: %v", a, b, c, err)
			}
			return
		}
		for _, status := range selected.statuses {
			if !status.Known() {
				t.Fatalf("%q %q %q select %q", a, b, c, status)
			}
		}
		if _, ok := options.meta[""]; ok {
			t.Fatalf("%q %q %q give an empty name", a, b, c)
		}
		_, _ = readRetention(at)
	})
}

// FuzzTokens gives anything as the file of tokens, and as the address of a proxy.
func FuzzTokens(f *testing.F) {
	f.Add([]byte("{\"name\":\"a\",\"hash\":\"00\",\"scopes\":[\"read\"]}\n\n{}\n"), "10.0.0.0/8")
	f.Add([]byte("[]"), "::1%eth0")
	f.Add([]byte("{}{}"), "1.2.3.4/99")
	f.Fuzz(func(t *testing.T, text []byte, address string) {
		tokens, err := parseTokens(text)
		if err == nil && len(tokens) > 1+bytes.Count(text, []byte("\n")) {
			t.Fatalf("%d tokens of %q", len(tokens), text)
		}
		flags := serveFlags{proxies: words[string]{address}, proxyHeader: "X"}
		_, err = flags.proxy()
		if _, ok := errors.AsType[*usageError](err); err != nil && !ok {
			t.Fatalf("%q: %v", address, err)
		}
	})
}
