package formats_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/sqstransport"
)

// beyond is the number of a format that no program knows yet.
var beyond = &types.AttributeValueMemberN{Value: "1000"}

func (w *world) item(pk, sk string) item {
	w.Helper()
	out, err := w.client.GetItem(w.Context(), &dynamodb.GetItemInput{
		TableName: &w.table, ConsistentRead: aws.Bool(true),
		Key: item{"pk": &types.AttributeValueMemberS{Value: pk}, "sk": &types.AttributeValueMemberS{Value: sk}},
	})
	if err != nil || len(out.Item) == 0 {
		w.Fatalf("%s %s: %v, %v", pk, sk, out, err)
	}
	return out.Item
}

// runItem is a run's item.
func (w *world) runItem(id runlane.RunID) item {
	w.Helper()
	return w.item(string(environment)+":run:"+string(id), "run")
}

// rewrite writes a run's item as a newer program would.
func (w *world) rewrite(id runlane.RunID, parts item) {
	w.Helper()
	it := maps.Clone(w.runItem(id))
	maps.Copy(it, parts)
	w.load([]item{it})
}

// reopened is another process on the same table: it has read nothing yet.
func (w *world) reopened() *world {
	w.Helper()
	other := openWorld(w.TB, w.now(), w.items())
	other.mailbox.put(w.mailbox.arrived())
	return other
}

// refused reports a call that did not say that a newer program wrote what it is about.
func (w *world) refused(what string, err error) {
	w.Helper()
	e, ok := errors.AsType[*runlane.Error](err)
	if !ok || e.Code != runlane.ErrInvariantViolation || e.Retryable || !strings.Contains(e.Hint, "update this program") {
		w.Errorf("%s: %v", what, err)
	}
}

// A program that meets runs of a format beyond its own, or in a status that it does not know, says so and leaves them exactly as they
// are, however much time passes; its other runs go on.
func TestNewer_RunsOfAFormatBeyond_AreLeftAlone(t *testing.T) {
	t.Parallel()
	w := openWorld(t, started, nil)
	for _, id := range []runlane.RunID{"run_newer", "run_newer_due", "run_newer_leased", "run_newer_done", "run_paused", "run_ours", "run_newer_slot"} {
		o := &runlane.TriggerOptions{IdempotencyKey: string(id), Deferred: id == "run_newer_due"}
		task := report
		if id == "run_newer_slot" {
			task = importing
		}
		w.trigger(task.With(payload(`{}`)), id, o)
	}
	w.claim("run_newer_leased", time.Minute, runlane.DefaultQueue)
	w.deliver("run_newer_done", nil)
	newer := []runlane.RunID{"run_newer", "run_newer_due", "run_newer_leased", "run_newer_done", "run_newer_slot"}
	for _, id := range newer {
		w.rewrite(id, item{"v": beyond})
	}
	w.rewrite("run_paused", item{"st": &types.AttributeValueMemberS{Value: "paused"}})

	w = w.reopened()
	untouched := append(slices.Clone(newer), "run_paused")
	before := map[runlane.RunID]string{}
	for _, id := range untouched {
		before[id] = encodeItem(t, w.runItem(id))
	}
	for _, id := range newer {
		w.refusesToTouch(id)
	}
	for _, d := range []time.Duration{0, 2 * time.Minute, 15 * time.Minute, 7 * time.Hour, time.Minute} {
		w.pass(d)
		w.tick()
	}
	for _, m := range w.mailbox.arrived() {
		wakeup, err := sqstransport.ParseMessage(m.Body)
		if err != nil {
			t.Fatal(err)
		}
		switch result, err := w.rt.ExecuteDelivery(t.Context(), wakeup, nil); {
		case slices.Contains(newer, wakeup.RunID):
			w.refused("a wakeup of "+string(wakeup.RunID), err) // and so it is handed back, to a program that can
		case wakeup.RunID == "run_paused":
			if err != nil || result.Ignored == "" {
				t.Errorf("a wakeup of a run in an unknown status: %+v, %v", result, err)
			}
		case err != nil:
			t.Errorf("%s: %v", wakeup.RunID, err)
		}
	}
	if run := w.get("run_ours"); run.Status != runlane.StatusSucceeded {
		t.Errorf("our run is %s", run.Status)
	}
	w.pass(365 * 24 * time.Hour)
	if _, err := w.rt.Runs().Prune(t.Context(), &core.PruneOptions{OlderThan: time.Hour, ReleaseOwners: true}); err != nil {
		t.Error(err)
	}
	if _, err := w.rt.Runs().Get(t.Context(), "run_ours"); !errors.Is(err, runlane.ErrRunNotFound) {
		t.Errorf("our run was not pruned: %v", err)
	}
	for _, id := range untouched {
		if after := encodeItem(t, w.runItem(id)); after != before[id] {
			t.Errorf("%s was\n%s\nand is\n%s", id, before[id], after)
		}
	}
}

// refusesToTouch tries everything that reads or changes one run.
func (w *world) refusesToTouch(id runlane.RunID) {
	w.Helper()
	ctx := w.Context()
	_, err := w.rt.Runs().Get(ctx, id)
	w.refused("reading "+string(id), err)
	_, err = w.rt.Runs().Explain(ctx, id)
	w.refused("explaining "+string(id), err)
	_, err = w.rt.Runs().Cancel(ctx, id, nil)
	w.refused("cancelling "+string(id), err)
	_, err = w.rt.Runs().Rerun(ctx, id, nil)
	w.refused("repeating "+string(id), err)
	_, err = w.rt.Runs().FindCurrent(ctx, "report", string(id))
	if id != "run_newer_slot" {
		w.refused("the owner of the key of "+string(id), err)
	}
	_, err = w.rt.Trigger(ctx, report.With(payload(`{}`)), &runlane.TriggerOptions{RunID: id})
	w.refused("triggering "+string(id)+" again", err)
	if id != "run_newer_slot" {
		_, err = w.rt.Trigger(ctx, report.With(payload(`{}`)), &runlane.TriggerOptions{IdempotencyKey: string(id)})
		w.refused("triggering with the key of "+string(id), err)
	}
}

// What diagnosis says of them.
func TestNewer_RunsOfAFormatBeyond_AreNamedByTheChecker(t *testing.T) {
	t.Parallel()
	w := openWorld(t, started, nil)
	for _, id := range []runlane.RunID{"run_newer", "run_paused", "run_ours"} {
		w.trigger(report.With(payload(`{}`)), id, &runlane.TriggerOptions{IdempotencyKey: string(id)})
	}
	w.trigger(importing.With(payload(`{}`)), "run_newer_slot", nil)
	w.rewrite("run_newer", item{"v": beyond})
	w.rewrite("run_newer_slot", item{"v": beyond})
	w.rewrite("run_paused", item{"st": &types.AttributeValueMemberS{Value: "paused"}})
	w = w.reopened()
	found := map[runlane.RunID]string{}
	page, err := w.store.Check(t.Context(), &lane.PageQuery{Environment: environment, Limit: runlane.MaxPageLimit})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range page.Items {
		found[v.RunID] += v.Rule + ": " + v.Detail
	}
	for id, want := range map[runlane.RunID]string{
		"run_newer": "format 1000", "run_newer_slot": "format 1000", "run_paused": `status "paused"`,
	} {
		if !strings.Contains(found[id], want) || strings.Count(found[id], ": ") != 1 {
			t.Errorf("%s: %q, want one with %s", id, found[id], want)
		}
		delete(found, id)
	}
	if len(found) > 0 {
		t.Errorf("more was found: %v", found)
	}
}

// The format of the environment's configuration is that of everything: nothing is written beside newer writers.
func TestNewer_EnvironmentOfAFormatBeyond_IsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	config := decodeItem(t, `{"pk":{"S":"recorded:config"},"sk":{"S":"shards"},"rd":{"N":"8"},"wr":{"N":"8"}}`)
	config["v"] = beyond
	w := openWorld(t, started, []item{config})
	_, err := w.rt.Trigger(t.Context(), report.With(payload(`{}`)), nil)
	w.refused("triggering", err)
	_, err = w.rt.Tick(t.Context(), nil)
	if !errors.Is(err, runlane.ErrInvariantViolation) {
		t.Errorf("tick: %v", err)
	}
	_, err = w.rt.Runs().List(t.Context(), nil)
	w.refused("listing", err)
	for _, it := range w.items() {
		if kind := kindOf(it); kind != "config shards" && kind != "task" && kind != "schedule" {
			t.Errorf("%s was written", keyOf(it))
		}
	}
}

// Items that no run speaks for say their own format.
func TestNewer_OtherItemsOfAFormatBeyond_AreRefusedAndLeftAlone(t *testing.T) {
	t.Parallel()
	w := openWorld(t, started, nil)
	w.tick()
	w.trigger(report.With(payload(`{}`)), "run_keyed", &runlane.TriggerOptions{IdempotencyKey: "key"})
	w.trigger(importing.With(payload(`{}`)), "run_slot", nil)
	var changed []item
	for _, it := range w.items() {
		switch kind := kindOf(it); {
		case kind == "idem", kind == "slot", kind == "schedule" && text(it["sk"]) == "hourly":
			it["v"] = beyond
			changed = append(changed, it)
		}
	}
	if len(changed) != 3 {
		t.Fatalf("%d items", len(changed))
	}
	w.load(changed)
	w = w.reopened()
	ctx := t.Context()
	_, err := w.rt.Trigger(ctx, report.With(payload(`{}`)), &runlane.TriggerOptions{IdempotencyKey: "key"})
	w.refused("triggering with a key", err)
	_, err = w.rt.Trigger(ctx, importing.With(payload(`{}`)), nil)
	w.refused("taking a slot", err)
	w.refused("pausing a schedule", w.rt.Schedules().Pause(ctx, "hourly", nil))
	w.pass(2 * time.Hour)
	_, err = w.rt.Tick(ctx, nil)
	w.refused("a tick's schedules", err)
	for _, it := range changed {
		if now := w.item(text(it["pk"]), text(it["sk"])); encodeItem(t, now) != encodeItem(t, it) {
			t.Errorf("%s was changed to %s", keyOf(it), encodeItem(t, now))
		}
	}
}

// An event of a type that is not known is listed as it is; the run goes on by its projection, and only folding refuses.
func TestNewer_EventsOfAnUnknownType_AreListedAndSurvive(t *testing.T) {
	t.Parallel()
	w := openWorld(t, started, nil)
	w.trigger(report.With(payload(`{}`)), "run_annotated", nil)
	sequence := w.get("run_annotated").EventSequence + 1
	w.rewrite("run_annotated", item{"sq": &types.AttributeValueMemberN{Value: "3"}})
	w.load([]item{{
		"pk": &types.AttributeValueMemberS{Value: "recorded:run:run_annotated"}, "sk": &types.AttributeValueMemberS{Value: "log:0000000003"},
		"ci": &types.AttributeValueMemberS{Value: strings.Repeat("0", 32)},
		"ev": &types.AttributeValueMemberB{Value: []byte(`[{"t":"run.annotated","o":1767225601000,"d":{"note":"x","n":1e3}}]`)},
	}})
	if sequence != 3 {
		t.Fatalf("sequence %d", sequence)
	}
	w = w.reopened()
	w.turn(0)
	events := w.history("run_annotated")
	var odd *runlane.UnknownEvent
	for _, e := range events {
		if u, ok := e.Body.(*runlane.UnknownEvent); ok && e.Sequence == sequence {
			odd = u
		}
	}
	if odd == nil || odd.Type != "run.annotated" || string(odd.Data) != `{"note":"x","n":1e3}` {
		t.Errorf("the event is %+v", odd)
	}
	if run := w.get("run_annotated"); run.Status != runlane.StatusSucceeded || run.EventSequence != int64(len(events)) || len(events) < 6 {
		t.Errorf("%d events, run %+v", len(events), run)
	}
	var all []runlane.Event
	for _, e := range events {
		all = append(all, e.Event)
	}
	if _, err := core.ProjectRunEvents(nil, 0, all...); !errors.Is(err, runlane.ErrInvariantViolation) {
		t.Errorf("folding: %v", err)
	}
	if violations, err := lanetest.CheckFold(t.Context(), w.store, w.key("run_annotated")); err != nil || len(violations) > 0 {
		t.Errorf("%v, %v", violations, err)
	}
	w.sound()
}

// A message of another version is refused whole: it goes back, to a program that knows it, and its run is found without it.
func TestNewer_MessagesOfAVersionBeyond_AreRefused(t *testing.T) {
	t.Parallel()
	for _, m := range loadRecording(t, current).Messages {
		if _, err := sqstransport.ParseMessage(m.Body); err != nil {
			t.Errorf("%s: %v", m.Body, err)
		}
		newer := strings.Replace(m.Body, `"v":1`, `"v":2`, 1)
		if _, err := sqstransport.ParseMessage(newer); newer == m.Body || !errors.Is(err, runlane.ErrValidationFailed) {
			t.Errorf("%s: %v", newer, err)
		}
	}
}
