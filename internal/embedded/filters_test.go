package embedded

import "testing"

// FuzzEventIDs gives ids of events that never were: what is read as one is written as one.
func FuzzEventIDs(f *testing.F) {
	for _, id := range []string{"run_1:2", "run_1:+2", "::-9223372036854775808", ""} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		if run, sequence, ok := ParseEventID(id); ok {
			if again, n, ok := ParseEventID(EventID(run, sequence)); !ok || again != run || n != sequence {
				t.Fatalf("%q is read as %q and %d", id, run, sequence)
			}
		}
	})
}
