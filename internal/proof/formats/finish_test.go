package formats_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/sqstransport"
)

// Today's code reads what every recording has, tells the same of it as the version that made it, and brings its runs to their ends, also
// where the wakeup that was sent is lost.
func TestRecordings_TodaysCodeReadsProjectsAndFinishesEach(t *testing.T) {
	t.Parallel()
	for _, name := range recordings(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := loadRecording(t, name)
			w := openWorld(t, r.At, r.Items)
			for i := 0; i < len(r.Messages); i += 2 {
				w.mailbox.put(r.Messages[i : i+1])
			}
			w.tellsTheSame(r)
			w.finishes(r)
			w.removes()
		})
	}
}

// tellsTheSame compares what is read with what was recorded. What was recorded has to be there; there may be more.
func (w *world) tellsTheSame(r *recording) {
	w.Helper()
	ctx := w.Context()
	listed := map[runlane.RunID]bool{}
	for summary, err := range w.rt.Runs().All(ctx, nil) {
		if err != nil {
			w.Fatal(err)
		}
		listed[summary.ID] = true
	}
	for i := range r.Lives {
		l := &r.Lives[i]
		id := l.id(w)
		run := w.get(id)
		w.has(string(id), l.Run, encodeJSON(w, run))
		events := w.history(id)
		if len(events) != len(l.Events) {
			w.Errorf("%s has %d events, recorded were %d", id, len(events), len(l.Events))
			continue
		}
		for n, recorded := range l.Events {
			w.has(string(id), recorded, encodeJSON(w, events[n]))
		}
		if !listed[id] {
			w.Errorf("%s is not listed", id)
		}
		explained, err := w.rt.Runs().Explain(ctx, id)
		if err != nil || !slices.Contains(core.Waits(), explained.Wait) || (explained.Wait == core.WaitNone) != run.Status.Terminal() {
			w.Errorf("%s is %s and explained by %+v, %v", id, run.Status, explained, err)
		}
		if l.Ends != "" {
			w.projects(l)
		}
	}
	w.sound()
}

// has reports what a recorded object has and the one of today has not.
func (w *world) has(what string, recorded json.RawMessage, today string) {
	w.Helper()
	var was, is any
	decodeJSON(w, string(recorded), &was)
	decodeJSON(w, today, &is)
	if fault := lacks(was, is, ""); fault != "" {
		w.Errorf("%s: %s", what, fault)
	}
}

// lacks names the first thing that is in one value and not the same in the other. Objects may have more fields.
func lacks(was, is any, path string) string {
	object, ok := was.(map[string]any)
	if !ok {
		if !reflect.DeepEqual(was, is) {
			return strings.TrimPrefix(path, ".") + " is not as it was recorded"
		}
		return ""
	}
	other, ok := is.(map[string]any)
	if !ok {
		return strings.TrimPrefix(path, ".") + " is no object"
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if fault := lacks(object[name], other[name], path+"."+name); fault != "" {
			return fault
		}
	}
	return ""
}

// folds compares a stored run with its stored history.
func (w *world) folds(id runlane.RunID) {
	w.Helper()
	violations, err := lanetest.CheckFold(w.Context(), w.store, w.key(id))
	if err != nil || len(violations) > 0 {
		w.Errorf("%s: %+v, %v", id, violations, err)
	}
}

// projects folds the recorded history by itself, as a program that kept the events alone would. Payload and output stand beside events.
func (w *world) projects(l *life) {
	w.Helper()
	var events []runlane.Event
	for _, raw := range l.Events {
		var e runlane.EventRecord
		decodeJSON(w, string(raw), &e)
		events = append(events, e.Event)
	}
	projected, err := core.ProjectRunEvents(nil, 0, events...)
	if err != nil {
		w.Errorf("%s: %v", l.id(w), err)
		return
	}
	var recorded map[string]json.RawMessage
	decodeJSON(w, string(l.Run), &recorded)
	delete(recorded, "payload")
	delete(recorded, "output")
	w.has("the recorded history of "+string(projected.ID), json.RawMessage(encodeJSON(w, recorded)), encodeJSON(w, projected))
}

// sound asks the storage's own checker.
func (w *world) sound() {
	w.Helper()
	q := &lane.PageQuery{Environment: environment, Limit: runlane.MaxPageLimit}
	for {
		page, err := w.store.Check(w.Context(), q)
		if err != nil {
			w.Fatal(err)
		}
		for _, v := range page.Items {
			w.Errorf("%s: %s: %s", v.RunID, v.Rule, v.Detail)
		}
		if q.After = page.Next; q.After == "" {
			return
		}
	}
}

// turn lets time pass, ticks, and hands over what has arrived. The next turn is the other program's, where there is one.
func (w *world) turn(d time.Duration) {
	w.Helper()
	if w.other != nil {
		w.rt, w.other = w.other, w.rt
	}
	w.pass(d)
	w.tick()
	for list := w.mailbox.arrived(); len(list) > 0; list = w.mailbox.arrived() {
		for _, m := range list {
			wakeup, err := sqstransport.ParseMessage(m.Body)
			if err != nil {
				w.Errorf("%s: %v", m.Body, err)
				continue
			}
			if _, err := w.rt.ExecuteDelivery(w.Context(), wakeup, &core.DeliveryOptions{WorkerID: "today"}); err != nil {
				w.Errorf("%s: %v", m.Body, err)
			}
		}
	}
}

// turns are longer and longer: at first what is due, then what waits for an hour, or for a lease of two.
var turns = []time.Duration{0, time.Minute, 10 * time.Minute, 55 * time.Minute, time.Minute, time.Hour, time.Minute, time.Hour}

// finishes brings every recorded run to its end, and operators do their part.
func (w *world) finishes(r *recording) {
	w.Helper()
	letters, err := w.rt.DeadLetters().List(w.Context(), nil)
	if err != nil || len(letters.Items) != 1 {
		w.Fatalf("%+v, %v", letters, err)
	}
	if err := w.rt.DeadLetters().Requeue(w.Context(), letters.Items[0].RunID, nil); err != nil {
		w.Fatal(err)
	}
	for _, run := range w.runs(r) {
		if run.Waiting.Timed() {
			continue
		}
		if _, err := w.rt.Runs().Resume(w.Context(), run.ID, nil); err != nil {
			w.Fatal(err)
		}
	}
	var waiting []runlane.RunID
	for _, d := range turns {
		w.turn(d)
		if waiting = w.active(r); len(waiting) == 0 {
			break
		}
	}
	for _, id := range waiting {
		explained, err := w.rt.Runs().Explain(w.Context(), id)
		w.Errorf("%s has not ended: %+v, %v", id, explained, err)
	}
	for i, run := range w.runs(r) {
		l := &r.Lives[i]
		if l.Ends == "" {
			continue
		}
		if run.Status != l.Ends {
			w.Errorf("%s is %s, want %s", run.ID, run.Status, l.Ends)
		}
		if run.EventSequence > int64(len(l.Events)) {
			w.folds(run.ID)
		}
	}
	w.occurrencesCompleted(r)
	w.sound()
}

func (w *world) active(r *recording) (ids []runlane.RunID) {
	w.Helper()
	for _, run := range w.runs(r) {
		if run.Status.Active() {
			ids = append(ids, run.ID)
		}
	}
	return ids
}

// runs are those of the recording's lives, in their order, without payloads.
func (w *world) runs(r *recording) []*runlane.Run {
	w.Helper()
	q := &lane.RunsQuery{Environment: environment, WithoutPayload: true}
	for i := range r.Lives {
		q.IDs = append(q.IDs, r.Lives[i].id(w))
	}
	runs, err := w.store.GetRuns(w.Context(), q)
	if err != nil || len(runs) != len(q.IDs) {
		w.Fatalf("%d of %d runs: %v", len(runs), len(q.IDs), err)
	}
	return runs
}

// occurrencesCompleted holds that what a dead tick had left behind was made once, and that no record went back.
func (w *world) occurrencesCompleted(r *recording) {
	w.Helper()
	for _, it := range r.Items {
		switch parts := strings.Split(text(it["pk"]), ":"); kindOf(it) {
		case "sched":
			found := false
			for o, err := range w.rt.Schedules().Occurrences(w.Context(), runlane.ScheduleID(parts[2]), false) {
				if err != nil {
					w.Fatal(err)
				}
				first := digitsOf(o.FireTime)
				if o.Count > 1 { // several that were skipped as one: the first of them was claimed, too
					first = digitsOf(o.First)
				}
				found = found || first <= text(it["sk"]) && text(it["sk"]) <= digitsOf(o.FireTime)
			}
			if !found {
				w.Errorf("occurrence %s of %s was not completed", text(it["sk"]), parts[2])
			}
		case "schedule":
			state, err := w.rt.Schedules().Get(w.Context(), runlane.ScheduleID(text(it["sk"])))
			if err != nil || state.Paused == (it["pa"] == nil) || !state.Paused && digitsOf(state.LastFire) <= digits(it["lf"]) {
				w.Errorf("schedule %s is %+v, %v", text(it["sk"]), state, err)
			}
		}
	}
}

func digitsOf(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return strconv.FormatInt(at.UnixMilli(), 10)
}

// removes ends what the schedules made meanwhile and prunes everything: nothing of any run is left.
func (w *world) removes() {
	w.Helper()
	for {
		result, err := w.rt.Runs().CancelAll(w.Context(), &core.BulkOptions{AllRuns: true})
		if err != nil {
			w.Fatal(err)
		}
		if result.Next == "" {
			break
		}
	}
	w.pass(time.Hour)
	o := &core.PruneOptions{OlderThan: time.Second, ReleaseOwners: true, Limit: runlane.MaxPageLimit}
	for {
		result, err := w.rt.Runs().Prune(w.Context(), o)
		if err != nil {
			w.Fatal(err)
		}
		if o.After = result.Next; o.After == "" {
			break
		}
	}
	for _, it := range w.items() {
		if kind := kindOf(it); kind == "run" || strings.HasPrefix(kind, "run ") || kind == "slot" || kind == "single" || kind == "idem" {
			w.Errorf("%s is left", keyOf(it))
		}
	}
}
