package awstest

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

type accepts struct{ bodies []string }

func (a *accepts) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	a.bodies = append(a.bodies, string(body))
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, err
}

func TestSameBytes_FindsARequestThatChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		operation string
		bodies    []string
		fault     bool
		resent    int
	}{
		"the same":          {"TransactWriteItems", []string{`{"ClientRequestToken":"a","b":1}`, `{"ClientRequestToken":"a","b":1}`}, false, 1},
		"another order":     {"TransactWriteItems", []string{`{"ClientRequestToken":"a","b":1}`, `{"b":1,"ClientRequestToken":"a"}`}, true, 1},
		"changed back":      {"TransactWriteItems", []string{`{"ClientRequestToken":"a"}`, `{"ClientRequestToken":"a" }`, `{"ClientRequestToken":"a"}`}, true, 2},
		"another token":     {"TransactWriteItems", []string{`{"ClientRequestToken":"a"}`, `{"ClientRequestToken":"c"}`}, false, 0},
		"no token":          {"TransactWriteItems", []string{`{"b":1}`, `{"b":2}`}, false, 0},
		"another operation": {"UpdateItem", []string{`{"ClientRequestToken":"a","b":1}`, `{"ClientRequestToken":"a","b":2}`}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			below := &accepts{}
			client := &SameBytes{below: below, sums: map[string][32]byte{}}
			for _, body := range c.bodies {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://wire.invalid", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+c.operation)
				answer, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				if err := answer.Body.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if got := client.Fault(); (got != "") != c.fault || client.Resent() != c.resent {
				t.Errorf("%d sent again, fault %q", client.Resent(), got)
			}
			if strings.Join(below.bodies, " ") != strings.Join(c.bodies, " ") {
				t.Errorf("sent %q", below.bodies)
			}
		})
	}
}
