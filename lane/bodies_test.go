package lane_test

import (
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

func TestBodyKey_IsOfOneRun_AndNamesIt(t *testing.T) {
	t.Parallel()
	seen := map[string]runlane.RunID{}
	for _, id := range []runlane.RunID{"run_01J8Z", "run_01j8z", "a/b", "a.b", "../..", "a%2fb", "~", "ü"} {
		r := lane.NewReference(time.UnixMilli(1_700_000_000_123), []byte("body"))
		key := r.Key(lane.RunKey{RunID: id})
		if other, twice := seen[strings.ToLower(key)]; twice {
			t.Errorf("%q and %q have the key %s", id, other, key)
		}
		seen[strings.ToLower(key)] = id
		environment, run, ok := lane.ParseBodyKey(key)
		if want := (lane.RunInstance{RunID: id, CreatedAt: time.UnixMilli(r.At).UTC()}); !ok || run != want || environment != "default" {
			t.Errorf("%s is read as %q, %+v, %t", key, environment, run, ok)
		}
	}
	long := lane.NewReference(time.UnixMilli(1), nil).Key(lane.RunKey{RunID: runlane.RunID(strings.Repeat("A", runlane.MaxIDBytes))})
	if _, _, ok := lane.ParseBodyKey(long); ok || len(long) > 700 {
		t.Errorf("a very long id: %s, %t", long, ok)
	}
}

func FuzzBodyKey(f *testing.F) {
	f.Add("default/run_1.j/k0-abc")
	f.Add("%zz/./1-")
	f.Fuzz(func(t *testing.T, key string) {
		environment, run, ok := lane.ParseBodyKey(key)
		if ok && !strings.HasPrefix(lane.BodiesOf(environment, run), lane.BodiesIn(environment)) {
			t.Errorf("%q", key)
		}
	})
}

func FuzzReference(f *testing.F) {
	f.Add(lane.NewReference(time.UnixMilli(1), []byte("body")).Stored())
	f.Add([]byte("\x02{}"))
	f.Fuzz(func(t *testing.T, stored []byte) {
		r, ok := lane.ParseReference(stored)
		if !ok {
			return
		}
		if again, ok := lane.ParseReference(r.Stored()); !ok || again != r {
			t.Errorf("%+v, %+v, %t", r, again, ok)
		}
	})
}
