package main

import (
	"strings"
	"testing"
)

func TestTally_CountsCasesAndNotTheirGroups(t *testing.T) {
	t.Parallel()
	const start = `{"Action":"start","Package":"p"}
{"Action":"run","Test":"TestA"}
{"Action":"run","Test":"TestA/Group"}
{"Action":"run","Test":"TestA/Group/One"}
`
	for name, c := range map[string]struct {
		events string
		want   result
		fault  string
	}{
		"passed": {
			start + `{"Action":"pass","Test":"TestA/Group/One"}
{"Action":"pass","Test":"TestA/Group"}
{"Action":"pass","Test":"TestA"}
{"Action":"pass","Package":"p"}`, result{cases: 1}, "",
		},
		"failed": {
			start + `{"Action":"output","Test":"TestA/Group/One","Output":"broken\n"}
{"Action":"fail","Test":"TestA/Group/One"}
{"Action":"fail","Test":"TestA/Group"}
{"Action":"fail","Test":"TestA"}
{"Action":"fail","Package":"p"}`, result{cases: 1, failures: 1, failed: true, output: "broken\n"}, "1 of 1 cases failed",
		},
		"skipped": {
			start + `{"Action":"skip","Test":"TestA/Group/One"}
{"Action":"pass","Test":"TestA/Group"}
{"Action":"pass","Test":"TestA"}
{"Action":"pass","Package":"p"}`, result{cases: 1, skips: 1}, "1 of 1 cases were skipped",
		},
		"broken off": {
			start + `{"Action":"fail","Package":"p"}`, result{cases: 1, failures: 1, failed: true}, "1 of 1 cases failed",
		},
		"failed outside of any case": {
			start + `{"Action":"pass","Test":"TestA/Group/One"}
{"Action":"fail","Test":"TestA"}
{"Action":"fail","Package":"p"}`, result{cases: 1, failed: true}, "0 of 1 cases failed",
		},
		"nothing": {`{"Action":"pass","Package":"p"}`, result{}, "there were no cases"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tally(strings.NewReader(c.events))
			if err != nil || *got != c.want {
				t.Errorf("got %+v, %v, want %+v", *got, err, c.want)
			}
			fault := ""
			if err := got.fault(); err != nil {
				fault = err.Error()
			}
			if fault != c.fault {
				t.Errorf("fault %q, want %q", fault, c.fault)
			}
		})
	}
	if _, err := tally(strings.NewReader("no JSON")); err == nil {
		t.Error("what is no JSON is no success")
	}
}
