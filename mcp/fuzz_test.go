package mcp

import (
	"strings"
	"testing"
)

// FuzzRequest: whatever a model sends stays below the path of its tool, and whatever a resource is called below runs.
func FuzzRequest(f *testing.F) {
	f.Add(`{"run":"../../metrics?x=1"}`, "runlane://runs/a%2Fb/events")
	f.Add(`{"run":{"a":1},"wait":"1s","x":[null]}`, "runlane://runs/..")
	f.Add(`{"run":"{queue}","queue":"x"}`, "runlane://runs/%2e%2e/events")
	operations, err := describe("")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, arguments, uri string) {
		for name, o := range operations {
			path, _, body, fault := o.request([]byte(arguments))
			if fault != "" {
				continue
			}
			if strings.Count(path, "/") != strings.Count(o.path, "/") || strings.ContainsAny(path, "?#{") {
				t.Errorf("%s: %s", name, path)
			}
			if (body != nil) != o.body {
				t.Errorf("%s: body %s", name, body)
			}
		}
		if path, ok := runPath(uri); ok && (!strings.HasPrefix(path, "/v1/runs/") || strings.ContainsAny(path, "?#")) {
			t.Errorf("%s: %s", uri, path)
		}
	})
}
