package server_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lanetest"
)

// No index has the runs of a schedule in another queue: the only one is behind more than a page looks at.
func TestListRuns_ReadsBehindEmptyPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	f, made := lanetest.NewFactory(runlane.DefaultEnvironment), time.Now()
	for i := range 2500 {
		o := lanetest.RunOptions{NoDelivery: true, ID: runlane.RunID(fmt.Sprintf("nightly_%04d", i)), Source: runlane.Source{
			Type: runlane.SourceSchedule, ScheduleID: "nightly", FireTime: made.Add(time.Duration(i) * time.Minute),
		}}
		if i == 2499 {
			o.Queue = "other"
		}
		if _, err := w.Lane().Storage.AppendRunEvents(t.Context(), f.Creation(t, made, o)); err != nil {
			t.Fatal(err)
		}
	}
	w.ask(t, http.MethodGet, "/v1/runs?schedule=nightly&queue=other", "").want(t, 200, "nightly_2499")
}

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
