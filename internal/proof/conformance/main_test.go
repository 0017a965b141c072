package main

import (
	"slices"
	"testing"
)

func TestNamed_TestsOnlyEndpointsThatAreGiven(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  []string
		want []string
	}{
		"both by one":   {[]string{"AWS_ENDPOINT_URL"}, []string{"DynamoDB", "SQS"}},
		"DynamoDB only": {[]string{"AWS_ENDPOINT_URL_DYNAMODB"}, []string{"DynamoDB"}},
		"SQS only":      {[]string{"AWS_ENDPOINT_URL_SQS"}, []string{"SQS"}},
		"none":          {nil, nil},
	} {
		suites, err := named(endpoints, func(variable string) string {
			if slices.Contains(c.set, variable) {
				return "http://127.0.0.1:1"
			}
			return ""
		})
		var got []string
		for _, s := range suites {
			got = append(got, s.name)
		}
		if !slices.Equal(got, c.want) || (err == nil) != (c.want != nil) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
