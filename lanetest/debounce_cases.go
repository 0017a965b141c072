package lanetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Owners of keys and Events.
func debounceCases() []storageCase {
	needs := needsBoth(needsIdempotency, needsLeases)
	return []storageCase{
		{"ALaterTriggerReplacesThePayloadAndTheTime", needsBoth(needs, needsHistory), debounceReplaces},
		{"ADebouncedRunHasItsKeyUntilItIsDue", needs, debounceKey},
		{"AClaimAndALaterTriggerHaveOneWinner", needs, debounceRace},
		{"NothingIsDueAtTheEarlierTime", needsBoth(needs, needsOutbox), debounceDue},
	}
}

// debounced is a run that waits for the last trigger of its key until the time.
func debounced(key string, runAt time.Time) RunOptions {
	return RunOptions{
		IdempotencyKey: key, Retention: runlane.KeyRetention{UntilDue: true}, RunAt: runAt,
		Debounced: &runlane.Debounced{Latest: runAt.Add(24 * time.Hour), Triggers: 1},
	}
}

func debounceReplaces(t *testing.T, b *bundle) {
	at := time.Now()
	o := debounced("key", at.Add(time.Hour))
	o.Payload = filler(20_000)
	run := b.create(at, o)
	for i, payload := range [][]byte{[]byte(`{"n":1}`), filler(30_000), filler(31_000), filler(900), []byte(`2`)} {
		at = at.Add(time.Minute)
		c := b.Append(t, run, at, &runlane.RunDebounced{RunAt: at.Add(time.Hour), Payload: payload})
		commit := b.append(c)
		run = commit.Run
		what := fmt.Sprintf("after trigger %d", i+2)
		wantBytes(t, what, payload, run.Payload)
		equal(t, what+", the run", run, b.get(run.ID))
		equal(t, what+", the key's owner", run, must(b.storage.GetRunByIdempotencyKey(b.ctx(),
			lane.OwnerKey{Environment: b.env, TaskID: TaskID, Key: "key"}))(t))
		history := b.history(b.key(run.ID))
		equal(t, what+", the event", commit.Events[0], history[len(history)-1])
		wantBytes(t, what+", the first event", payload, history[0].Body.(*runlane.RunCreated).Payload)
	}
	equal(t, "what the run knows", &runlane.Debounced{
		Latest: runlane.UTCMillis(o.Debounced.Latest), Triggers: 6,
	}, run.Debounced)
	claimed := b.claim(run, run.RunAt, run.RunAt.Add(time.Minute))
	wantBytes(t, "the claimed run", []byte(`2`), claimed.Payload)
	ended := b.push(claimed, run.RunAt, Succeeded(claimed, nil))
	equal(t, "the ended run", ended, b.get(run.ID))
}

// The lookup's command has no instant: these runs were made by the real clock.
func debounceKey(t *testing.T, b *bundle) {
	now := time.Now()
	for _, c := range []struct {
		name string
		made time.Time
		end  runlane.Status // "": it waits
		owns bool
	}{
		{"waits for its time", now, "", true},
		{"is due", now.Add(-2 * time.Hour), "", false},
		{"runs", now.Add(-2 * time.Hour), runlane.StatusRunning, false},
		{"was cancelled before its time", now, runlane.StatusCancelled, false},
	} {
		run := b.create(c.made, debounced(c.name, c.made.Add(time.Hour)))
		if c.end == runlane.StatusRunning {
			b.claim(run, run.RunAt, now.Add(time.Hour))
		} else if c.end == runlane.StatusCancelled {
			b.end(run, c.made.Add(time.Minute), c.end)
		}
		owner := lane.OwnerKey{Environment: b.env, TaskID: TaskID, Key: c.name}
		_, err := b.storage.GetRunByIdempotencyKey(b.ctx(), owner)
		second := b.Creation(t, now, debounced(c.name, now.Add(time.Hour)))
		if c.owns {
			if err != nil {
				t.Fatalf("%s: lookup: %v", c.name, err)
			}
			_, err = b.storage.AppendRunEvents(b.ctx(), second)
			wantConflict(t, err, runlane.ConflictIdempotencyKey, run.ID)
			continue
		}
		if runlane.CodeOf(err) != runlane.ErrRunNotFound {
			t.Fatalf("%s: lookup: %v", c.name, err)
		}
		b.append(second)
		found := must(b.storage.GetRunByIdempotencyKey(b.ctx(), owner))(t)
		equal(t, c.name+": the owner after the next trigger", second.Projected.ID, found.ID)
	}
}

func debounceRace(t *testing.T, b *bundle) {
	at := time.Now().Add(-2 * time.Hour)
	run := b.create(at, debounced("key", at.Add(time.Hour)))
	late := b.Append(t, run, at.Add(time.Minute), &runlane.RunDebounced{RunAt: at.Add(2 * time.Hour), Payload: []byte(`1`)})
	b.claim(run, run.RunAt, run.RunAt.Add(time.Minute))
	_, err := b.storage.AppendRunEvents(b.ctx(), late)
	wantConflict(t, err, runlane.ConflictEventSequence, run.ID)

	run = b.create(at, debounced("other", at.Add(time.Hour)))
	stale := b.Claim(t, run, run.RunAt, run.RunAt.Add(time.Minute), b.NewToken())
	moved := b.push(run, at.Add(time.Minute), &runlane.RunDebounced{RunAt: at.Add(time.Hour), Payload: []byte(`2`)})
	got := must(b.storage.ClaimRunLease(b.ctx(), stale))(t)
	equal(t, "the outcome of the claim", lane.LostSequence, got.Outcome)
	wantBytes(t, "the claimed payload", []byte(`2`), b.claim(moved, moved.RunAt, moved.RunAt.Add(time.Minute)).Payload)
}

func debounceDue(t *testing.T, b *bundle) {
	at := time.Now()
	made := b.append(b.Creation(t, at, debounced("key", at.Add(time.Hour))))
	run := b.push(made.Run, at.Add(time.Minute), &runlane.RunDebounced{RunAt: at.Add(2 * time.Hour), Payload: []byte(`1`)})
	row := func(at time.Time) int { return len(b.outboxOf(at, made.Outbox[0].ID)) }
	found := func(at time.Time) int {
		q := &lane.DueQuery{PageQuery: lane.PageQuery{Environment: b.env}, At: at}
		deliver := must(b.storage.ListRunsNeedingDelivery(b.ctx(), q))(t)
		return len(deliver.Items) + len(must(b.storage.ListRunnableRuns(b.ctx(), q))(t).Items)
	}
	early := at.Add(90 * time.Minute)
	equal(t, "what is found at the earlier time", 0, found(early)+len(b.outbox(early))+row(early))
	b.eventually(func() string { return difference(2, found(run.RunAt)) })
	equal(t, "the rows to publish when it is due", 1, row(run.RunAt))
}
