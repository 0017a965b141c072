package core

import (
	"errors"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
)

// FuzzToken gives anything as an answer token: without the key none is valid, and what is valid says what was signed.
func FuzzToken(f *testing.F) {
	key, other := []byte(strings.Repeat("k", 32)), []byte(strings.Repeat("o", 32))
	claims := tokenClaims{Environment: "default", RunID: "run_1", CreatedAt: 1, Name: "approved", ExpiresAt: 2}
	token, err := claims.sign(key)
	if err != nil {
		f.Fatal(err)
	}
	foreign, err := claims.sign(other)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"", "rlt1.", ".", token, foreign, token + ".", token[:len(token)-1], strings.ToUpper(token)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, given string) {
		got, ok := parseToken([][]byte{other, key}, given)
		if ok && given != token && given != foreign {
			t.Fatalf("%q is valid: %+v", given, got)
		}
		if (given == token || given == foreign) && (!ok || *got != claims) {
			t.Fatalf("%q is %+v, %t", given, got, ok)
		}
		if _, ok := parseToken(nil, given); ok {
			t.Fatal("valid without a key")
		}
	})
}

// FuzzTokenKeys gives anything as the variable: every key that is taken is long enough, and nothing else is an error
// than configuration_invalid, without the text.
func FuzzTokenKeys(f *testing.F) {
	for _, seed := range []string{"", ",", "YQ==", strings.Repeat("YWFh", 11), strings.Repeat("YWFh", 11) + ",\n" + strings.Repeat("YmJi", 12)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, given string) {
		keys, err := parseTokenKeys(given)
		if err != nil && !errors.Is(err, runlane.ErrConfigurationInvalid) {
			t.Fatal(err)
		}
		if err := checkTokenKeys(keys); err != nil {
			t.Fatal(err)
		}
	})
}
