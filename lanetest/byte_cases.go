package lanetest

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Payload and output: bytes come back exactly as they were given.
func byteCases() []storageCase {
	return []storageCase{
		{"PayloadsComeBackIdentical", nil, payloadBytes},
		{"OutputsComeBackIdentical", needsLeases, outputBytes},
		{"NoOutputIsNone", needsLeases, noOutput},
		{"OwnersComeWithTheirBytes", needsBoth(needsIdempotency, needsSingleton), ownerBytes},
	}
}

// byteSamples are JSON that encoders often change, bytes as a codec returns them, and sizes at which storages change
// how they store bytes.
func byteSamples() map[string][]byte {
	return map[string][]byte{
		"spaces, brackets, a float": []byte(`{"a": "<b>", "n": 1.0e2}`),
		"lone surrogates":           []byte(`{"s":"\ud800 and \udc00","e":"\u00e9é"}`),
		"line separators":           []byte("{\"u\": \"\u2028\u2029&\",\n\t\"z\" : -0.0 }\r\n"),
		"repeated keys":             []byte(`{"b":1,"a":2,"b":3,"big":123456789012345678901234567890}`),
		"null":                      []byte(`null`),
		"a word":                    []byte(`"x"`),
		"a codec's bytes":           {1, 1, 'k', 0, 0xff, 0xfe, '\n'},
		"400 bytes":                 filler(400),
		"1 KB":                      filler(1000),
		"5 KB":                      filler(5000),
		"300 KB":                    filler(300_000),
	}
}

// filler is a JSON string of n bytes that seem random and still compress to half.
func filler(n int) []byte {
	source := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16)}) // fixed: the same bytes each time
	raw := make([]byte, n/2)
	_, _ = source.Read(raw)
	text := make([]byte, 0, n)
	text = append(text, '"')
	text = append(text, hex.EncodeToString(raw)...)
	return append(text[:n-1], '"')
}

func payloadBytes(t *testing.T, b *bundle) {
	for name, payload := range byteSamples() {
		commit := b.append(b.Creation(t, noon, RunOptions{Payload: payload}))
		id := commit.Run.ID
		wantBytes(t, name+", returned", payload, commit.Run.Payload)
		wantBytes(t, name+", returned event", payload, commit.Events[0].Body.(*runlane.RunCreated).Payload)
		wantBytes(t, name+", GetRun", payload, b.get(id).Payload)
		runs := must(b.storage.GetRuns(b.ctx(), &lane.RunsQuery{Environment: b.env, IDs: []runlane.RunID{id}}))(t)
		wantBytes(t, name+", GetRuns", payload, runs[0].Payload)
		wantBytes(t, name+", InspectRun", payload, b.inspect(id).Run.Payload)
		if b.h.Capabilities.LeasesRuns {
			wantBytes(t, name+", claimed", payload, b.claim(commit.Run, noon, noon.Add(time.Minute)).Payload)
		}
		if b.h.Capabilities.ReadsRunHistory {
			wantBytes(t, name+", listed event", payload, b.history(b.key(id))[0].Body.(*runlane.RunCreated).Payload)
		}
	}
}

func outputBytes(t *testing.T, b *bundle) {
	for name, output := range byteSamples() {
		run := b.running(noon, noon.Add(time.Minute), RunOptions{Payload: []byte(`{"p":  1}`)})
		commit := b.append(b.Append(t, run, noon.Add(time.Second), Succeeded(run, output)))
		wantBytes(t, name+", returned", output, commit.Run.Output)
		wantBytes(t, name+", returned event", output, commit.Events[0].Body.(*runlane.RunSucceeded).Output)
		stored := b.get(run.ID)
		wantBytes(t, name+", GetRun", output, stored.Output)
		wantBytes(t, name+", InspectRun", output, b.inspect(run.ID).Run.Output)
		wantBytes(t, name+", payload beside it", []byte(`{"p":  1}`), stored.Payload)
		if b.h.Capabilities.ReadsRunHistory {
			history := b.history(b.key(run.ID))
			wantBytes(t, name+", listed event", output, history[len(history)-1].Body.(*runlane.RunSucceeded).Output)
		}
	}
}

func ownerBytes(t *testing.T, b *bundle) {
	for name, payload := range byteSamples() {
		b.create(time.Now(), RunOptions{
			IdempotencyKey: name,
			SingletonKey:   name,
			Retention:      runlane.KeyRetention{TTL: time.Hour},
			Payload:        payload,
		})
		wantBytes(
			t,
			name+", GetRunByIdempotencyKey",
			payload,
			must(b.storage.GetRunByIdempotencyKey(b.ctx(), b.owner(name)))(t).Payload,
		)
		wantBytes(
			t,
			name+", GetRunBySingletonKey",
			payload,
			must(b.storage.GetRunBySingletonKey(b.ctx(), b.owner(name)))(t).Payload,
		)
	}
}

func noOutput(t *testing.T, b *bundle) {
	run := b.running(noon, noon.Add(time.Minute), RunOptions{})
	b.push(run, noon.Add(time.Second), Succeeded(run, nil))
	if got := b.get(run.ID).Output; got != nil {
		t.Fatalf("output is %q, want none", got)
	}
}

func wantBytes(t testing.TB, what string, want, got []byte) {
	t.Helper()
	if bytes.Equal(want, got) {
		return
	}
	if len(want) > 200 {
		t.Fatalf("%s: %d bytes came back as %d others", what, len(want), len(got))
	}
	t.Fatalf("%s: %q came back as %q", what, want, got)
}
