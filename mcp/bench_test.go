package mcp_test

import "testing"

// BenchmarkCall is a tool that finds one run, called over HTTP.
func BenchmarkCall(b *testing.B) {
	client := newWorld(b, nil, nil).overHTTP(b)
	for b.Loop() {
		if text, result := call(b, client, "get", map[string]any{"run": "ended"}); result.IsError {
			b.Fatal(text)
		}
	}
}
