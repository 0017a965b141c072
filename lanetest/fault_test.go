package lanetest_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

// sound are the methods that never go wrong.
var sound = []string{
	"Capabilities", "Queues", "MaxDelay", "Start", "Close", "CheckOutput", "CheckPayload", "Check", "CountRuns",
	"PutTask", "ListTasks", "PutProgress", "GetProgress", "BeginFeed", "ReadFeed", "Carrier", "Ordered", "Fair",
	"Depth",
}

// callAll calls every method of an interface with zero commands and returns the errors by method.
func callAll(t *testing.T, contract reflect.Type, adapter any) map[string]error {
	t.Helper()
	results := map[string]error{}
	for i := range contract.NumMethod() {
		m := contract.Method(i)
		if slices.Contains(sound, m.Name) {
			continue
		}
		arguments := []reflect.Value{reflect.ValueOf(t.Context())}
		for j := 1; j < m.Type.NumIn(); j++ {
			if in := m.Type.In(j); in.Kind() == reflect.Pointer {
				arguments = append(arguments, reflect.New(in.Elem()))
			} else {
				arguments = append(arguments, reflect.Zero(in))
			}
		}
		out := reflect.ValueOf(adapter).MethodByName(m.Name).Call(arguments)
		results[m.Name], _ = out[len(out)-1].Interface().(error)
	}
	return results
}

func TestFaulty_EveryMethodCanGoWrong(t *testing.T) {
	t.Parallel()
	for _, kind := range []lanetest.FaultKind{lanetest.FaultBefore, lanetest.FaultConflict, lanetest.FaultThrottle} {
		plan := lanetest.NewFaultPlan(t, 1, lanetest.FaultRule{Kind: kind, Rate: 1})
		for method, err := range callAll(t, reflect.TypeFor[lane.Storage](), lanetest.FaultyStorage(lane.UnimplementedStorage{}, plan)) {
			e, ok := errors.AsType[*runlane.Error](err)
			if !ok || e.Code != runlane.ErrStorageUnavailable || !e.Retryable || e.Meta["outcome"] != "not committed" {
				t.Errorf("%s of %s: %v", kind, method, err)
			}
		}
	}
	plan := lanetest.NewFaultPlan(t, 1, lanetest.FaultRule{Kind: lanetest.FaultBefore, Rate: 1})
	transport := lanetest.FaultyTransport(memlane.NewTransport(nil), plan)
	for method, err := range callAll(t, reflect.TypeFor[lane.Transport](), transport) {
		if runlane.CodeOf(err) != runlane.ErrTransportUnavailable {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// creation is a storage with one command for it.
func creation(t *testing.T, rules ...lanetest.FaultRule) (lane.Storage, *lane.AppendCommand, *lanetest.FaultPlan) {
	t.Helper()
	plan := lanetest.NewFaultPlan(t, 0, rules...)
	command := lanetest.NewFactory("test").Creation(t, time.Now(), lanetest.RunOptions{})
	return lanetest.FaultyStorage(memlane.NewStorage(nil), plan), command, plan
}

func TestFaultyStorage_ErrorAfterSuccess_HasCommitted(t *testing.T) {
	t.Parallel()
	storage, command, plan := creation(t, lanetest.FaultRule{Method: "AppendRunEvents", Kind: lanetest.FaultAfter, Rate: 1, Times: 1})
	_, err := storage.AppendRunEvents(t.Context(), command)
	e, ok := errors.AsType[*runlane.Error](err)
	if !ok || e.Code != runlane.ErrStorageUnavailable || e.Meta["outcome"] != "unknown" {
		t.Errorf("%v", err)
	}
	if _, err := storage.GetRun(t.Context(), command.Key()); err != nil {
		t.Errorf("the call was not carried out: %v", err)
	}
	if _, err := storage.AppendRunEvents(t.Context(), command); !errors.Is(err, runlane.ConflictEventSequence) {
		t.Errorf("the rule strikes once, then the storage answers: %v", err)
	}
	if n := plan.Struck(lanetest.FaultAfter); n != 1 {
		t.Errorf("struck %d times", n)
	}
}

func TestFaultyStorage_ErrorBefore_HasDoneNothing(t *testing.T) {
	t.Parallel()
	storage, command, plan := creation(t, lanetest.FaultRule{Kind: lanetest.FaultBefore, Rate: 1})
	if _, err := storage.AppendRunEvents(t.Context(), command); err == nil {
		t.Error("no error")
	}
	plan.Stop()
	if _, err := storage.GetRun(t.Context(), command.Key()); runlane.CodeOf(err) != runlane.ErrRunNotFound {
		t.Errorf("%v", err)
	}
}

func TestFaultyStorage_Duplicate_AnswersTheFirstCall(t *testing.T) {
	t.Parallel()
	storage, command, plan := creation(t, lanetest.FaultRule{Kind: lanetest.FaultDuplicate, Rate: 1})
	commit, err := storage.AppendRunEvents(t.Context(), command)
	if err != nil || commit.Run.EventSequence != 2 || plan.Struck(lanetest.FaultDuplicate) != 1 {
		t.Errorf("%+v %v", commit, err)
	}
	claim := &lane.ClaimOutboxCommand{Environment: "test", At: time.Now(), ClaimUntil: time.Now().Add(time.Minute)}
	if rows, err := storage.ClaimOutboxMessages(t.Context(), claim); err != nil || len(rows) != 1 || plan.Struck(lanetest.FaultDuplicate) != 1 {
		t.Errorf("a claim of rows is not made twice: %v %v", rows, err)
	}
}

func TestFaultyStorage_Delay_EndsWithItsTimeOrItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		storage, command, _ := creation(t, lanetest.FaultRule{Kind: lanetest.FaultDelay, Rate: 1, Delay: time.Minute})
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := storage.AppendRunEvents(ctx, command)
		if runlane.CodeOf(err) != runlane.ErrOperationCancelled || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%s: %v", time.Since(began), err)
		}
		if _, err := storage.AppendRunEvents(t.Context(), command); err != nil || time.Since(began) != time.Minute+time.Second {
			t.Errorf("%s: %v", time.Since(began), err)
		}
	})
}

func TestFaultyStorage_KeepsAbilities(t *testing.T) {
	t.Parallel()
	plan := lanetest.NewFaultPlan(t, 0, lanetest.FaultRule{Kind: lanetest.FaultBefore, Rate: 1})
	inner := memlane.NewStorage(nil)
	storage := lanetest.FaultyStorage(inner, plan)
	if _, ok := lane.As[*memlane.Storage](storage); !ok || storage.Capabilities() != inner.Capabilities() {
		t.Error("the decorator hides what the storage can do")
	}
	transport := lanetest.FaultyTransport(memlane.NewTransport(nil), plan)
	if _, ok := lane.As[lane.Receiver](transport); !ok {
		t.Error("the decorator hides what the transport can do")
	}
}

func TestFaultyTransport_Throttle_IsEachMessagesOwnAndPublishesNothing(t *testing.T) {
	t.Parallel()
	inner := scenarios.NewScriptedTransport()
	plan := lanetest.NewFaultPlan(t, 0, lanetest.FaultRule{Kind: lanetest.FaultThrottle, Rate: 1})
	outcomes, err := lanetest.FaultyTransport(inner, plan).PublishWakeups(t.Context(), &lane.PublishCommand{Attempts: make([]lane.PublishAttempt, 3)})
	if err != nil || len(outcomes) != 3 || len(inner.TakePublished()) != 0 {
		t.Fatalf("%v %v", outcomes, err)
	}
	for _, o := range outcomes {
		if o.Type != lane.PublishFailed || o.Failure.Code != runlane.ErrTransportUnavailable {
			t.Errorf("%+v", o)
		}
	}
}

func TestFaultyTransport_LostAnswerAndDuplicate_HaveSent(t *testing.T) {
	t.Parallel()
	for kind, want := range map[lanetest.FaultKind]int{lanetest.FaultAfter: 1, lanetest.FaultDuplicate: 2, lanetest.FaultBefore: 0} {
		inner := scenarios.NewScriptedTransport()
		plan := lanetest.NewFaultPlan(t, 0, lanetest.FaultRule{Method: "PublishWakeups", Kind: kind, Rate: 1})
		_, err := lanetest.FaultyTransport(inner, plan).PublishWakeups(t.Context(), &lane.PublishCommand{Attempts: make([]lane.PublishAttempt, 1)})
		if sent := len(inner.TakePublished()); sent != want || (err == nil) != (kind == lanetest.FaultDuplicate) {
			t.Errorf("%s: sent %d: %v", kind, sent, err)
		}
	}
}

func TestFaultyTransport_Delay_EndsWithItsTimeOrItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := scenarios.NewScriptedTransport()
		plan := lanetest.NewFaultPlan(t, 0, lanetest.FaultRule{Method: "PublishWakeups", Kind: lanetest.FaultDelay, Rate: 1, Delay: time.Minute})
		transport, began := lanetest.FaultyTransport(inner, plan), time.Now()
		command := &lane.PublishCommand{Attempts: make([]lane.PublishAttempt, 1)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := transport.PublishWakeups(ctx, command)
		if runlane.CodeOf(err) != runlane.ErrOperationCancelled || time.Since(began) != time.Second || len(inner.TakePublished()) != 0 {
			t.Errorf("%s: %v", time.Since(began), err)
		}
		if _, err := transport.PublishWakeups(t.Context(), command); err != nil || time.Since(began) != time.Minute+time.Second || len(inner.TakePublished()) != 1 {
			t.Errorf("%s: %v", time.Since(began), err)
		}
	})
}

// A transport that loses wakeups says that it has published them; nothing else is lost.
func TestFaultyTransport_Loss_IsAcceptedAndSentToNobody(t *testing.T) {
	t.Parallel()
	inner := scenarios.NewScriptedTransport()
	plan := lanetest.NewFaultPlan(t, 0, lanetest.FaultRule{Kind: lanetest.FaultLoss, Rate: 1})
	transport := lanetest.FaultyTransport(inner, plan)
	outcomes, err := transport.PublishWakeups(t.Context(), &lane.PublishCommand{Attempts: make([]lane.PublishAttempt, 3)})
	if err != nil || len(outcomes) != 3 || outcomes[2].Type != lane.Published || len(inner.TakePublished()) != 0 {
		t.Errorf("%+v %v", outcomes, err)
	}
	outcomes, err = transport.SendWakeups(t.Context(), make([]lane.DelayedWakeup, 2))
	if err != nil || len(outcomes) != 2 || outcomes[1].Type != lane.Published || len(inner.TakeDelayed()) != 0 {
		t.Errorf("delayed: %+v %v", outcomes, err)
	}
	if _, err := lanetest.FaultyStorage(memlane.NewStorage(nil), plan).GetRun(t.Context(), lane.RunKey{RunID: "run_absent"}); runlane.CodeOf(err) != runlane.ErrRunNotFound {
		t.Errorf("a storage loses nothing: %v", err)
	}
	if n := plan.Struck(lanetest.FaultLoss); n != 2 {
		t.Errorf("struck %d times", n)
	}
}

// A rule strikes the method that it names, as often as it says, and no other.
func TestFaultPlan_StrikesByMethodAndTimes(t *testing.T) {
	t.Parallel()
	plan := lanetest.NewFaultPlan(t, 0, lanetest.FaultRule{Method: "GetRun", Kind: lanetest.FaultThrottle, Rate: 1, Times: 2})
	storage := lanetest.FaultyStorage(lane.UnimplementedStorage{}, plan)
	for range 3 {
		for method, err := range callAll(t, reflect.TypeFor[lane.Storage](), storage) {
			if runlane.CodeOf(err) == runlane.ErrStorageUnavailable && method != "GetRun" {
				t.Errorf("%s: %v", method, err)
			}
		}
	}
	if n := plan.Struck(lanetest.FaultThrottle); n != 2 {
		t.Errorf("struck %d times", n)
	}
}

// The same calls meet the same faults, whatever other methods do in between; another seed brings others.
func TestFaultPlan_IsRepeatable(t *testing.T) {
	t.Parallel()
	pattern := func(seed uint64, others int) (hits []bool) {
		plan := lanetest.NewFaultPlan(t, seed, lanetest.FaultRule{Kind: lanetest.FaultBefore, Rate: 0.2})
		storage := lanetest.FaultyStorage(lane.UnimplementedStorage{}, plan)
		for range 1000 {
			for range others {
				_, _ = storage.GetRuns(t.Context(), nil)
			}
			_, err := storage.GetRun(t.Context(), lane.RunKey{})
			hits = append(hits, runlane.CodeOf(err) == runlane.ErrStorageUnavailable)
		}
		return hits
	}
	first := pattern(1, 0)
	n := 0
	for _, hit := range first {
		if hit {
			n++
		}
	}
	if n < 150 || n > 250 {
		t.Errorf("%d of 1000 calls failed, want about 200", n)
	}
	if !slices.Equal(first, pattern(1, 2)) {
		t.Error("the same seed brought other faults")
	}
	if slices.Equal(first, pattern(2, 0)) {
		t.Error("another seed brought the same faults")
	}
}
