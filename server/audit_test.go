package server_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/server"
)

// described is an operation of openapi.json.
type described struct {
	method, path string

	Name  string       `json:"operationId"`
	Scope server.Scope `json:"x-runlane-scope"`
}

// changesOf are the operations of openapi.json that are no GET.
func (w *world) changesOf(t *testing.T) []described {
	t.Helper()
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal([]byte(w.ask(t, "GET", "/openapi.json", "").text), &document); err != nil {
		t.Fatal(err)
	}
	var found []described
	for path, methods := range document.Paths {
		for method, text := range methods {
			o := described{method: strings.ToUpper(method), path: path}
			if o.method == "GET" || o.method == "PARAMETERS" {
				continue
			}
			if err := json.Unmarshal(text, &o); err != nil {
				t.Fatal(err)
			}
			found = append(found, o)
		}
	}
	return found
}

// auditOf are the audit lines of an operation.
func (w *world) auditOf(t *testing.T, operation string) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(w.log.String()) {
		var said map[string]any
		if err := json.Unmarshal([]byte(line), &said); err != nil {
			t.Fatal(err)
		}
		if said["msg"] == "runlane: a change by HTTP" && said["operation"] == operation {
			lines = append(lines, said)
		}
	}
	return lines
}

// eventsByRun are all events that are stored.
func (w *world) eventsByRun(t *testing.T) map[runlane.RunID][]runlane.Event {
	t.Helper()
	page, err := w.Runs().List(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	events := map[runlane.RunID][]runlane.Event{}
	for _, run := range page.Items {
		for record, err := range w.Runs().Events(t.Context(), run.ID, nil) {
			if err != nil {
				t.Fatal(err)
			}
			events[run.ID] = append(events[run.ID], record.Event)
		}
	}
	return events
}

// consequences are operations after which the runtime writes events that no caller asked for: runs that a call makes, and nodes
// that end with the flow.
var consequences = []string{"callRuns", "cancelFlow"}

// ofNoRun are changes that name no run, flow or schedule: they are about many, about a key, or about the environment.
var ofNoRun = []string{
	"triggerBatch", "resetKey", "tick", "doctor", "pauseQueue", "resumeQueue", "pauseTask", "resumeTask",
	"cancelAll", "resumeAll", "retryAll", "rerunAll", "requeueAll", "pruneRuns",
}

// Each operation of openapi.json that is no GET leaves one audit line: who, what, on which run, flow or schedule, with which
// outcome. One that only reads leaves none. The events that it stores have the caller as their actor.
func TestAudit_EachChangeOfTheDescription(t *testing.T) {
	t.Parallel()
	changes := furnished(t).changesOf(t)
	if len(changes) < 30 {
		t.Fatalf("the description has %d changes", len(changes))
	}
	for _, o := range changes {
		t.Run(o.Name, func(t *testing.T) {
			t.Parallel()
			w := furnished(t)
			at := slices.IndexFunc(server.Lines(), func(l server.Line) bool { return l.Name == o.Name })
			asked := w.sound(t, server.Lines()[at])
			before, told := w.eventsByRun(t), len(w.auditOf(t, o.Name))
			got := w.ask(t, o.method, asked.path, asked.body)
			lines := w.auditOf(t, o.Name)[told:]
			if o.Scope == server.ScopeRead {
				if len(lines) > 0 {
					t.Errorf("what only reads leaves %v", lines)
				}
				return
			}
			if len(lines) != 1 {
				t.Fatalf("%d audit lines: %v", len(lines), lines)
			}
			o.judge(t, lines[0], asked.path, got)
			byCaller := 0
			for id, events := range w.eventsByRun(t) {
				for _, e := range events[len(before[id]):] {
					if caller, _, _ := strings.Cut(e.Actor.ID, "/"); caller == "ada" {
						byCaller++
					} else if !slices.Contains(consequences, o.Name) || e.Actor != runlane.SystemActor {
						t.Errorf("%s of %s is by %+v", e.Type(), id, e.Actor)
					}
				}
			}
			if slices.Contains(consequences, o.Name) && byCaller == 0 {
				t.Error("no event is by the caller")
			}
		})
	}
}

// judge looks at what an audit line says of a request and its answer.
func (o *described) judge(t *testing.T, line map[string]any, asked string, got *answer) {
	t.Helper()
	want := map[string]any{"actor": "ada", "code": "done"}
	if got.status >= 400 {
		want["code"] = got.field(t, "code")
	}
	segments := strings.Split(asked, "/")
	for i, part := range strings.Split(o.path, "/") {
		key := map[string]string{"{run}": "run_id", "{flow}": "flow", "{schedule}": "schedule"}[part]
		if key != "" {
			want[key] = segments[i]
		}
	}
	for key, value := range want {
		if line[key] != value {
			t.Errorf("%s is %v, want %v", key, line[key], value)
		}
	}
	subject := line["run_id"] != nil || line["flow"] != nil || line["schedule"] != nil
	if subject == slices.Contains(ofNoRun, o.Name) {
		t.Errorf("the line names a run, flow or schedule: %v: %v", subject, line)
	}
}

// A line says what was tried, also where it came to nothing, and of what was made beside what it was made from.
func TestAudit_SaysWhatWasTried(t *testing.T) {
	t.Parallel()
	w := furnished(t)
	last := func(operation, want string) {
		t.Helper()
		lines := w.auditOf(t, operation)
		if len(lines) == 0 {
			t.Fatalf("%s has no line", operation)
		}
		line := lines[len(lines)-1]
		for _, key := range []string{"time", "level", "msg", "operation"} {
			delete(line, key)
		}
		text, err := json.Marshal(line)
		if err != nil || string(text) != want {
			t.Errorf("%s: %s, want %s (%v)", operation, text, want, err)
		}
	}
	w.ask(t, "POST", "/v1/runs/none/cancel", "").want(t, 404)
	last("cancelRun", `{"actor":"ada","code":"run_not_found","run_id":"none"}`)
	w.ask(t, "POST", "/v1/runs/waits/cancel", "", "Scopes: read").want(t, 403)
	last("cancelRun", `{"actor":"ada","code":"forbidden","run_id":"waits"}`)
	made, _ := w.ask(t, "POST", "/v1/runs/failed/retry", "").field(t, "madeRunId").(string)
	last("retryRun", `{"actor":"ada","code":"done","made_run_id":"`+made+`","run_id":"failed"}`)
	w.ask(t, "POST", "/v1/schedules/none/pause", "").want(t, 404)
	last("pauseSchedule", `{"actor":"ada","code":"schedule_not_found","schedule":"none"}`)
	w.ask(t, "POST", "/v1/queues/emails/pause", "").want(t, 200)
	last("pauseQueue", `{"actor":"ada","code":"done","queue":"emails"}`)
	w.ask(t, "POST", "/v1/tasks/none/resume", "").want(t, 409)
	last("resumeTask", `{"actor":"ada","code":"validation_failed","task":"none"}`)
	w.ask(t, "POST", "/v1/flows/"+strings.Repeat("f", 5000)+"/cancel", "").want(t, 400)
	last("cancelFlow", `{"actor":"ada","code":"validation_failed","flow":"`+strings.Repeat("f", 100)+`…"}`)
	w.lend(t, true)
	w.ask(t, "POST", "/v1/work/complete", `{"token":"`+w.claim+`"}`).want(t, 200)
	w.ask(t, "POST", "/v1/work/complete", `{"token":"`+w.claim+`"}`).want(t, 409)
	last("completeRun", `{"actor":"ada","code":"storage_conflict","run_id":"lent"}`)
}
