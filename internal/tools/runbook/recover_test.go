package runbook_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/infra"
	"github.com/runlane/runlane-go/internal/proof/awstest"
)

// No process ticks for two hours. What is due stays, the alarm's figure says so, and one tick finds all of it.
func TestStoppedTick_OneTickFindsAll(t *testing.T) {
	t.Parallel()
	i := install(t)
	i.tick() // registers the schedule
	var late, deferred, lost []runlane.RunID
	for range 3 {
		late = append(late, i.trigger(greet.With("late"), &runlane.TriggerOptions{Delay: 30 * time.Minute}))
		deferred = append(deferred, i.trigger(greet.With("deferred"), &runlane.TriggerOptions{Deferred: true}))
		lost = append(lost, i.trigger(greet.With("lost"), nil))
	}
	i.purge()
	if oldest := i.oldestDue(); oldest > time.Minute {
		t.Errorf("a run is due for %s before anything stopped", oldest)
	}
	i.pass(2 * time.Hour)
	if oldest := i.oldestDue(); oldest < 90*time.Minute {
		t.Errorf("the alarm's figure is %s", oldest)
	}
	i.wantWait(core.WaitPublish, append(slices.Clone(late), deferred...)...)
	i.wantWait(core.WaitWakeup, lost...)

	result := i.tick()
	t.Logf("%+v", *result)
	if result.More {
		t.Error("one tick left something")
	}
	page, err := i.Runs().List(t.Context(), &core.ListOptions{RunFilter: core.RunFilter{ScheduleID: "hourly"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Items) != 1 {
		t.Errorf("the schedule made %d runs of what it missed", len(page.Items))
	}
	all := append(append(late, deferred...), lost...)
	for _, run := range page.Items {
		all = append(all, run.ID)
	}
	work(t, i.Runtime, runlane.StatusSucceeded, all...)
	if again := i.tick(); again.Delivered.Done+again.Redelivered.Done+again.Flushed.Done+again.Scheduled.Done > 0 {
		t.Errorf("another tick found %+v", *again)
	}
	i.wantSound()
}

// A queue is deleted with wakeups in it. Triggers go on, their wakeups are refused and never given up; once the queue is there again, both
// those and the ones that went with it come back.
func TestDeletedQueue_MadeAgain_TicksRecover(t *testing.T) {
	t.Parallel()
	i := install(t)
	within := i.trigger(greet.With("in the queue"), nil)
	i.deleteQueue(t.Context())
	refused := i.trigger(greet.With("refused"), nil)
	i.wantWait(core.WaitPublish, refused)
	for range 12 { // more often than a wakeup that is to blame itself would be tried
		i.pass(6 * time.Minute)
		if _, err := i.Tick(t.Context(), nil); err != nil && !errors.Is(err, runlane.ErrTransportUnavailable) {
			t.Fatal(err)
		}
	}
	letters, err := i.DeadLetters().List(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(letters.Items) > 0 {
		t.Errorf("%d dead letters", len(letters.Items))
	}
	i.wantWait(core.WaitPublish, within, refused)

	again, err := infra.CreateQueue(t.Context(), i.sqs, i.queue.Name, nil)
	if err != nil {
		t.Fatal(err)
	}
	if again.URL != i.queue.URL {
		t.Fatalf("the new queue is %s", again.URL)
	}
	i.pass(6 * time.Minute)
	i.tick()
	i.wantWait(core.WaitWakeup, within, refused)
	work(t, i.Runtime, runlane.StatusSucceeded, within, refused)
	i.wantSound()
}

// A wakeup that was not acknowledged lies in the dead-letter queue. What the document says to do brings it back.
func TestRedrive_OfADeadLetterInSQS_ExecutesTheRun(t *testing.T) {
	t.Parallel()
	i := install(t)
	run := i.trigger(greet.With("someone"), nil)
	moved := i.trigger(greet.With("moved on"), nil)
	i.setVisibility("0") // else the test would take half an hour
	i.until("both wakeups were given up", func() bool {
		// Received and never acknowledged, as by a bridge that crashes.
		if _, err := i.sqs.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &i.queue.URL, MaxNumberOfMessages: 10}); err != nil {
			t.Fatal(err)
		}
		return i.depth(i.queue.DeadLetterURL) == 2
	})
	i.setVisibility("360")
	if depth := i.depth(i.queue.URL); depth != 0 {
		t.Errorf("the queue still has %d messages", depth)
	}
	i.wantWait(core.WaitWakeup, run, moved)
	if _, err := i.Runs().Cancel(t.Context(), moved, nil); err != nil {
		t.Fatal(err)
	}
	_, err := i.sqs.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: &i.queue.DeadLetterARN})
	if err != nil {
		t.Fatal(err)
	}
	work(t, i.Runtime, runlane.StatusSucceeded, run)
	i.until("the dead-letter queue is empty", func() bool { return i.depth(i.queue.DeadLetterURL) == 0 })
	work(t, i.Runtime, runlane.StatusCancelled, moved)
	i.wantSound()
}

// The table goes back to an instant: what ended since then is executed again, what was made since then is unknown, its wakeup harms
// no process and its key is free.
func TestRestoredTable_GoesOnFromItsInstant(t *testing.T) {
	t.Parallel()
	i := install(t)
	i.tick()
	before := i.trigger(greet.With("before"), nil)
	cancelled := i.trigger(greet.With("cancelled since"), &runlane.TriggerOptions{Delay: time.Hour})
	restored := i.restored()
	work(t, i.Runtime, runlane.StatusSucceeded, before)
	if _, err := i.Runs().Cancel(t.Context(), cancelled, nil); err != nil {
		t.Fatal(err)
	}
	options := &runlane.TriggerOptions{IdempotencyKey: "order 7"}
	since := i.trigger(greet.With("since"), options) // its wakeup stays in the queue

	rt := i.open(restored)
	if _, err := rt.Runs().Get(t.Context(), since); !errors.Is(err, runlane.ErrRunNotFound) {
		t.Errorf("a run of after the instant: %v", err)
	}
	again, err := rt.Trigger(t.Context(), greet.With("since"), options)
	if err != nil || again.Outcome != runlane.TriggerCreated || again.Run.ID == since {
		t.Fatalf("the same key: %+v, %v", again, err)
	}
	i.pass(2 * time.Hour)
	if _, err := rt.Tick(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	work(t, rt, runlane.StatusSucceeded, before, cancelled, again.Run.ID)
	i.table = restored
	i.wantSound()
}

// wantSound asks doctor: every invariant, every history.
func (i *installation) wantSound() {
	i.t.Helper()
	if out, code := runlaneCommand(i.t, i.variables(), "doctor", "--all"); code != 0 {
		i.t.Errorf("doctor exits with %d\n%s", code, out)
	}
}

// oldestDue is what the tick sends as OldestDueSeconds.
func (i *installation) oldestDue() time.Duration {
	i.t.Helper()
	at := i.now()
	oldest, err := dynamostore.New(awstest.LocalStackDynamoDB(i.t), i.table, nil).OldestDue(i.t.Context(), environment, at)
	if err != nil {
		i.t.Fatal(err)
	}
	if oldest.IsZero() {
		return 0
	}
	return at.Sub(oldest)
}

func (i *installation) purge() {
	i.t.Helper()
	if _, err := i.sqs.PurgeQueue(i.t.Context(), &sqs.PurgeQueueInput{QueueUrl: &i.queue.URL}); err != nil {
		i.t.Fatal(err)
	}
	i.until("the queue is empty", func() bool { return i.depth(i.queue.URL) == 0 })
}

func (i *installation) deleteQueue(ctx context.Context) {
	i.t.Helper()
	if _, err := i.sqs.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &i.queue.URL}); err != nil {
		i.t.Fatal(err)
	}
}

// depth counts the messages of a queue, received ones too.
func (i *installation) depth(url string) int {
	i.t.Helper()
	out, err := i.sqs.GetQueueAttributes(i.t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		i.t.Fatal(err)
	}
	sum := 0
	for _, name := range []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"} {
		n := 0
		for _, digit := range out.Attributes[name] {
			n = n*10 + int(digit-'0')
		}
		sum += n
	}
	return sum
}

func (i *installation) setVisibility(seconds string) {
	i.t.Helper()
	_, err := i.sqs.SetQueueAttributes(i.t.Context(), &sqs.SetQueueAttributesInput{
		QueueUrl: &i.queue.URL, Attributes: map[string]string{string(types.QueueAttributeNameVisibilityTimeout): seconds},
	})
	if err != nil {
		i.t.Fatal(err)
	}
}

func (i *installation) until(what string, done func() bool) {
	i.t.Helper()
	ctx, cancel := context.WithTimeout(i.t.Context(), patience)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			i.t.Fatalf("waited for: %s", what)
		case <-again.C:
		}
	}
}
