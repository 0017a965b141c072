package cli

import (
	"bytes"
	"testing"
)

// Runs that a worker has are no runs that wait for the next one, as far as a drain can tell.
func TestSayLeft_CountsLeases(t *testing.T) {
	t.Parallel()
	for want, left := range map[string]workLeft{
		"stopped; 3 runs left for the next worker\n":                                                      {Waiting: 3},
		"stopped; 3 runs left for the next worker (1 with the lease of a worker that executes or died)\n": {Waiting: 3, Leased: 1},
		"stopped; at least 1 run left for the next worker (1 with the lease of a worker that executes or died)\n": {
			Waiting: 1, Leased: 1, AtLeast: true,
		},
	} {
		var news bytes.Buffer
		newSession(nil, &Options{Args: []string{}, Stderr: &news}).sayLeft(&left)
		if news.String() != want {
			t.Errorf("%q, want %q", news.String(), want)
		}
	}
}
