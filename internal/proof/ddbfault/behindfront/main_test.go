package main

import (
	"slices"
	"testing"
)

func TestEnvironment_NamesTheFrontAlone(t *testing.T) {
	t.Parallel()
	own := []string{"A=b", "AWS_ENDPOINT_URL=http://127.0.0.1:1", "AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:2", "RUNLANE_LOCAL_DYNAMODB=http://127.0.0.1:3"}
	want := []string{"A=b", "AWS_ENDPOINT_URL=http://127.0.0.1:1", "AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:4"}
	if got := environment(own, "http://127.0.0.1:4"); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}
