package server_test

import (
	"net/http"
	"runtime"
	"strings"
	"testing"
)

// A list that is too long is refused before memory is taken for its elements, under each way to write its name; a
// payload may be a list of any length.
func TestLists_ThatAreTooLong_TakeNoMemory(t *testing.T) { // not parallel: what other tests use would count
	w := newWorld(t, nil)
	long := "[{}" + strings.Repeat(",{}", 2_000_000) + "]"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, name := range []string{"runs", "RUNS", `r\u0075ns`} {
		w.ask(t, http.MethodPost, "/v1/batch", `{"`+name+`":`+long+`}`).want(t, 400, "has more than 10000 elements")
	}
	runtime.ReadMemStats(&after)
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 200 {
		t.Errorf("three bodies of 6 MB took %d MB", used)
	}
	numbers := "[1" + strings.Repeat(",1", 20_000) + "]"
	for _, name := range []string{"payload", "Payload"} {
		w.ask(t, http.MethodPost, "/v1/runs", `{"task":"mail.welcome","`+name+`":`+numbers+`}`).want(t, 201)
	}
	w.ask(t, http.MethodPost, "/v1/batch", `{"runs":[{"task":"mail.welcome","payload":`+numbers+`}]}`).want(t, 200)
}
