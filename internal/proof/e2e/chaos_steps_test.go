package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// stepEvery is how often a step looks for a process to strike.
const stepEvery = 50 * time.Millisecond

// poisonTime is how long an attempt of poison takes.
const poisonTime = 300 * time.Millisecond

// execute does what the plan says, at its times, and returns when the last fault is over.
func (w *world) execute(ctx context.Context, rt *core.Runtime) {
	var running sync.WaitGroup
	defer running.Wait()
	began := time.Now()
	for i, step := range w.plan.Steps {
		if !pause(ctx, time.Until(began.Add(step.At))) {
			return
		}
		running.Go(func() { w.step(ctx, rt, i, step) })
	}
}

func (w *world) step(ctx context.Context, rt *core.Runtime, number int, step Step) {
	happened := true
	switch step.Kind {
	case EmulatorKilled:
		happened = w.killEmulator(ctx, step.For)
	case FunctionKilled:
		happened = w.strike(ctx, w.fleet.kill)
	case KilledAtDeadline:
		w.strike(ctx, w.fleet.stop)
		return // counted when it is killed
	case QueueEmptied:
		happened = w.emptyQueues(ctx)
	case TickStopped:
		w.tickStopped.Store(true)
		pause(ctx, step.For)
		w.tickStopped.Store(false)
	case PoisonTask:
		options := &runlane.TriggerOptions{RunID: runlane.RunID(fmt.Sprint("poison-", number))}
		w.insist(ctx, "poison", func() error {
			_, err := rt.Trigger(ctx, Poison.With(Job{Milliseconds: int(poisonTime / time.Millisecond)}), options)
			if err == nil {
				w.triggered(options.RunID, trait{poison: true})
			}
			return err
		})
	case PoisonMessage:
		w.poisonMessages(ctx, number)
	default:
		w.t.Errorf("a step of the plan is a %s, which has no time", step.Kind)
	}
	if happened {
		w.faults.Note(step.Kind, 1)
	}
}

// killEmulator kills and starts DynamoDB Local, one after the other.
func (w *world) killEmulator(ctx context.Context, down time.Duration) bool {
	w.killing.Lock()
	defer w.killing.Unlock()
	w.emulator.Crash(ctx)
	pause(ctx, down)
	if err := w.emulator.Start(ctx); err != nil {
		w.t.Error(err)
		return false
	}
	return true
}

// strike waits for something that it can strike.
func (w *world) strike(ctx context.Context, blow func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, visibility)
	defer cancel()
	return poll(ctx, stepEvery, blow)
}

// emptyQueues waits until there is something to lose, and loses it.
func (w *world) emptyQueues(ctx context.Context) bool {
	waiting, cancel := context.WithTimeout(ctx, visibility)
	defer cancel()
	if !poll(waiting, stepEvery, func() bool { return w.depth(waiting) > 0 }) {
		return false
	}
	for _, queue := range w.queues {
		if _, err := w.sqs.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: &queue.URL}); err != nil {
			w.t.Error(err)
		}
	}
	return true
}

// depth is how many messages there are: visible, received and delayed.
func (w *world) depth(ctx context.Context) (sum int) {
	names := []types.QueueAttributeName{
		types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
		types.QueueAttributeNameApproximateNumberOfMessagesDelayed,
	}
	for _, queue := range w.queues {
		out, err := w.sqs.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &queue.URL, AttributeNames: names})
		if err != nil {
			if ctx.Err() == nil {
				w.t.Error(err)
			}
			continue
		}
		for _, name := range names {
			n, _ := strconv.Atoi(out.Attributes[string(name)]) // none is 0
			sum += n
		}
	}
	return sum
}

// poisonMessages puts into each queue what no program can read.
func (w *world) poisonMessages(ctx context.Context, number int) {
	for name, queue := range w.queues {
		body := fmt.Sprintf("poison message %d for %s", number, name)
		w.mu.Lock()
		w.messages[body] = false
		w.mu.Unlock()
		if _, err := w.sqs.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &queue.URL, MessageBody: &body}); err != nil {
			w.t.Error(err)
		}
	}
}
