package sealed_test

import (
	"bytes"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/sealed"
)

// Whatever is stored, it is opened as it was given or it is unreadable: nothing panics, and nothing that was not encrypted here opens.
func FuzzDecode(f *testing.F) {
	c := codec(f, nil, key(f, "k", 1), key(f, "old", 2))
	genuine := map[string]bool{} // by what was encrypted: the bytes are others in each process that fuzzes
	for _, plain := range []string{"1", `{"a":1}`, `"` + string(bytes.Repeat([]byte("ab"), 100)) + `"`} {
		stored, id := encode(f, c, place, []byte(plain))
		genuine[plain] = true
		f.Add(id, stored)
		f.Add("old", stored)
		f.Add(id, stored[:len(stored)-1])
	}
	f.Add("", []byte(`{"plain":true}`))
	f.Add("k", []byte{2})
	f.Fuzz(func(t *testing.T, id string, stored []byte) {
		plain, err := c.Decode(t.Context(), place, id, stored)
		switch {
		case id == "":
			if err != nil || !bytes.Equal(plain, stored) {
				t.Errorf("plain bytes: %v", err)
			}
		case err == nil:
			if !genuine[string(plain)] || id != "k" {
				t.Errorf("%x opened with key %q", stored, id)
			}
		case runlane.CodeOf(err) != runlane.ErrPayloadUnreadable || plain != nil:
			t.Errorf("%d bytes, %v", len(plain), err)
		}
	})
}

// Keys that are read are read again from their own lines, and make a codec unless two have one name.
func FuzzParseKeys(f *testing.F) {
	f.Add(key(f, "a", 1).Line())
	f.Add("# comment\n" + key(f, "a", 1).Line() + "\n" + key(f, "b", 2).Line())
	f.Add("a=,=,b")
	f.Add("a=\x00")
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := sealed.ParseKeys(text)
		if err != nil {
			if runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
				t.Error(err)
			}
			return
		}
		names, lines := map[string]bool{}, ""
		for _, k := range keys {
			names[k.ID()] = true
			lines += k.Line() + "\n"
		}
		again, err := sealed.ParseKeys(lines)
		if err != nil || len(again) != len(keys) {
			t.Fatalf("%d keys are read again as %d, %v", len(keys), len(again), err)
		}
		for i := range keys {
			if again[i].Line() != keys[i].Line() {
				t.Errorf("key %d is another", i)
			}
		}
		if _, err := sealed.New(keys, nil); (err == nil) != (len(names) == len(keys)) {
			t.Error(err)
		}
	})
}
