package hostiletest_test

import (
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// triggering is a refusal by every call that makes a run.
func triggering(what string, o runlane.TriggerOptions) refusal {
	return failed(what, func(w *world) []error {
		call := w.task.With(payload{})
		results, err := w.rt.TriggerBatch(w.ctx(), []core.BatchItem{{Call: call, Options: &o}})
		if err != nil {
			w.t.Error(err)
		}
		errs := []error{errorOf(w.rt.Trigger(w.ctx(), call, &o)), results[0].Err}
		if o.Delay == 0 && o.RunAt.IsZero() { // which RunNow refuses altogether
			errs = append(errs, errorOf(w.rt.RunNow(w.ctx(), call, &o)))
		}
		return errs
	})
}

// queued makes runs in a queue.
func queued(q runlane.Queue) func(w *world) []error {
	return triggering("", runlane.TriggerOptions{Queue: q}).calls
}

// inline is a refusal by RunNow alone.
func inline(what string, o runlane.TriggerOptions) refusal {
	return failed(what, func(w *world) []error { return []error{errorOf(w.rt.RunNow(w.ctx(), w.task.With(payload{}), &o))} })
}

func triggerRules() map[string]rule {
	bulk := map[string]string{"k": strings.Repeat("v", runlane.MaxMetaBytes)}
	key := func(set func(o *runlane.TriggerOptions, key string)) rule {
		var refused []refusal
		for what, text := range map[string]string{"unprintable": unprintable, "too long": tooLong, "no text": notUTF8} {
			o := runlane.TriggerOptions{}
			set(&o, text)
			refused = append(refused, triggering(what, o))
		}
		return refuses(refused...)
	}
	return map[string]rule{
		"runlane.TriggerOptions.Actor": refuses(
			triggering("an unknown type", runlane.TriggerOptions{Actor: runlane.Actor{Type: "robot"}}),
			triggering("no type", runlane.TriggerOptions{Actor: runlane.Actor{ID: "me"}}),
			triggering("an unprintable id", runlane.TriggerOptions{Actor: runlane.Actor{Type: runlane.ActorOperator, ID: unprintable}}),
		),
		"runlane.TriggerOptions.ConcurrencyKey": key(func(o *runlane.TriggerOptions, key string) { o.ConcurrencyKey = key }),
		"runlane.TriggerOptions.IdempotencyKey": key(func(o *runlane.TriggerOptions, key string) { o.IdempotencyKey = key }),
		"runlane.TriggerOptions.SingletonKey":   key(func(o *runlane.TriggerOptions, key string) { o.SingletonKey = key }),
		"runlane.TriggerOptions.Debounce": refuses(
			triggering("without a window", runlane.TriggerOptions{Debounce: runlane.Debounce{Key: "k"}}),
			triggering("a negative window", runlane.TriggerOptions{Debounce: runlane.Debounce{Window: -1}}),
			triggering("a limit below the window", runlane.TriggerOptions{Debounce: runlane.Debounce{Window: time.Minute, Max: time.Second}}),
			triggering("beyond every storage", runlane.TriggerOptions{Debounce: runlane.Debounce{Window: 270 * aYear}}),
			triggering("beside Throttle", runlane.TriggerOptions{
				Throttle: runlane.Throttle{Window: time.Minute}, Debounce: runlane.Debounce{Window: time.Minute},
			}),
			triggering("beside a delay", runlane.TriggerOptions{Delay: time.Second, Debounce: runlane.Debounce{Window: time.Minute}}),
			triggering("beside a key", runlane.TriggerOptions{IdempotencyKey: "k", Debounce: runlane.Debounce{Window: time.Minute}}),
			triggering("an unprintable key", runlane.TriggerOptions{Debounce: runlane.Debounce{Key: unprintable, Window: time.Minute}}),
			inline("of a run that executes here", runlane.TriggerOptions{Debounce: runlane.Debounce{Window: time.Minute}}),
		),
		"runlane.TriggerOptions.Throttle": refuses(
			triggering("without a window", runlane.TriggerOptions{Throttle: runlane.Throttle{Key: "k"}}),
			triggering("a negative window", runlane.TriggerOptions{Throttle: runlane.Throttle{Window: -1}}),
			triggering("a key that is too long", runlane.TriggerOptions{Throttle: runlane.Throttle{Key: tooLong, Window: time.Minute}}),
		),
		"runlane.TriggerOptions.Deferred": refuses(inline("of a run that executes here", runlane.TriggerOptions{Deferred: true})),
		"runlane.TriggerOptions.Delay": refuses(
			triggering("negative", runlane.TriggerOptions{Delay: -1}),
			triggering("beside RunAt", runlane.TriggerOptions{Delay: time.Second, RunAt: time.Now()}),
			triggering("beyond every storage", runlane.TriggerOptions{Delay: 270 * aYear}),
			inline("of a run that executes here", runlane.TriggerOptions{Delay: time.Second}),
		),
		"runlane.TriggerOptions.RunAt": refuses(
			triggering("beside Delay", runlane.TriggerOptions{Delay: time.Second, RunAt: time.Now()}),
			triggering("beyond every storage", runlane.TriggerOptions{RunAt: time.Now().AddDate(300, 0, 0)}),
			inline("of a run that executes here", runlane.TriggerOptions{RunAt: time.Now().Add(time.Hour)}),
		),
		"runlane.TriggerOptions.IdempotencyTTL": refuses(
			triggering("negative, not WhileActive", runlane.TriggerOptions{IdempotencyTTL: -5 * time.Second}),
		),
		"runlane.TriggerOptions.Meta": refuses(
			triggering("too much", runlane.TriggerOptions{Meta: bulk}), triggering("no text", runlane.TriggerOptions{Meta: map[string]string{"k": notUTF8}}),
		),
		"runlane.TriggerOptions.Priority": refuses(
			triggering("below all", runlane.TriggerOptions{Priority: -runlane.MaxPriority - 1}),
			triggering("above all", runlane.TriggerOptions{Priority: runlane.MaxPriority + 1}),
		),
		"runlane.TriggerOptions.Writes": legal("each storage refuses what it cannot commit: TestWrites_WhatCannotBe_IsSaidBeforehand of dynamostore"),
		"runlane.TriggerOptions.TraceCarrier": refuses(
			triggering("too much", runlane.TriggerOptions{TraceCarrier: bulk}),
			triggering("no text", runlane.TriggerOptions{TraceCarrier: map[string]string{notUTF8: "v"}}),
		),
		"runlane.TriggerOptions.Queue": refuses(
			invalid("without a binding", queued(runlane.Queue{Name: "elsewhere"})),
			invalid("another of a known name", queued(runlane.Queue{Name: "default", Concurrency: 1})),
		),
		"runlane.TriggerOptions.ReturnActive":  legal("both are meant"),
		"runlane.TriggerOptions.RunID":         refuses(triggering("a colon", runlane.TriggerOptions{RunID: colon})),
		"runlane.TriggerOptions.StrictPayload": legal("both are meant"),
	}
}
