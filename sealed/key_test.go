package sealed_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/sealed"
)

func ids(keys []sealed.Key) (ids []string) {
	for _, k := range keys {
		ids = append(ids, k.ID())
	}
	return ids
}

func TestParseKeys_ReadsLinesAndLists(t *testing.T) {
	t.Parallel()
	a, b := key(t, "2026-11", 1), key(t, "eu/2026.05:old_1", 2)
	for what, text := range map[string]string{
		"lines":          a.Line() + "\n" + b.Line() + "\n",
		"a list":         a.Line() + "," + b.Line(),
		"no last break":  a.Line() + "\n" + b.Line(),
		"Windows' lines": a.Line() + "\r\n" + b.Line() + "\r\n",
		"with comments":  "# encrypts\n " + a.Line() + " \n\n  # opens, still\n" + b.Line() + ",\n",
	} {
		keys, err := sealed.ParseKeys(text)
		if err != nil || !slices.Equal(ids(keys), []string{"2026-11", "eu/2026.05:old_1"}) {
			t.Errorf("%s: %v, %v", what, keys, err)
			continue
		}
		if keys[0].Line() != a.Line() || keys[1].Line() != b.Line() {
			t.Errorf("%s: the keys are others", what)
		}
	}
}

func TestParseKeys_WhatCannotBeRead_IsToldByItsPlaceAlone(t *testing.T) {
	t.Parallel()
	const mark = "SECRET"
	good := key(t, "good", 1).Line()
	for text, want := range map[string]string{
		"":                               "there are no keys",
		"# nothing\n\n,":                 "there are no keys",
		mark:                             "key 1 has no name",
		good + "\n" + mark:               "key 2 has no name",
		"=" + mark:                       "name of key 1 is empty",
		mark + " x=" + mark:              "name of key 1 has other characters",
		mark + "\x1b[2J=" + mark:         "name of key 1 has other characters",
		strings.Repeat(mark, 11) + "=aa": "name of key 1 has 66 bytes",
		"k=" + mark + "!":                "key 1 is not base64",
		good + ",k=" + mark + "=":        "key 2 is not base64",
		"k=" + base64.StdEncoding.EncodeToString([]byte(mark)): "key 1 has 6 bytes",
		"k=":                          "key 1 has no secret, or no name",
		strings.Repeat(mark, 7) + "=": "key 1 has no secret, or no name", // a secret whose name was forgotten
	} {
		keys, err := sealed.ParseKeys(text)
		if runlane.CodeOf(err) != runlane.ErrConfigurationInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %q", text, keys, err, want)
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(e.Error(), mark) {
				t.Errorf("%q is repeated: %v", text, e)
			}
		}
	}
}

func TestKeyOf_CopiesAndChecks(t *testing.T) {
	t.Parallel()
	secret := bytes.Repeat([]byte{7}, sealed.KeyBytes)
	k, err := sealed.KeyOf("k", secret)
	if err != nil {
		t.Fatal(err)
	}
	line := k.Line()
	clear(secret)
	if k.Line() != line {
		t.Error("the key is not a copy")
	}
	for _, size := range []int{0, 16, 31, 33} {
		if _, err := sealed.KeyOf("k", make([]byte, size)); runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if (sealed.Key{}).Line() != "" {
		t.Error("no key has a line")
	}
}

func TestNewKey_MakesAnotherEachTime(t *testing.T) {
	t.Parallel()
	a, errA := sealed.NewKey("k")
	b, errB := sealed.NewKey("k")
	if errA != nil || errB != nil || a.Line() == b.Line() || len(a.Line()) != len("k=")+44 {
		t.Error("two keys of chance are one, or no keys", errA, errB)
	}
	if _, err := sealed.NewKey("no name"); runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
		t.Error(err)
	}
}

func TestUnwrapKeys(t *testing.T) {
	t.Parallel()
	wrapped := func(fill byte) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{fill}, 100)) }
	text := "new=" + wrapped(1) + "\nold=" + wrapped(2) + "\n"
	refused := &runlane.Error{Code: runlane.ErrStorageUnavailable, Message: "out of reach"}
	keys, err := sealed.UnwrapKeys(t.Context(), text, func(_ context.Context, id string, wrapped []byte) ([]byte, error) {
		if len(wrapped) != 100 {
			return nil, fmt.Errorf("%s has %d bytes", id, len(wrapped))
		}
		return bytes.Repeat([]byte{wrapped[0]}, sealed.KeyBytes), nil
	})
	if err != nil || len(keys) != 2 || keys[0].Line() != key(t, "new", 1).Line() || keys[1].Line() != key(t, "old", 2).Line() {
		t.Errorf("%v, %v", keys, err)
	}
	for what, c := range map[string]struct {
		unwrap sealed.Unwrapper
		code   runlane.ErrorCode
	}{
		"an error with a code": {func(context.Context, string, []byte) ([]byte, error) { return nil, refused }, runlane.ErrStorageUnavailable},
		"a foreign error":      {func(context.Context, string, []byte) ([]byte, error) { return nil, errors.New("denied") }, runlane.ErrConfigurationInvalid},
		"another length":       {func(context.Context, string, []byte) ([]byte, error) { return make([]byte, 16), nil }, runlane.ErrConfigurationInvalid},
	} {
		if keys, err := sealed.UnwrapKeys(t.Context(), text, c.unwrap); runlane.CodeOf(err) != c.code || len(keys) != 0 {
			t.Errorf("%s: %v, %v", what, keys, err)
		}
	}
}

// Not parallel: it sets variables.
func TestFromEnv(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(key(t, "of-the-file", 1).Line()), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct{ text, file, printed, fault string }{
		"nothing":           {"", "", "<nil>", ""},
		"keys":              {key(t, "of-the-text", 1).Line(), "", "sealed.Codec(of-the-text)", ""},
		"a file":            {"", file, "sealed.Codec(of-the-file)", ""},
		"both":              {"x", file, "<nil>", "both set"},
		"no file":           {"", file + "x", "<nil>", "cannot be read"},
		"keys that are not": {"x", "", "<nil>", "key 1 has no name"},
		"one name twice":    {key(t, "a", 1).Line() + "," + key(t, "a", 2).Line(), "", "<nil>", "two keys"},
	} {
		t.Setenv(sealed.KeysVariable, c.text)
		t.Setenv(sealed.KeysFileVariable, c.file)
		codec, err := sealed.FromEnv(nil)
		if fmt.Sprint(codec) != c.printed || (err != nil) != (c.fault != "") {
			t.Errorf("%s: %v, %v", what, codec, err)
		}
		if err != nil && (runlane.CodeOf(err) != runlane.ErrConfigurationInvalid || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%s: %v", what, err)
		}
		if err != nil && codec != nil {
			t.Errorf("%s: a codec comes with the error", what)
		}
	}
}
