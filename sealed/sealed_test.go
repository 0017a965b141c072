package sealed_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/sealed"
)

var place = runlane.BodyRef{Environment: "production", RunID: "run_1", TaskID: "mail.send"}

// key is one that is the same in each test.
func key(t testing.TB, id string, fill byte) sealed.Key {
	t.Helper()
	k, err := sealed.KeyOf(id, bytes.Repeat([]byte{fill}, sealed.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func codec(t testing.TB, options *sealed.Options, keys ...sealed.Key) *sealed.Codec {
	t.Helper()
	c, err := sealed.New(keys, options)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func encode(t testing.TB, c *sealed.Codec, of runlane.BodyRef, plain []byte) (stored []byte, id string) {
	t.Helper()
	stored, id, err := c.Encode(context.Background(), of, plain)
	if err != nil {
		t.Fatal(err)
	}
	return stored, id
}

// wantUnreadable holds that nothing was opened, and that nothing of it is told.
func wantUnreadable(t *testing.T, what string, plain []byte, err error) {
	t.Helper()
	if plain != nil || !errors.Is(err, runlane.ErrPayloadUnreadable) || runlane.CodeOf(err) != runlane.ErrPayloadUnreadable {
		t.Errorf("%s: got %d bytes and %v, want %s", what, len(plain), err, runlane.ErrPayloadUnreadable)
	}
}

func TestCodec_OpensWhatItEncrypted(t *testing.T) {
	t.Parallel()
	random := make([]byte, 100_000)
	_, _ = rand.Read(random)
	for _, options := range []*sealed.Options{nil, {NoCompression: true}, {RefusePlain: true}} {
		c := codec(t, options, key(t, "2026-11", 1))
		for name, plain := range map[string][]byte{
			"null": []byte("null"), "one digit": []byte("1"), "an object": []byte(`{ "a" : 1.0e2, "html": "<&>" }`),
			"63 bytes": bytes.Repeat([]byte("a"), 63), "64 bytes": bytes.Repeat([]byte("a"), 64),
			"what compresses": bytes.Repeat([]byte(`{"user":"u_1"},`), 10_000), "what does not": random,
			"the largest payload": append(append([]byte(`"`), bytes.Repeat([]byte("x"), runlane.MaxPayloadBytes-2)...), '"'),
		} {
			given := bytes.Clone(plain)
			stored, id := encode(t, c, place, given)
			if id != "2026-11" {
				t.Errorf("%s: the key is %q", name, id)
			}
			if !bytes.Equal(given, plain) {
				t.Errorf("%s: what was given has changed", name)
			}
			if len(plain) > 8 && bytes.Contains(stored, plain[:8]) {
				t.Errorf("%s: it stands in what is stored", name)
			}
			got, err := c.Decode(t.Context(), place, id, stored)
			if err != nil || !bytes.Equal(got, plain) {
				t.Errorf("%s: got %d bytes of %d, %v", name, len(got), len(plain), err)
			}
		}
	}
}

func TestCodec_EncryptsTheSameDifferentlyEachTime(t *testing.T) {
	t.Parallel()
	c := codec(t, nil, key(t, "k", 1))
	seen := map[string]bool{}
	for range 1000 {
		stored, _ := encode(t, c, place, []byte(`{"a":1}`))
		if seen[string(stored)] {
			t.Fatal("two of one payload are the same bytes")
		}
		seen[string(stored)] = true
	}
}

// What is stored for one body opens nowhere else: a row of the table cannot be copied to another run.
func TestDecode_BytesOfAnotherPlace_AreRefused(t *testing.T) {
	t.Parallel()
	c := codec(t, nil, key(t, "k", 1), key(t, "same-secret", 1))
	stored, id := encode(t, c, place, []byte(`{"a":1}`))
	for what, of := range map[string]runlane.BodyRef{
		"a step":                     {Environment: place.Environment, RunID: place.RunID, TaskID: place.TaskID, Kind: runlane.BodyStep, Name: "a"},
		"another run":                {Environment: "production", RunID: "run_2", TaskID: "mail.send"},
		"another environment":        {Environment: "staging", RunID: "run_1", TaskID: "mail.send"},
		"no environment":             {RunID: "run_1", TaskID: "mail.send"},
		"another task":               {Environment: "production", RunID: "run_1", TaskID: "mail.delete"},
		"the output of the run":      {Environment: "production", RunID: "run_1", TaskID: "mail.send", Output: true},
		"names that join to as much": {Environment: "productionrun_", RunID: "1", TaskID: "mail.send"},
	} {
		plain, err := c.Decode(t.Context(), of, id, stored)
		wantUnreadable(t, what, plain, err)
	}
	plain, err := c.Decode(t.Context(), place, "same-secret", stored)
	wantUnreadable(t, "another name of the key", plain, err)
	if _, err := c.Decode(t.Context(), place, id, stored); err != nil {
		t.Error("it does not open at its own place:", err)
	}
}

func TestDecode_DefaultEnvironmentHasTwoSpellings(t *testing.T) {
	t.Parallel()
	c := codec(t, nil, key(t, "k", 1))
	stored, id := encode(t, c, runlane.BodyRef{RunID: "run_1"}, []byte("1"))
	if _, err := c.Decode(t.Context(), runlane.BodyRef{Environment: runlane.DefaultEnvironment, RunID: "run_1"}, id, stored); err != nil {
		t.Error(err)
	}
}

func TestDecode_BytesThatWereChangedOrCut_AreRefused(t *testing.T) {
	t.Parallel()
	for _, plain := range [][]byte{[]byte(`{"a":1}`), bytes.Repeat([]byte("abc"), 100)} {
		c := codec(t, nil, key(t, "k", 1))
		stored, id := encode(t, c, place, plain)
		for i := range stored {
			for _, bit := range []byte{1, 2, 0x80} {
				changed := bytes.Clone(stored)
				changed[i] ^= bit
				got, err := c.Decode(t.Context(), place, id, changed)
				wantUnreadable(t, fmt.Sprintf("byte %d changed", i), got, err)
			}
			got, err := c.Decode(t.Context(), place, id, stored[:i])
			wantUnreadable(t, fmt.Sprintf("cut to %d bytes", i), got, err)
		}
		got, err := c.Decode(t.Context(), place, id, append(bytes.Clone(stored), 0))
		wantUnreadable(t, "longer", got, err)
	}
}

func TestDecode_WrongKeys_AreNamed(t *testing.T) {
	t.Parallel()
	stored, id := encode(t, codec(t, nil, key(t, "2026-05", 1)), place, []byte(`{"secret":"mark"}`))
	plain, err := codec(t, nil, key(t, "2026-11", 2)).Decode(t.Context(), place, id, stored)
	wantUnreadable(t, "a key that is missing", plain, err)
	if !strings.Contains(err.Error(), `"2026-05"`) {
		t.Errorf("it does not say which: %v", err)
	}
	plain, err = codec(t, nil, key(t, "2026-05", 2)).Decode(t.Context(), place, id, stored)
	wantUnreadable(t, "another key of the same name", plain, err)
}

func TestCodec_Rotation_OldOpensAndNewEncrypts(t *testing.T) {
	t.Parallel()
	before, after := key(t, "2026-05", 1), key(t, "2026-11", 2)
	stored, id := encode(t, codec(t, nil, before), place, []byte("1"))
	both := codec(t, nil, after, before)
	if plain, err := both.Decode(t.Context(), place, id, stored); err != nil || string(plain) != "1" {
		t.Errorf("the old key's: %q, %v", plain, err)
	}
	stored, id = encode(t, both, place, []byte("2"))
	if id != "2026-11" {
		t.Errorf("encrypted with %s", id)
	}
	// While programs are being replaced, the old ones know the new key and do not use it yet.
	if plain, err := codec(t, nil, before, after).Decode(t.Context(), place, id, stored); err != nil || string(plain) != "2" {
		t.Errorf("the new key's, in the old program: %q, %v", plain, err)
	}
}

func TestDecode_PlainBytes_AreTakenUnlessRefused(t *testing.T) {
	t.Parallel()
	plain, err := codec(t, nil, key(t, "k", 1)).Decode(t.Context(), place, "", []byte(`{"a":1}`))
	if err != nil || string(plain) != `{"a":1}` {
		t.Errorf("got %q, %v", plain, err)
	}
	plain, err = codec(t, &sealed.Options{RefusePlain: true}, key(t, "k", 1)).Decode(t.Context(), place, "", []byte(`{"a":1}`))
	wantUnreadable(t, "plain bytes", plain, err)
}

// Encrypted bytes do not compress: 20,000 bytes of JSON would be 20,000 in the table.
func TestEncode_CompressesBeforeItEncrypts(t *testing.T) {
	t.Parallel()
	plain := bytes.Repeat([]byte(`{"id":"u_1234","name":"some one","tags":["a","b"]},`), 400)
	k := key(t, "2026-11", 1)
	small, _ := encode(t, codec(t, nil, k), place, plain)
	large, _ := encode(t, codec(t, &sealed.Options{NoCompression: true}, k), place, plain)
	if len(small) > len(plain)/20 {
		t.Errorf("%d bytes became %d", len(plain), len(small))
	}
	if overhead := len(large) - len(plain); overhead != 29 {
		t.Errorf("%d bytes more than the payload, docs/encryption.md says 29", overhead)
	}
	short, _ := encode(t, codec(t, nil, k), place, []byte(`"what is random does not get shorter"`))
	if len(short) != 37+29 {
		t.Errorf("37 bytes became %d", len(short))
	}
}

func TestNew_WhatCannotBe_IsConfigurationInvalid(t *testing.T) {
	t.Parallel()
	for what, keys := range map[string][]sealed.Key{
		"no keys": nil, "an empty key": {{}}, "one name twice": {key(t, "k", 1), key(t, "k", 2)},
	} {
		if c, err := sealed.New(keys, nil); c != nil || runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
			t.Errorf("%s: %v, %v", what, c, err)
		}
	}
}

// holder has keys where no method of theirs is called: packages that print by reflection see the fields.
type holder struct {
	Key   sealed.Key
	key   sealed.Key
	keys  []sealed.Key
	named map[string]sealed.Key
	codec *sealed.Codec
	any   any
}

func TestKeys_AreNeverPrinted(t *testing.T) {
	t.Parallel()
	k, err := sealed.KeyOf("2026-11", []byte("an-exceptionally-well-kept-secret"[:sealed.KeyBytes]))
	if err != nil {
		t.Fatal(err)
	}
	c := codec(t, nil, k)
	h := holder{k, k, []sealed.Key{k}, map[string]sealed.Key{"k": k}, c, k}
	var printed bytes.Buffer
	for _, v := range []any{k, &k, c, *c, h, &h, []any{k, c}, fmt.Errorf("with %v", c)} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%c", "%U", "%t", "%T", "%p", "%!"} {
			fmt.Fprintf(&printed, verb+"\n", v)
		}
		if b, err := json.Marshal(v); err == nil {
			printed.Write(b)
		}
		slog.New(slog.NewTextHandler(&printed, nil)).Info("a line", "value", v)
		slog.New(slog.NewJSONHandler(&printed, nil)).Info("a line", "value", v)
	}
	secret := "an-exceptionally"
	for _, form := range []string{
		secret, fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret), "97 110 45 101", "[97,110,45", "0x61, 0x6e, 0x2d", "141 156 55", "U+0061 U+006E", "YW4tZXhjZXB0",
		"a n - e",
	} {
		if strings.Contains(printed.String(), form) {
			t.Errorf("the key was printed, as %s", form)
		}
	}
	if text := printed.String(); !strings.Contains(text, "sealed.Key(2026-11)") || !strings.Contains(text, "sealed.Codec(2026-11)") {
		t.Errorf("names are missing in %.300s", text)
	}
	if line := k.Line(); !strings.Contains(line, "YW4tZXhjZXB0") {
		t.Errorf("the line for the file, %q, has no secret: the search finds nothing", line)
	}
}

func BenchmarkCodec(b *testing.B) {
	for _, size := range []int{100, 1_000, 10_000, 350_000} {
		plain := append([]byte{'"'}, bytes.Repeat([]byte("some text of a payload, "), size/24+1)...)[:size]
		c := codec(b, nil, key(b, "k", 1))
		stored, id := encode(b, c, place, plain)
		b.Run(fmt.Sprintf("encode/%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				encode(b, c, place, plain)
			}
		})
		b.Run(fmt.Sprintf("decode/%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Decode(b.Context(), place, id, stored); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
