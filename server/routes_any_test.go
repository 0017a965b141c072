package server_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/runlane/runlane-go/server"
)

// Whatever is asked, the answer is one that openapi.json names, and no fault of the server.
func TestRoutes_AnyInput_IsNoFaultOfTheServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, anyInput) // a claim waits for a run as long as it may
}

func anyInput(t *testing.T) {
	w := furnished(t)
	bodies := []string{"", "{}", "[]", "null", `"x"`, "{", "1e999", `{"runs":null}`, `{"task":"\u0000"}`, `{"payload":`, `{"all":true,"after":"x"}`, `{"olderThan":"-1s"}`}
	for _, line := range server.Lines() {
		path := strings.NewReplacer("{run}", "%F0%9F%98%80", "{schedule}", "%00", "{queue}", strings.Repeat("q", 300), "{task}", "%C3", "{flow}", "%2F..").Replace(line.Path)
		for _, body := range bodies {
			queries := []string{"", "?%zz", "?a=b"}
			for _, name := range line.Queries {
				queries = append(queries, "?"+name+"=", "?"+name+"=-1", "?"+name+"=%FF%00", "?"+name+"=9999999999999999999999", "?"+name+"=x&"+name+"=y")
			}
			for _, query := range queries {
				if line.Name == "streamEvents" && query == "" && body == "" {
					continue // of all runs: it does not end, and TestStream_OfAllRuns asks for it
				}
				if got := w.ask(t, line.Method, path+query, body); got.status >= 500 {
					t.Errorf("%s %s%s %s: %d %s", line.Method, path, query, body, got.status, got.text)
				}
			}
		}
	}
}
