package doctor

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// overdue is how long due work may wait before doctor warns.
const overdue = 5 * time.Minute

// unusedID returns an ID that no run, task or schedule has.
func unusedID() string { return "doctor-" + strings.ToLower(rand.Text()) }

// Standard returns the checks that take seconds. With publish each queue gets a wakeup for a run that does not exist,
// which workers ignore.
func Standard(rt *core.Runtime, publish bool) []Check {
	checks := []Check{
		{Name: "durability", Run: checkDurability},
		{Name: "reading", Run: checkReading},
		{Name: "writing", Run: checkWriting},
		{Name: "queues", Run: checkQueues},
		{Name: "work that waits", Run: checkWaiting},
		{Name: "dead letters", Run: checkDeadLetters},
	}
	if rt.Lane().Storage.Capabilities().PrunesRuns {
		checks = append(checks, Check{Name: "finished runs", Run: checkKeep})
	}
	if rt.Lane().Storage.Capabilities().KeepsSchedules {
		checks = append(checks, Check{Name: "schedules", Run: checkSchedules})
	}
	if reader, ok := lane.As[invocationReader](rt.Lane().Transport); ok {
		checks = append(checks, Check{
			Name: "timeouts",
			Run: func(ctx context.Context, rt *core.Runtime) (string, error) {
				return checkTimeouts(ctx, rt, reader)
			},
		})
	}
	if reader, ok := lane.As[indexReader](rt.Lane().Storage); ok {
		checks = append(checks, Check{
			Name: "indexes",
			Run:  func(ctx context.Context, _ *core.Runtime) (string, error) { return checkIndexes(ctx, reader) },
		})
	}
	if reader, ok := lane.As[eventReader](rt.Lane().Transport); ok {
		checks = append(checks, Check{
			Name: "events",
			Run:  func(ctx context.Context, _ *core.Runtime) (string, error) { return checkEvents(ctx, reader) },
		})
	}
	if publish {
		checks = append(checks, Check{Name: "publishing", Run: checkPublishing})
	}
	return checks
}

func checkDurability(_ context.Context, rt *core.Runtime) (string, error) {
	if !rt.Lane().ProductionDurable {
		return "", &Warning{
			Message: "runs end with this process or its host",
			Fix:     "use a durable lane, like awslane, in production",
		}
	}
	return "runs survive the loss of any process", nil
}

// checkReading tries a list, an exact read and a lookup by key.
func checkReading(ctx context.Context, rt *core.Runtime) (string, error) {
	if _, err := rt.Runs().List(ctx, &core.ListOptions{Limit: 1}); err != nil {
		return "", err
	}
	if _, err := rt.Runs().Get(ctx, runlane.RunID(unusedID())); !errors.Is(err, runlane.ErrRunNotFound) {
		return "", unexpected(err, "reading a run that does not exist")
	}
	if rt.Lane().Storage.Capabilities().EnforcesIdempotency {
		if _, err := rt.Runs().FindCurrent(
			ctx,
			runlane.TaskID(unusedID()),
			"doctor",
		); !errors.Is(err, runlane.ErrRunNotFound) {
			return "", unexpected(err, "looking for the owner of an unused key")
		}
	}
	return "runs, lists and owners of keys can be read", nil
}

// checkWriting tries writes with conditions that cannot hold: they need the usual permissions but write nothing. A
// storage on a disk also makes a commit that changes nothing.
func checkWriting(ctx context.Context, rt *core.Runtime) (string, error) {
	storage, id, at := rt.Lane().Storage, runlane.RunID(unusedID()), time.Unix(0, 0)
	_, err := storage.AppendRunEvents(ctx, &lane.AppendCommand{Transition: lane.Transition{
		ExpectedSequence: 1,
		Events: []runlane.Event{{
			RunID:       id,
			Environment: rt.Environment(),
			OccurredAt:  at,
			Actor:       runlane.OperatorActor,
			Body:        &runlane.RunCancelled{},
		}},
		Projected: &runlane.Run{
			ID:            id,
			Environment:   rt.Environment(),
			TaskID:        "doctor",
			Queue:         runlane.DefaultQueue.Name,
			Status:        runlane.StatusCancelled,
			EventSequence: 2,
			Source:        runlane.Source{Type: runlane.SourceTrigger},
			CreatedAt:     at,
			UpdatedAt:     at,
			FinishedAt:    at,
		},
	}})
	if !errors.Is(err, runlane.ErrStorageConflict) {
		return "", unexpected(err, "appending to a run that does not exist")
	}
	if storage.Capabilities().KeepsSchedules {
		_, err := storage.PutSchedule(ctx, &lane.PutScheduleCommand{
			Environment: rt.Environment(),
			Record:      runlane.ScheduleRecord{ID: runlane.ScheduleID(unusedID()), Version: 1},
		})
		if !errors.Is(err, runlane.ErrStorageConflict) && !errors.Is(err, runlane.ErrScheduleNotFound) {
			return "", unexpected(err, "changing a schedule that does not exist")
		}
	}
	if prober, ok := lane.As[writeProber](storage); ok {
		return "a commit was written, and changed nothing", prober.ProbeWrite(ctx)
	}
	return "writes are allowed; nothing was written", nil
}

// unexpected is the error for a call that should have failed.
func unexpected(err error, doing string) error {
	if err != nil {
		return err
	}
	return &runlane.Error{
		Code: runlane.ErrContractViolation, Message: doing + " succeeded",
		Hint: "the adapter breaks its contract: run the conformance suite on it",
	}
}

func checkQueues(ctx context.Context, rt *core.Runtime) (string, error) {
	states, _ := QueuesInUse(ctx, rt) // checkWaiting reports the error
	bound := 0
	var unbound *Warning
	for _, state := range states {
		if !state.Bound {
			known := state.Known && (len(rt.Definitions()) > 0 || state.Queue.Name != runlane.DefaultQueue.Name)
			if unbound == nil && (known || state.Stored) {
				unbound = &Warning{
					Message: fmt.Sprintf("tasks use queue %q, and it has no binding here", state.Queue.Name),
					Fix: "add it to RUNLANE_QUEUES (--queues) as name=url, or bind \"default\" to a standard queue, " +
						"which carries all others; until then nothing can be triggered into it from here",
				}
			}
			continue
		}
		bound++
		_, _, err := rt.Lane().Transport.Depth(ctx, state.Queue.Name)
		if err != nil && !errors.Is(err, runlane.ErrCapabilityUnsupported) {
			return "", err
		}
	}
	if bound == 0 {
		return "", &Warning{
			Message: "no queue is bound: from here nothing can be triggered, retried or requeued",
			Fix:     "set RUNLANE_QUEUES (--queues) to name=url pairs with commas between; reading needs none",
		}
	}
	if unbound != nil {
		return "", unbound
	}
	return count(bound, "queue answers", "queues answer"), nil
}

// checkTimeouts compares tasks' timeouts with the time limits of the functions of their queues.
func checkTimeouts(ctx context.Context, rt *core.Runtime, reader invocationReader) (string, error) {
	tasks, err := rt.Tasks().List(ctx)
	if err != nil {
		return "", err
	}
	invocations := map[runlane.QueueName]time.Duration{}
	for _, task := range tasks {
		queue := task.Queue.Name
		if task.Timeout == 0 || task.Gone(time.Now()) {
			continue
		}
		if _, bound := lane.CarrierOf(rt.Lane().Transport, queue); !bound {
			continue
		}
		if _, known := invocations[queue]; !known {
			if invocations[queue], err = reader.InvocationTime(ctx, queue); err != nil {
				return "", err
			}
		}
		invocation := invocations[queue]
		if longest := core.LongestTimeout(invocation); invocation > 0 && task.Timeout > longest {
			return "", &Warning{
				Message: fmt.Sprintf(
					"task %q has a timeout of %s, and the functions of queue %q have %s, of which a "+
						"handler may use %s",
					task.ID,
					runlane.FormatDuration(task.Timeout),
					queue,
					runlane.FormatDuration(invocation),
					runlane.FormatDuration(longest),
				),
				Fix: longerFunction(task.Queue.Name, task.Timeout),
			}
		}
	}
	return "no task's timeout is too long for its queue's functions", nil
}

func longerFunction(queue runlane.QueueName, timeout time.Duration) string {
	fix := "shorten the timeout, or lengthen the function's (BridgeTimeout, or the added function's parameter): it " +
		"refuses to work; "
	for _, seconds := range FunctionTimeouts {
		if queue != runlane.DefaultQueue.Name && core.LongestTimeout(time.Duration(seconds)*time.Second) >= timeout {
			fix += fmt.Sprintf(
				"or move its queue: \"runlane functions add NAME --queues %s --timeout %d\"; ", queue, seconds,
			)
			break
		}
	}
	return fix + "a long-lived worker may execute it"
}

// checkIndexes checks that the indexes for lists and ticks can be read, even during a change.
func checkIndexes(ctx context.Context, reader indexReader) (string, error) {
	states, err := reader.Indexes(ctx)
	if err != nil {
		return "", err
	}
	used := 0
	var others []string
	var mild *Warning
	for _, state := range states {
		switch {
		case state.Fault != nil && !state.Readable:
			return "", state.Fault
		case state.Fault != nil && mild == nil:
			mild = &Warning{Message: state.Fault.Message, Fix: state.Fault.Hint}
		case state.Used:
			used++
		default:
			others = append(others, state.Name)
		}
	}
	if mild != nil {
		return "", mild
	}
	detail := count(used, "index answers", "indexes answer")
	if len(others) > 0 {
		detail += "; another version's: " + strings.Join(others, ", ")
	}
	return detail, nil
}

// checkWaiting warns of work that no worker takes. A paused queue is named only if nothing else waits for too long.
func checkWaiting(ctx context.Context, rt *core.Runtime) (string, error) {
	waiting, now := 0, time.Time{}
	states, incomplete := QueuesInUse(ctx, rt)
	var paused error
	for _, state := range states {
		stats, err := rt.Queues().Stats(ctx, state.Queue.Name)
		if stats == nil {
			return "", err
		}
		waiting, now = waiting+stats.Waiting, stats.At
		if stats.OldestWaiting.IsZero() || stats.At.Sub(stats.OldestWaiting) <= overdue {
			continue
		}
		wait, why := whyWaiting(ctx, rt, stats.Oldest)
		late := &Warning{
			Message: fmt.Sprintf("a run of queue %q is due since %s%s", state.Queue.Name, instant(stats.OldestWaiting), why),
			Fix: "\"runlane runs list --status active --queue " + string(state.Queue.Name) +
				"\" shows it, \"runlane runs explain\" says what it waits for",
		}
		if wait != core.WaitPaused {
			return "", late
		}
		if paused == nil {
			paused = late
		}
	}
	pauses, err := rt.Queues().Pauses(ctx)
	if err := cmp.Or(paused, incomplete, err); err != nil {
		return "", err
	}
	detail := fmt.Sprintf("%d due, none for longer than %s", waiting, runlane.FormatDuration(overdue))
	for i := range pauses {
		if pauses[i].Active(now) {
			detail += "; " + pauses[i].Name() + " is paused"
		}
	}
	return detail, nil
}

// whyWaiting explains a run, or returns "" if it cannot be read.
func whyWaiting(ctx context.Context, rt *core.Runtime, id runlane.RunID) (core.Wait, string) {
	why, err := rt.Runs().Explain(ctx, id)
	if err != nil {
		return "", ""
	}
	return why.Wait, fmt.Sprintf("; run %s waits (%s): %s", why.RunID, why.Wait, why.Next)
}

func checkDeadLetters(ctx context.Context, rt *core.Runtime) (string, error) {
	if !rt.Lane().Storage.Capabilities().KeepsDeadLetters {
		return "this storage keeps none", nil
	}
	page, err := rt.DeadLetters().List(ctx, nil)
	if err != nil {
		return "", err
	}
	if len(page.Items) > 0 {
		return "", &Warning{
			Message: fmt.Sprintf(
				"at least %d wakeups were given up, the first %s",
				len(page.Items),
				instant(page.Items[0].Since),
			),
			Fix: "\"runlane deadletters list\" shows why; correct that, then \"runlane deadletters requeue\"",
		}
	}
	return "none", nil
}

// checkEvents reports the events that a bus refused.
func checkEvents(ctx context.Context, reader eventReader) (string, error) {
	again, givenUp, err := reader.RefusedEvents(ctx)
	switch {
	case err != nil:
		return "", err
	case givenUp > 0:
		return "", &Warning{
			Message: fmt.Sprintf("%d events or batches of events could not be sent, and %d are sent again", givenUp, again),
			Fix: "the log of EventSender says why; correct that, then \"aws sqs start-message-move-task\" from the queue " +
				"of EventDeadLettersUrl to that of EventRetriesUrl sends them again (docs/events.md)",
		}
	case again > 0:
		return "", &Warning{
			Message: fmt.Sprintf("the bus refused %d events, which are sent again every 15 minutes for a day", again),
			Fix:     "the log of EventSender says why: the bus, its policy, or a quota",
		}
	default:
		return "none was refused for long", nil
	}
}

// checkSchedules reports schedules with marks that a wrong clock has set.
func checkSchedules(ctx context.Context, rt *core.Runtime) (string, error) {
	kept := 0
	var doubted []string
	for s, err := range rt.Schedules().List(ctx) {
		if err != nil {
			return "", err
		}
		kept++
		if len(s.Doubted) > 0 {
			doubted = append(doubted, fmt.Sprintf("%q (%s)", s.ID, strings.Join(s.Doubted, ", ")))
		}
	}
	if len(doubted) > 0 {
		return "", &Warning{
			Message: "marks lie ahead of this clock, of schedule " + strings.Join(doubted, ", of schedule "),
			Fix: "correct the clocks of this machine and of those that tick: such marks do not count, and the next " +
				"time that a schedule fires replaces them",
		}
	}
	return count(kept, "schedule", "schedules") + ", no mark in the future", nil
}

func checkPublishing(ctx context.Context, rt *core.Runtime) (string, error) {
	sent := 0
	states, _ := QueuesInUse(ctx, rt) // checkWaiting reports the error
	for _, state := range states {
		if !state.Bound {
			continue
		}
		id := unusedID()
		key := lane.RunKey{Environment: rt.Environment(), RunID: runlane.RunID(id)}
		outcomes, err := rt.Lane().Transport.PublishWakeups(ctx, &lane.PublishCommand{Attempts: []lane.PublishAttempt{{
			OutboxRef: lane.OutboxRef{ID: id},
			Wakeup:    lane.Wakeup{RunKey: key, Queue: state.Queue.Name, RequestedAt: time.Now()},
			GroupKey:  id,
		}}})
		if err != nil {
			return "", err
		}
		if len(outcomes) != 1 || outcomes[0].Type != lane.Published {
			failure := &runlane.Error{
				Code:    runlane.ErrTransportPublishFailed,
				Message: fmt.Sprintf("queue %q refused a wakeup", state.Queue.Name),
				Hint:    "check the queue's policy and its kind",
			}
			if len(outcomes) == 1 {
				failure.Message += ": " + outcomes[0].Failure.Message
			}
			return "", failure
		}
		sent++
	}
	return count(sent, "queue takes wakeups", "queues take wakeups"), nil
}
