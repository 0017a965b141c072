package runlane_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/runlane/runlane-go"
)

func TestIDs_AreValidated(t *testing.T) {
	t.Parallel()
	validators := map[string]func(string) error{
		"run id":      func(s string) error { return runlane.RunID(s).Validate() },
		"task id":     func(s string) error { return runlane.TaskID(s).Validate() },
		"queue name":  func(s string) error { return runlane.QueueName(s).Validate() },
		"schedule id": func(s string) error { return runlane.ScheduleID(s).Validate() },
		"environment": func(s string) error { return runlane.Environment(s).Validate() },
	}
	faults := map[string]string{
		"":                       "is empty",
		"a:b":                    "contains ':'",
		":":                      "contains ':'",
		"/":                      `is "/", which no address can name`,
		".":                      `is ".", which no address can name`,
		"..":                     `is "..", which no address can name`,
		"a\nb":                   `contains the unprintable character U+000A`,
		"a\x00":                  `contains the unprintable character U+0000`,
		"a\u200bb":               `contains the unprintable character U+200B`,
		"a\u00a0b":               `contains the unprintable character U+00A0`,
		"a\xffb":                 "is not valid UTF-8",
		strings.Repeat("a", 201): "has 201 bytes",
		strings.Repeat("é", 101): "has 202 bytes",
	}
	for what, validate := range validators {
		for id, fault := range faults {
			if what == "environment" && id == "" {
				continue // the default one
			}
			got, ok := errors.AsType[*runlane.Error](validate(id))
			if !ok || got.Code != runlane.ErrValidationFailed || got.Message != what+" "+fault {
				t.Errorf("%s %.20q: got %v, want %s", what, id, got, fault)
				continue
			}
			if strings.Contains(fault, "address") {
				continue // its hint is its own
			}
			if got.Hint != "use 1 to 200 bytes of printable text without ':'" || len(got.Meta["value"]) > runlane.MaxIDBytes {
				t.Errorf("%s %.20q: hint %q, %d bytes repeated", what, id, got.Hint, len(got.Meta["value"]))
			}
		}
		for _, id := range []string{"a", "run_01HZ", "with spaces and / . # ?", "größe", "仕事", strings.Repeat("a", 200), strings.Repeat("é", 100)} {
			if err := validate(id); err != nil {
				t.Errorf("%s %.20q: %v", what, id, err)
			}
		}
	}
	if err := runlane.Environment("").Validate(); err != nil {
		t.Errorf("the default environment: %v", err)
	}
}

func TestValidateKey_NeverRepeatsTheKey(t *testing.T) {
	t.Parallel()
	for key, fault := range map[string]string{
		"secret\tkey":                       `idempotency key contains the unprintable character U+0009`,
		"secret\xff":                        "idempotency key is not valid UTF-8",
		"secret" + strings.Repeat("x", 507): "idempotency key has 513 bytes",
	} {
		got, ok := errors.AsType[*runlane.Error](runlane.ValidateKey("idempotency key", key))
		if !ok || got.Code != runlane.ErrValidationFailed || got.Message != fault {
			t.Errorf("got %v, want %s", got, fault)
			continue
		}
		if text := fmt.Sprintf("%+v", *got); strings.Contains(text, "secret") {
			t.Errorf("the error repeats the key: %s", text)
		}
	}
	for _, key := range []string{"", "a:b", "https://example.com/?q=1", strings.Repeat("x", 512)} {
		if err := runlane.ValidateKey("key", key); err != nil {
			t.Errorf("%.20q: %v", key, err)
		}
	}
}

func TestUTCMillis(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("far", -5*60*60)
	for _, c := range []struct{ in, want time.Time }{
		{time.Time{}, time.Time{}},
		{time.Time{}.In(zone), time.Time{}},
		{time.Date(2026, 1, 2, 3, 4, 5, 999_999, zone), time.Date(2026, 1, 2, 8, 4, 5, 0, time.UTC)},
		{time.Date(2026, 1, 2, 3, 4, 5, 1_999_999, time.UTC), time.Date(2026, 1, 2, 3, 4, 5, 1_000_000, time.UTC)},
		{time.Date(1960, 1, 2, 3, 4, 5, 999_999_999, time.UTC), time.Date(1960, 1, 2, 3, 4, 5, 999_000_000, time.UTC)}, // down, not to zero
	} {
		if got := runlane.UTCMillis(c.in); got != c.want { // ==: location and monotonic clock count
			t.Errorf("%v: got %v, want %v", c.in, got, c.want)
		}
	}
	now := time.Now()
	if got := runlane.UTCMillis(now); got != got.Round(0) || got.UnixMilli() != now.UnixMilli() {
		t.Errorf("%v became %v", now, got)
	}
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(-1<<33, 1<<35).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns"))
		got := runlane.UTCMillis(at)
		if got.After(at) || at.Sub(got) >= time.Millisecond || got != runlane.UTCMillis(got) || got.Location() != time.UTC {
			t.Fatalf("%v became %v", at, got)
		}
		if !got.Equal(time.UnixMilli(at.UnixMilli())) {
			t.Fatalf("%v became %v, not what milliseconds at rest read as", at, got)
		}
	})
}

func TestNewFailure_CutsWhatIsTooLong(t *testing.T) {
	t.Parallel()
	short := map[string]string{"k": "v"}
	got := runlane.NewFailure("c", "message", short)
	if got.Code != "c" || got.Message != "message" || got.Meta["k"] != "v" {
		t.Errorf("got %+v", got)
	}
	short["k"] = "changed"
	if got.Meta["k"] != "v" {
		t.Error("the failure shares the caller's map")
	}
	if got := runlane.NewFailure("c", "m", map[string]string{}); got.Meta != nil {
		t.Errorf("an empty meta became %v", got.Meta)
	}

	exact := strings.Repeat("x", runlane.MaxFailureMessageBytes)
	if got := runlane.NewFailure("c", exact, nil); got.Message != exact {
		t.Error("a message of exactly the limit was cut")
	}
	got = runlane.NewFailure("c", exact+"x", nil)
	if len(got.Message) != runlane.MaxFailureMessageBytes || !strings.HasSuffix(got.Message, "x…") {
		t.Errorf("%d bytes ending in %q", len(got.Message), got.Message[len(got.Message)-5:])
	}

	whole := map[string]string{"stack": strings.Repeat("s", runlane.MaxFailureMetaBytes-len("stack"))}
	if got := runlane.NewFailure("c", "m", whole); len(got.Meta["stack"]) != len(whole["stack"]) {
		t.Error("a meta of exactly the limit was cut")
	}
	whole["k"] = "v"
	got = runlane.NewFailure("c", "m", whole)
	if got.Meta["k"] != "v" || !strings.HasSuffix(got.Meta["stack"], "s…") || len(got.Meta["stack"]) > runlane.MaxFailureMetaBytes/2 {
		t.Errorf("k is %q, stack has %d bytes", got.Meta["k"], len(got.Meta["stack"]))
	}
}

func TestNewFailure_KeepsItsLimits(t *testing.T) {
	t.Parallel()
	text := func(limit int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			return strings.Repeat(rapid.SampledFrom([]string{"a", "é", "仕", "😀", "\n"}).Draw(t, "rune"), rapid.IntRange(0, limit).Draw(t, "times"))
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		meta := rapid.MapOf(text(40), text(3000)).Draw(t, "meta")
		f := runlane.NewFailure("c", text(1200).Draw(t, "message"), meta)
		size := 0
		for k, v := range f.Meta {
			size += len(k) + len(v)
			if !utf8.ValidString(v) {
				t.Fatalf("cut within a rune: %q", v[len(v)-6:])
			}
			if original := meta[k]; v != original && (!strings.HasSuffix(v, "…") || !strings.HasPrefix(original, strings.TrimSuffix(v, "…"))) {
				t.Fatalf("%q is no cut of what was given", v)
			}
		}
		if size > runlane.MaxFailureMetaBytes || len(f.Message) > runlane.MaxFailureMessageBytes || !utf8.ValidString(f.Message) {
			t.Fatalf("meta %d bytes, message %d", size, len(f.Message))
		}
	})
}

func TestNewFailure_ManyKeys_StayWithinTheLimit(t *testing.T) {
	t.Parallel()
	meta := map[string]string{}
	for i := range 5000 {
		meta[fmt.Sprint("key", i)] = "value"
	}
	f := runlane.NewFailure("c", "m", meta)
	for k, v := range f.Meta {
		t.Errorf("there is no room for %s=%s", k, v)
	}
	if len(meta) != 5000 {
		t.Error("the caller's map was changed")
	}
}
