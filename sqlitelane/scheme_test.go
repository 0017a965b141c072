package sqlitelane_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane"
)

func TestScheme_OpensTheFile(t *testing.T) {
	t.Parallel()
	for _, options := range []string{"", "?sync=normal", "?sync=full", "?ordered=mail,orders", "?sync=full&ordered=mail", "?"} {
		path := filepath.Join(t.TempDir(), "state.db")
		l, err := lane.Open(t.Context(), "sqlite:"+path+options, sqlitelane.Scheme)
		if err != nil || l.Name != "sqlite" || l.Transport.Capabilities().OrderedDelivery != strings.Contains(options, "ordered") {
			t.Errorf("%s: %+v, %v", options, l, err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

func TestScheme_NamesThatAreNone_AreRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for rest, says := range map[string]string{
		"":                                "no path",
		"?sync=normal":                    "no path",
		"//host/state.db":                 "is a URL",
		":memory:":                        "needs a file",
		folder + "/a?mode=ro":             `unknown option "mode"`,
		folder + "/a?sync=off":            `"off"`,
		folder + "/a?sync=":               `""`,
		folder + "/a?sync=full&sync=off":  `"full,off"`,
		folder + "/a?ordered=":            "names queues once",
		folder + "/a?ordered=a&ordered=b": "names queues once",
		folder + "/a?ordered=a,b:c":       "Ordered has a bad name",
		folder + "/a?%zz":                 "cannot be read",
		"a\x00b":                          "zero byte",
	} {
		l, err := lane.Open(t.Context(), "sqlite:"+rest, sqlitelane.Scheme)
		if l != nil || runlane.CodeOf(err) != runlane.ErrConfigurationInvalid || !strings.Contains(err.Error(), says) {
			t.Errorf("sqlite:%s: %v", rest, err)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("made %v, %v", left, err)
	}
}

// What is read from a name is what it says.
func FuzzSchemeName(f *testing.F) {
	for _, seed := range []string{"a", "a?sync=normal", "?", "a?sync=full&sync=full", "//a", "a?%zz", "a?ordered=b,c", "a?ordered=&ordered"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, rest string) {
		path, options, err := sqlitelane.ParseName(rest)
		if err != nil {
			if runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
				t.Errorf("%q: %v", rest, err)
			}
			return
		}
		if path == "" || !strings.HasPrefix(rest, path) || options == nil || strings.Contains(path, "?") {
			t.Errorf("%q: path %q, options %+v", rest, path, options)
		}
	})
}
