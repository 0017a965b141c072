package sqstransport_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqstransport"
)

// receiving runs Receive until the returned function is called, which waits for its end.
func receiving(
	t *testing.T, transport *sqstransport.Transport, concurrency int, handle func(context.Context, lane.Wakeup) error,
	queues ...runlane.QueueName,
) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- transport.Receive(ctx, queues, concurrency, handle) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Receive returned %v", err)
		}
	}
}

func TestReceive_UnboundQueueOrNoConcurrency_IsConfigurationInvalid(t *testing.T) {
	t.Parallel()
	transport := open(t, newFakeSQS(), nil, "mail")
	if err := transport.Receive(t.Context(), []runlane.QueueName{"mail", "none"}, 1, nil); !errors.Is(err, runlane.ErrConfigurationInvalid) {
		t.Errorf("error for an unbound queue is %v", err)
	}
	if err := transport.Receive(t.Context(), []runlane.QueueName{"mail"}, 0, nil); !errors.Is(err, runlane.ErrConfigurationInvalid) {
		t.Errorf("error without concurrency is %v", err)
	}
}

func TestReceive_NeverAsksForMoreThanFreeHandlers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newFakeSQS()
		transport := open(t, client, nil)
		publish(t, transport, slices.Concat(attempts("mail", 60), attempts("audio", 60)))
		var running, most atomic.Int64
		client.onReceive = func(in *sqs.ReceiveMessageInput) (bool, error) {
			if n := running.Load() + int64(in.MaxNumberOfMessages); n > 13 || in.MaxNumberOfMessages < 1 || in.MaxNumberOfMessages > 10 {
				t.Errorf("asked for %d while %d handlers ran", in.MaxNumberOfMessages, running.Load())
			}
			return false, nil
		}
		stop := receiving(t, transport, 13, func(context.Context, lane.Wakeup) error {
			n := running.Add(1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			time.Sleep(time.Second)
			running.Add(-1)
			return nil
		}, "mail", "audio")
		time.Sleep(20 * time.Second)
		stop()
		if most.Load() != 13 {
			t.Errorf("%d handlers ran at once", most.Load())
		}
		equal(t, "messages left", len(client.left(mailURL))+len(client.left(audioURL)), 0)
	})
}

func TestReceive_IdleQueueBesideBusyOne_LeavesItTheHandlers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newFakeSQS()
		transport := open(t, client, nil)
		publish(t, transport, attempts("mail", 90))
		stop := receiving(t, transport, 10, func(context.Context, lane.Wakeup) error { time.Sleep(time.Second); return nil }, "mail", "audio")
		time.Sleep(14 * time.Second) // 90 by 9 a second, and the growing of the polls
		equal(t, "messages left", len(client.left(mailURL)), 0)
		stop()
	})
}

func TestReceive_DrainedQueue_GivesItsHandlersBackAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newFakeSQS()
		transport := open(t, client, nil)
		publish(t, transport, attempts("mail", 100)) // its polls grow to full batches
		stop := receiving(t, transport, 10, func(_ context.Context, w lane.Wakeup) error {
			if w.Queue == "audio" {
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		}, "mail", "audio")
		time.Sleep(3 * time.Second)
		equal(t, "mail left", len(client.left(mailURL)), 0)
		publish(t, transport, attempts("audio", 100))
		time.Sleep(3 * time.Second)
		equal(t, "audio left", len(client.left(audioURL)), 0)
		stop()
		for _, in := range client.receives {
			if in.MaxNumberOfMessages > 1 && in.WaitTimeSeconds > 0 {
				t.Fatalf("a poll waits %d s with %d handlers", in.WaitTimeSeconds, in.MaxNumberOfMessages)
			}
		}
	})
}

func TestReceive_IdleQueues_CostAtMostFourRequestsAMinuteEach(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		concurrency int
		queues      []runlane.QueueName
		hasty       bool // the service says "empty" without having waited
	}{
		"one queue":                    {10, []runlane.QueueName{"mail"}, false},
		"as many handlers as queues":   {3, []runlane.QueueName{"mail", "audio", "orders"}, false},
		"fewer handlers than queues":   {1, []runlane.QueueName{"mail", "audio", "orders"}, false},
		"a service that does not wait": {10, []runlane.QueueName{"mail"}, true},
		"the same with few handlers":   {1, []runlane.QueueName{"mail", "audio"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := newFakeSQS()
				if tc.hasty {
					client.onReceive = func(*sqs.ReceiveMessageInput) (bool, error) { return true, nil }
				}
				stop := receiving(t, open(t, client, nil), tc.concurrency, func(context.Context, lane.Wakeup) error { return nil }, tc.queues...)
				time.Sleep(2 * time.Minute) // pauses have grown by now
				before, _, _ := client.counts()
				time.Sleep(10 * time.Minute)
				after, deletes, changes := client.counts()
				stop()
				if got, most := after-before, 10*4*len(tc.queues); got > most+len(tc.queues)*6 || !tc.hasty && got > most {
					t.Errorf("%d polls in ten minutes, at most %d are allowed", got, most)
				}
				equal(t, "other requests", deletes+changes, 0)
			})
		})
	}
}

func TestReceive_FewerHandlersThanQueues_EveryQueueIsServed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newFakeSQS()
		transport := open(t, client, nil)
		stop := receiving(t, transport, 1, func(context.Context, lane.Wakeup) error { return nil }, "mail", "audio", "orders")
		time.Sleep(time.Minute)
		publish(t, transport, slices.Concat(attempts("mail", 5), attempts("audio", 5), attempts("orders", 5)))
		time.Sleep(30 * time.Second)
		stop()
		equal(t, "messages left", len(client.left(mailURL))+len(client.left(audioURL))+len(client.left(orderURL)), 0)
	})
}

func TestReceive_LongHandler_KeepsItsWakeupInvisible(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newFakeSQS()
		transport := open(t, client, nil)
		publish(t, transport, attempts("mail", 12))
		var calls atomic.Int64
		stop := receiving(t, transport, 20, func(context.Context, lane.Wakeup) error {
			calls.Add(1)
			time.Sleep(10 * time.Minute)
			return nil
		}, "mail")
		time.Sleep(11 * time.Minute)
		stop()
		equal(t, "handler calls", calls.Load(), int64(12))
		equal(t, "messages left", len(client.left(mailURL)), 0)
		_, _, changes := client.counts()
		if changes < 2*10 || changes > 2*32 { // two requests for twelve, at least once and at most about three times a minute
			t.Errorf("%d requests extended visibility", changes)
		}
	})
}

func TestReceive_ExtensionFailsOnce_TheNextComesInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newFakeSQS()
		failures := 0
		client.onChange = func(*sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, bool, error) {
			failures++
			return nil, failures == 1, &types.RequestThrottled{}
		}
		transport := open(t, client, nil)
		publish(t, transport, attempts("mail", 1))
		var calls atomic.Int64
		stop := receiving(t, transport, 5, func(context.Context, lane.Wakeup) error {
			calls.Add(1)
			time.Sleep(3 * time.Minute)
			return nil
		}, "mail")
		time.Sleep(4 * time.Minute)
		stop()
		equal(t, "handler calls", calls.Load(), int64(1))
	})
}

func TestReceive_ExtensionRefused_IsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newFakeSQS()
		client.onChange = func(in *sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, bool, error) {
			return &sqs.ChangeMessageVisibilityBatchOutput{Failed: []types.BatchResultErrorEntry{
				{Id: in.Entries[0].Id, Code: aws.String("InvalidParameterValue"), SenderFault: true},
			}}, true, nil
		}
		transport := open(t, client, nil)
		publish(t, transport, attempts("mail", 1))
		blocked := make(chan struct{})
		stop := receiving(t, transport, 1, func(context.Context, lane.Wakeup) error { <-blocked; return nil }, "mail")
		time.Sleep(10 * time.Minute)
		_, _, changes := client.counts()
		close(blocked)
		stop()
		equal(t, "requests", changes, 1)
	})
}

func TestReceive_End_WhatWasReceivedAndNotBegun_ComesAgainAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newFakeSQS()
		transport := open(t, client, nil)
		list := attempts("orders", 3) // one group: two wait behind the first
		for i := range list {
			list[i].GroupKey = "one"
		}
		publish(t, transport, list)
		var calls atomic.Int64
		stop := receiving(t, transport, 10, func(context.Context, lane.Wakeup) error { calls.Add(1); time.Sleep(30 * time.Second); return nil }, "orders")
		time.Sleep(time.Second)
		for _, d := range client.visibleIn(orderURL) {
			if d == 0 {
				t.Fatal("not all three were received")
			}
		}
		stop()
		equal(t, "handler calls", calls.Load(), int64(1))
		equal(t, "orders left become visible in", client.visibleIn(orderURL), []time.Duration{0, 0})
	})
}

func TestReceive_End_WaitsForHandlersAndFlushesDeletes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newFakeSQS()
		transport := open(t, client, nil)
		publish(t, transport, append(attempts("orders", 1), attempts("mail", 1)...))
		var calls atomic.Int64
		stop := receiving(t, transport, 10, func(ctx context.Context, _ lane.Wakeup) error {
			calls.Add(1)
			time.Sleep(30 * time.Second)
			return ctx.Err() // does not end with Receive's context
		}, "orders", "mail")
		time.Sleep(time.Second)
		began := time.Now()
		stop()
		equal(t, "time until the end", time.Since(began).Round(time.Second), 29*time.Second)
		equal(t, "handler calls", calls.Load(), int64(2))
		equal(t, "messages left", len(client.left(mailURL))+len(client.left(orderURL)), 0)
		polls, _, _ := client.counts()
		time.Sleep(time.Minute)
		after, _, _ := client.counts()
		equal(t, "polls after the end", after-polls, 0)
	})
}

func TestReceive_Outage_IsOutlastedWithGrowingPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newFakeSQS()
		down := true
		client.onReceive = func(*sqs.ReceiveMessageInput) (bool, error) {
			client.mu.Lock()
			defer client.mu.Unlock()
			return down, errors.New("connection refused")
		}
		transport := open(t, client, nil)
		publish(t, transport, attempts("mail", 1))
		var calls atomic.Int64
		stop := receiving(t, transport, 10, func(context.Context, lane.Wakeup) error { calls.Add(1); return nil }, "mail")
		time.Sleep(5 * time.Minute)
		if polls, _, _ := client.counts(); polls > 30 {
			t.Errorf("%d polls in an outage of five minutes", polls)
		}
		client.mu.Lock()
		down = false
		client.mu.Unlock()
		time.Sleep(20 * time.Second)
		equal(t, "handler calls", calls.Load(), int64(1))
		stop()
	})
}

func TestReceive_FullBatches_ArePolledSideBySide(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// Each poll takes 100 ms: one after the other, 400 wakeups would need 4 s.
		client := slow{newFakeSQS()}
		transport := open(t, client, nil)
		publish(t, transport, attempts("mail", 400))
		began := time.Now()
		var calls atomic.Int64
		var took atomic.Int64
		stop := receiving(t, transport, 200, func(context.Context, lane.Wakeup) error {
			if calls.Add(1) == 400 {
				took.Store(int64(time.Since(began)))
			}
			return nil
		}, "mail")
		time.Sleep(10 * time.Second)
		stop()
		equal(t, "handler calls", calls.Load(), int64(400))
		if d := time.Duration(took.Load()); d > 1500*time.Millisecond {
			t.Errorf("it took %s", d)
		}
	})
}

// slow takes 100 ms to hand out messages.
type slow struct{ *fakeSQS }

func (s slow) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	time.Sleep(100 * time.Millisecond)
	return s.fakeSQS.ReceiveMessage(ctx, in, o...)
}
