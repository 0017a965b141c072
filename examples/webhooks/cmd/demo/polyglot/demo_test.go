package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// The demo fails when a run is lost, failed or has another's output, and when a program had no part in it.
func TestAccount_CanFail(t *testing.T) {
	t.Parallel()
	const sound = "demo: 3 runs, 3 succeeded, 0 failed, 0 lost\n"
	for name, row := range map[string]struct {
		ends [3]string // of each run: its status, and who says how many words more than it has
		idle string    // a program that was never killed
		lost int
		last string
		says string
	}{
		"all succeeded":         {[3]string{"succeeded go 0", "succeeded python 0", "succeeded typescript 0"}, "", 0, sound, ""},
		"one is active":         {[3]string{"succeeded go 0", "running python 0", "succeeded typescript 0"}, "", 1, "0 failed, 1 lost\n", "python completed nothing"},
		"one failed":            {[3]string{"failed go 0", "succeeded python 0", "succeeded typescript 0"}, "", 1, "1 failed, 0 lost\n", "go completed nothing"},
		"the output of another": {[3]string{"succeeded go 1", "succeeded python 0", "succeeded typescript 0"}, "", 1, "1 failed, 0 lost\n", "go completed nothing"},
		"a worker was idle":     {[3]string{"succeeded go 0", "succeeded go 0", "succeeded python 0"}, "", 0, sound, "typescript completed nothing"},
		"one was never killed":  {[3]string{"succeeded go 0", "succeeded python 0", "succeeded typescript 0"}, "server", 0, sound, "server was never killed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for n, end := range row.ends {
					if strings.HasSuffix(r.URL.Path, id(n)) {
						var status, by string
						var more int
						_, _ = fmt.Sscan(end, &status, &by, &more)
						_, _ = fmt.Fprintf(w, `{"status":%q,"output":{"words":%d,"by":%q},"counters":{"attempts":1}}`, status, words(n)+more, by)
					}
				}
			}))
			t.Cleanup(served.Close)
			var out strings.Builder
			d := &demo{out: &out, runs: len(row.ends), url: served.URL}
			for _, name := range []string{"go", "python", "typescript", "server"} {
				d.programs = append(d.programs, &program{name: name, kills: 1})
				if name == row.idle {
					d.programs[len(d.programs)-1].kills = 0
				}
			}
			d.server = d.programs[3]
			lost, err := d.account(t.Context(), time.Second)
			said := ""
			if err != nil {
				said = err.Error()
			}
			if lost != row.lost || said != row.says || !strings.HasSuffix(out.String(), row.last) {
				t.Errorf("%d lost, error %q\n%s", lost, said, out.String())
			}
		})
	}
}
