package sealed_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sealed"
)

// everything makes runs on each way that there is, and returns their ids, all to be echoed but the failing one.
func (w *world) everything(rt *core.Runtime) (ids []runlane.RunID) {
	w.Helper()
	call := func(n int) runlane.Call { return echo.With(secret{Text: mark, N: n}) }
	ids = append(ids, w.trigger(rt, call(1), nil).ID)
	ids = append(ids, w.trigger(rt, call(2), &runlane.TriggerOptions{IdempotencyKey: "key", SingletonKey: "single"}).ID)
	long := secret{Text: strings.Repeat(mark+" and more. ", 2000)}
	ids = append(ids, w.trigger(rt, echo.With(long), nil).ID)
	random := make([]byte, 20_000)
	_, _ = rand.Read(random)
	ids = append(ids, w.trigger(rt, echo.With(secret{Text: mark + base64.StdEncoding.EncodeToString(random)}), nil).ID)
	batch, err := rt.TriggerBatch(w.Context(), []core.BatchItem{{Call: call(3)}, {Call: call(4)}})
	w.must(err)
	for _, result := range batch {
		w.must(result.Err)
		ids = append(ids, result.Result.Run.ID)
	}
	now, err := rt.RunNow(w.Context(), call(5), nil)
	w.must(err)
	ids = append(ids, now.Run.ID)
	w.trigger(rt, fork.With(secret{Text: mark, N: 6}), nil)
	failed := w.trigger(rt, fail.With(secret{Text: mark, N: 7}), nil)
	w.work(rt)
	again, err := rt.Runs().Rerun(w.Context(), ids[0], nil)
	w.must(err)
	ids = append(ids, again.ID)
	_, err = rt.Runs().Retry(w.Context(), failed.ID, nil)
	w.must(err)
	w.work(rt)
	return ids
}

// payloadHash is what a storage keeps with the key of the second run of everything, where there is no codec.
func payloadHash() []byte {
	sum := sha256.Sum256([]byte(`{"text":"` + mark + `","n":2}`))
	return []byte(hex.EncodeToString(sum[:8]))
}

func TestSealed_PayloadsAndOutputs_StandNowhereInTheStorageOrTheLogs(t *testing.T) {
	t.Parallel()
	onEach(t, func(w *world) {
		every := runlane.Schedule{ID: "every", When: runlane.Every(time.Minute), Call: echo.With(secret{Text: mark, N: 8})}
		rt := w.open(w.codec(nil, "k1"), every)
		_, err := rt.Tick(w.Context(), nil) // registers the schedule
		w.must(err)
		ids := w.everything(rt)
		w.millis.Add(time.Minute.Milliseconds() + 1)
		_, err = rt.Tick(w.Context(), nil)
		w.must(err)
		w.work(rt)

		summaries, echoed := 0, 0
		for summary, err := range rt.Runs().All(w.Context(), nil) {
			w.must(err)
			summaries++
			run := w.get(rt, summary.ID)
			if !bytes.Contains(run.Payload, []byte(mark)) || run.Sealed.PayloadKey != "k1" || run.Sealed.PayloadFault != "" {
				w.Errorf("%s: %d bytes of payload, %+v", run.TaskID, len(run.Payload), run.Sealed)
			}
			if run.TaskID == "echo" {
				echoed++
				if !bytes.Equal(run.Output, run.Payload) || run.Sealed.OutputKey != "k1" {
					w.Errorf("%s of %s: %d bytes of output, %+v", run.Status, run.Source.Type, len(run.Output), run.Sealed)
				}
			}
			bodies := 0
			for record, err := range rt.Runs().Events(w.Context(), run.ID, nil) {
				w.must(err)
				switch body := record.Body.(type) {
				case *runlane.RunCreated:
					if bodies++; !bytes.Equal(body.Payload, run.Payload) {
						w.Error("run.created has another payload")
					}
				case *runlane.RunSucceeded:
					if bodies++; !bytes.Equal(body.Output, run.Output) {
						w.Error("run.succeeded has another output")
					}
				default: // has no bytes
				}
			}
			if bodies == 0 {
				w.Error("no event has a body")
			}
		}
		if echoed != len(ids)+2 || summaries != echoed+3 { // a fork's and a schedule's; fork, fail and its retry
			w.Errorf("%d runs, %d echoed, %d ids", summaries, echoed, len(ids))
		}

		stored := w.stored()
		if len(stored) < 20_000 {
			w.Errorf("only %d bytes are stored", len(stored))
		}
		for what, text := range map[string]string{
			"the mark": mark, "its base64": base64.StdEncoding.EncodeToString([]byte(mark))[:20], "a hash of a payload": string(payloadHash()),
		} {
			if bytes.Contains(stored, []byte(text)) {
				w.Errorf("%s stands in the storage", what)
			}
		}
		if !bytes.Contains(stored, []byte("k1")) || !bytes.Contains(stored, []byte("not today")) {
			w.Error("what is stored in the clear was not found either: the search finds nothing")
		}
		if strings.Contains(w.logs.String(), mark) || w.logs.String() == "" {
			w.Errorf("logs are %.300s", w.logs.String())
		}
	})
}

// The search of the test above finds what is stored without a codec.
func TestSealed_WithoutACodec_TheSearchFindsEverything(t *testing.T) {
	t.Parallel()
	onEach(t, func(w *world) {
		rt := w.open(nil)
		ids := w.everything(rt)
		if found := bytes.Count(w.stored(), []byte(mark)); found < len(ids) {
			w.Errorf("the mark was found %d times only", found)
		}
		if sum := payloadHash(); strings.HasSuffix(w.Name(), "dynamodb") && !bytes.Contains(w.stored(), sum) {
			w.Error("the hash of a payload was not found")
		}
		for _, id := range ids {
			if run := w.get(rt, id); run.Sealed != nil {
				w.Errorf("%+v", run.Sealed)
			}
		}
	})
}

func TestSealed_Rotation_RunsOfTheOldKeyFinishWhileTheNewOneIsFirst(t *testing.T) {
	t.Parallel()
	onEach(t, func(w *world) {
		before := w.open(w.codec(nil, "old"))
		waiting := w.trigger(before, echo.With(secret{Text: mark, N: 1}), &runlane.TriggerOptions{IdempotencyKey: "key"})
		done := w.trigger(before, echo.With(secret{Text: mark, N: 2}), nil)
		_, err := before.ExecuteDelivery(w.Context(), lane.Wakeup{RunKey: lane.RunKey{Environment: "default", RunID: done.ID}}, nil)
		w.must(err)

		after := w.open(w.codec(nil, "new", "old"))
		duplicate, err := after.Trigger(w.Context(), echo.With(secret{Text: mark, N: 1}), &runlane.TriggerOptions{IdempotencyKey: "key", StrictPayload: true})
		w.must(err)
		if duplicate.Run.ID != waiting.ID || duplicate.PayloadDiffers {
			w.Errorf("the same payload under another key differs: %+v", duplicate)
		}
		fresh := w.trigger(after, echo.With(secret{Text: mark, N: 3}), nil)
		w.work(after)
		again, err := after.Runs().Rerun(w.Context(), done.ID, nil)
		w.must(err)
		w.work(after)
		w.wantEchoed(after, waiting.ID, secret{Text: mark, N: 1}, "old", "new")
		w.wantEchoed(after, done.ID, secret{Text: mark, N: 2}, "old", "old")
		w.wantEchoed(after, fresh.ID, secret{Text: mark, N: 3}, "new", "new")
		w.wantEchoed(after, again.ID, secret{Text: mark, N: 2}, "new", "new")

		// The old key is gone: what it alone opens is unreadable, and says so.
		last := w.open(w.codec(nil, "new"))
		w.wantEchoed(last, fresh.ID, secret{Text: mark, N: 3}, "new", "new")
		run := w.get(last, waiting.ID)
		if run.Payload != nil || !bytes.Contains(run.Output, []byte(mark)) || !strings.Contains(run.Sealed.PayloadFault, `"old"`) {
			w.Errorf("payload %s, %+v", run.Payload, run.Sealed)
		}
		_, err = w.get(last, done.ID).DecodeOutput(new(secret))
		w.wantCode(err, runlane.ErrPayloadUnreadable)
	})
}

func TestSealed_ProcessWithoutTheKey_HandsBackAndChangesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(w *world) {
		with := w.open(w.codec(nil, "k"))
		run := w.trigger(with, echo.With(secret{Text: mark}), &runlane.TriggerOptions{IdempotencyKey: "key", SingletonKey: "single"})
		finished := w.trigger(with, fail.With(secret{Text: mark}), nil)
		_, err := with.ExecuteDelivery(w.Context(), lane.Wakeup{RunKey: lane.RunKey{Environment: "default", RunID: finished.ID}}, nil)
		w.must(err)
		before := w.get(with, run.ID)

		for name, codec := range map[string]runlane.Codec{"no codec": nil, "another key": w.codec(nil, "other")} {
			without := w.open(codec)
			_, err := without.ExecuteDelivery(w.Context(), lane.Wakeup{RunKey: lane.RunKey{Environment: "default", RunID: run.ID}}, nil)
			w.wantCode(err, runlane.ErrPayloadUnreadable)
			if e, ok := errors.AsType[*runlane.Error](err); !ok || e.RunID != run.ID || !e.Retryable || e.Meta["key"] != "k" || e.Hint == "" {
				w.Errorf("%s: %+v", name, err)
			}
			w.work(without) // a poll worker leaves it alone
			seen := w.get(without, run.ID)
			if seen.Payload != nil || seen.Sealed.PayloadKey != "k" || !strings.Contains(seen.Sealed.PayloadFault, `"k"`) ||
				seen.Status != runlane.StatusQueued || seen.EventSequence != before.EventSequence || seen.Counters.Attempts != 0 {
				w.Errorf("%s: the run is %s at %d, %+v", name, seen.Status, seen.EventSequence, seen.Sealed)
			}
			explained, err := without.Runs().Explain(w.Context(), run.ID)
			w.must(err)
			if !strings.Contains(explained.Next, `key "k"`) {
				w.Errorf("%s: explained as %s", name, explained.Next)
			}
			for record, err := range without.Runs().Events(w.Context(), run.ID, nil) {
				w.must(err)
				if body, ok := record.Body.(*runlane.RunCreated); ok && body.Payload != nil {
					w.Errorf("%s: an event has the payload %x", name, body.Payload)
				}
			}
			_, err = without.Runs().Rerun(w.Context(), finished.ID, nil)
			w.wantCode(err, runlane.ErrPayloadUnreadable)
			_, err = without.Runs().Retry(w.Context(), finished.ID, nil)
			w.wantCode(err, runlane.ErrPayloadUnreadable)
			same := echo.With(secret{Text: mark})
			_, err = without.Trigger(w.Context(), same, &runlane.TriggerOptions{IdempotencyKey: "key", StrictPayload: true})
			w.wantCode(err, runlane.ErrPayloadUnreadable)
			_, err = without.Trigger(w.Context(), same, &runlane.TriggerOptions{RunID: run.ID})
			w.wantCode(err, runlane.ErrPayloadUnreadable)
			result, err := without.Trigger(w.Context(), same, &runlane.TriggerOptions{IdempotencyKey: "key"})
			w.must(err)
			if result.Run.ID != run.ID || !result.PayloadDiffers {
				w.Errorf("%s: what cannot be compared counts as the same: %+v", name, result)
			}
		}
		w.work(with)
		w.wantEchoed(with, run.ID, secret{Text: mark}, "k", "k")

		// Operators without keys change what needs none.
		other := w.trigger(with, echo.With(secret{Text: mark}), nil)
		cancelled, err := w.open(nil).Runs().Cancel(w.Context(), other.ID, nil)
		w.must(err)
		if run := w.get(with, other.ID); cancelled.Status != runlane.StatusCancelled || run.Status != runlane.StatusCancelled || len(run.Payload) == 0 {
			w.Errorf("cancelled run is %s with payload %s", run.Status, run.Payload)
		}
		if strings.Contains(w.logs.String(), mark) || !strings.Contains(w.logs.String(), string(runlane.ErrPayloadUnreadable)) {
			w.Errorf("logs are %.300s", w.logs.String())
		}
	})
}

// A person who may write the table can copy bytes from run to run. They do not open there.
func TestSealed_BytesOfAnotherRun_AreNotExecuted(t *testing.T) {
	t.Parallel()
	onEach(t, func(w *world) {
		rt, bare := w.open(w.codec(nil, "k")), w.open(nil)
		source := w.trigger(rt, echo.With(secret{Text: mark}), nil)
		raw, err := w.storage.GetRun(w.Context(), lane.RunKey{Environment: "default", RunID: source.ID})
		w.must(err)
		body := append([]byte(nil), raw.Payload...)
		moved := w.trigger(bare, echo.With(secret{}), nil) // a separate run, whose stored payload is replaced
		w.must(rewrite(w, moved.ID, "run_moved", body))
		_, err = rt.ExecuteDelivery(w.Context(), lane.Wakeup{RunKey: lane.RunKey{Environment: "default", RunID: "run_moved"}}, nil)
		w.wantCode(err, runlane.ErrPayloadUnreadable)
		if w.seen.Load() != 0 {
			w.Error("it was executed")
		}
		for what, changed := range map[runlane.RunID][]byte{
			"run_cut": body[:len(body)-1], "run_head": body[:2], "run_mark": body[:1], "run_name": append([]byte{1, 200}, body[2:]...),
			"run_newer": append([]byte{2}, body[1:]...), "run_empty_name": append([]byte{1, 0}, body...),
		} {
			w.must(rewrite(w, moved.ID, what, changed))
			_, err = rt.ExecuteDelivery(w.Context(), lane.Wakeup{RunKey: lane.RunKey{Environment: "default", RunID: what}}, nil)
			w.wantCode(err, runlane.ErrPayloadUnreadable)
			_, err = bare.ExecuteDelivery(w.Context(), lane.Wakeup{RunKey: lane.RunKey{Environment: "default", RunID: what}}, nil)
			w.wantCode(err, runlane.ErrPayloadUnreadable)
		}
		w.work(rt)
		w.wantEchoed(rt, source.ID, secret{Text: mark}, "k", "k")
	})
}

// rewrite makes a run as another one is, with the stored bytes given, beneath any codec.
func rewrite(w *world, like, id runlane.RunID, body []byte) error {
	run, err := w.storage.GetRun(w.Context(), lane.RunKey{Environment: "default", RunID: like})
	if err != nil {
		return err
	}
	header := runlane.Event{RunID: id, Environment: "default", OccurredAt: run.CreatedAt, Actor: runlane.SystemActor}
	created, requested := header, header
	created.Body = &runlane.RunCreated{TaskID: run.TaskID, Queue: run.Queue, Payload: body, Source: run.Source}
	requested.Body = &runlane.RunDeliveryRequested{Delivery: runlane.Delivery{
		Environment: "default", RunID: id, Queue: run.Queue, AvailableAt: run.CreatedAt, RequestedAt: run.CreatedAt,
	}}
	projected, err := core.ProjectRunEvents(nil, 0, created, requested)
	if err != nil {
		return err
	}
	_, err = w.storage.AppendRunEvents(w.Context(), &lane.AppendCommand{Transition: lane.Transition{
		Events: []runlane.Event{created, requested}, Projected: projected, Queue: runlane.Queue{Name: run.Queue},
	}})
	return err
}

// A codec comes later: what was stored before it finishes, unless it is refused.
func TestSealed_RunsFromBeforeTheCodec_FinishUnlessRefused(t *testing.T) {
	t.Parallel()
	onEach(t, func(w *world) {
		run := w.trigger(w.open(nil), echo.With(secret{Text: mark}), nil)
		strict := w.open(w.codec(&sealed.Options{RefusePlain: true}, "k"))
		_, err := strict.ExecuteDelivery(w.Context(), lane.Wakeup{RunKey: lane.RunKey{Environment: "default", RunID: run.ID}}, nil)
		w.wantCode(err, runlane.ErrPayloadUnreadable)
		rt := w.open(w.codec(nil, "k"))
		w.work(rt)
		w.wantEchoed(rt, run.ID, secret{Text: mark}, "", "k")
	})
}

func TestSealed_PayloadTheTableCannotHold_IsRefusedWithBothSizes(t *testing.T) {
	t.Parallel()
	awstest.Config(t)
	onEach(t, func(w *world) {
		if !strings.HasSuffix(w.Name(), "dynamodb") {
			return // the embedded storage holds whatever the memory holds
		}
		random := make([]byte, 400_000)
		_, _ = rand.Read(random)
		large := secret{Text: base64.StdEncoding.EncodeToString(random)}
		_, err := w.open(w.codec(nil, "k")).Trigger(w.Context(), echo.With(large), nil)
		w.wantCode(err, runlane.ErrValidationFailed)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("bytes for %d", len(large.Text)+len(`{"text":""}`))) {
			w.Error(err)
		}
	})
}

// A changed codec is no changed schedule: the hash that is stored of a definition leaves out what could be guessed from it.
func TestSealed_ScheduleRecord_IsTheSameForAnyPayload(t *testing.T) {
	t.Parallel()
	onEach(t, func(w *world) {
		hash := func(codec runlane.Codec, n int) string {
			rt := w.open(codec, runlane.Schedule{
				ID: runlane.ScheduleID(fmt.Sprintf("s%d", w.millis.Add(1))), When: runlane.Every(time.Hour), Call: echo.With(secret{Text: mark, N: n}),
			})
			_, err := rt.Tick(w.Context(), nil)
			w.must(err)
			page, err := w.storage.ListSchedules(w.Context(), &lane.PageQuery{Environment: "default"})
			w.must(err)
			return page.Items[len(page.Items)-1].DefinitionHash
		}
		if hash(w.codec(nil, "k"), 1) != hash(w.codec(nil, "k2"), 2) {
			w.Error("the payload has a say in the hash")
		}
		if hash(nil, 1) == hash(nil, 2) {
			w.Error("without a codec a changed payload is a changed definition")
		}
	})
}
