package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/sealed"
)

// encrypt gives the program a codec with keys of these names, the first one first; without any it has none.
func (w *world) encrypt(t *testing.T, names string) {
	t.Helper()
	w.codec = nil
	var keys []sealed.Key
	for _, name := range strings.Fields(names) {
		key, err := sealed.KeyOf(name, bytes.Repeat([]byte(name), sealed.KeyBytes)[:sealed.KeyBytes])
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return
	}
	codec, err := sealed.New(keys, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.codec = codec
}
