package sealed_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
)

// What the first version encrypted is opened by every later one: runs wait for months.
func TestDecode_BytesOfTheFirstVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of            runlane.BodyRef
		stored, plain string
	}{
		{
			runlane.BodyRef{Environment: "production", RunID: "run_1", TaskID: "mail.send"},
			"0127d7b8525066d39fedfd586ef7e0aa0d56f31fcd07db1d9f482fd96b214c0349e0ad1ff227a057ce",
			`{"to":"u_1"}`,
		},
		{
			runlane.BodyRef{Environment: "production", RunID: "run_1", Output: true},
			"0280466c9af46d25a24a1c5bdf620144d35d522e971d32cabd099c79cdc80270443f7c76ef9d9659565d5ee8a533619ba656",
			`"` + strings.Repeat("ab", 100) + `"`,
		},
	} {
		stored, err := hex.DecodeString(c.stored)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := codec(t, nil, key(t, "2026-11", 7)).Decode(t.Context(), c.of, "2026-11", stored)
		if err != nil || string(plain) != c.plain {
			t.Errorf("%+v is %q, %v", c.of, plain, err)
		}
	}
}
