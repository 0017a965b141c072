package embedded

import "testing"

// FuzzEventIDs gives ids of events that never were: an id has one spelling.
func FuzzEventIDs(f *testing.F) {
	for _, id := range []string{"run_1:2", "run_1:+2", "::-9223372036854775808", ""} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		if run, sequence, ok := ParseEventID(id); ok {
			if again := EventID(run, sequence); again != id {
				t.Fatalf("%q is read as %q", id, again)
			}
		}
	})
}
