package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// bulky makes a payload or output that needs a separate item, of about so many write units.
func bulky(units int) []byte {
	random := rand.New(rand.NewPCG(3, uint64(units))) // fixed bytes
	b := make([]byte, units*1024-300)
	for i := range b {
		b[i] = byte('#' + random.UintN(90))
		if b[i] == '\\' {
			b[i] = '~'
		}
	}
	return append(append([]byte{'"'}, b...), '"')
}

// owned is a creation with both keys.
func owned(key string, payload []byte) *runlane.RunCreated {
	return &runlane.RunCreated{
		Payload: payload, IdempotencyKey: key, SingletonKey: key, Retention: runlane.KeyRetention{TTL: runlane.DefaultIdempotencyTTL},
	}
}

// finished makes a run with the creation and ends it well.
func (w *world) finished(created *runlane.RunCreated, output []byte) *world {
	w.Helper()
	w.create(eager, 0, created).ack().claim(time.Minute, true)
	return w.end(&runlane.RunSucceeded{Attempt: 1, Output: output})
}

func (w *world) pruning() *lane.PruneCommand {
	return &lane.PruneCommand{
		PageQuery: lane.PageQuery{Environment: "test"}, OlderThan: w.now.Add(time.Millisecond), ReleaseOwners: true,
	}
}

func (w *world) prune(c *lane.PruneCommand) *lane.PruneProgress {
	w.Helper()
	progress, err := w.store.PruneRuns(w.step(), c)
	if err != nil {
		w.Fatal(err)
	}
	return progress
}

// remains are the keys of everything in the table, but for the config item.
func (w *world) remains() []string {
	w.Helper()
	var keys []string
	in := &dynamodb.ScanInput{TableName: &w.store.db.Name, ConsistentRead: aws.Bool(true)}
	for {
		out, err := w.store.db.Client.Scan(w.Context(), in)
		if err != nil {
			w.Fatal(err)
		}
		for _, it := range out.Items {
			if pk := item.TextOf(it[item.PK]); !strings.HasSuffix(pk, ":config") {
				keys = append(keys, pk+" "+item.TextOf(it[item.SK]))
			}
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			return keys
		}
	}
}

// pruneClient is one whose plain deletions, detaching and reading of a run's parts are shown to a script before they are sent, with the
// number of the write.
func pruneClient(api API, script func(n int64, what string) answer) *seam {
	var n atomic.Int64
	return &seam{api, func(in any, send func() (any, error)) (any, error) {
		a := answer{commit: true}
		switch in := in.(type) {
		case *dynamodb.QueryInput:
			if in.IndexName == nil {
				a = script(0, readParts)
			}
		case *dynamodb.DeleteItemInput:
			a = script(n.Add(1), item.TextOf(in.Key[item.SK]))
		case *dynamodb.UpdateItemInput:
			a = script(n.Add(1), "detach")
		}
		return a.to(send)
	}}
}

// dyingClient carries out n requests and ends the caller's context with the next, before or after that is carried out.
func dyingClient(api API, n int64, after bool, die func()) *seam {
	var left atomic.Int64
	left.Store(n)
	return &seam{api, func(_ any, send func() (any, error)) (any, error) {
		last := left.Add(-1)
		if last > 0 {
			return send()
		}
		if last == 0 && after {
			if _, err := send(); err != nil {
				return nil, err
			}
		}
		die()
		return nil, context.Canceled
	}}
}

// A process that dies at any request leaves a run that can be read and that the next call finishes, with nothing orphaned.
func TestHazard17_PruningThatDiesAnywhere_IsResumedAndOrphansNothing(t *testing.T) {
	w := newWorld(t)
	alive := w.store.db.Client
	for _, after := range []bool{false, true} {
		for n := int64(20); ; n++ { // the index's shards are read first: 24 requests, 8 at a time
			w.pass(time.Second).finished(owned("key", bulky(3)), bulky(2))
			whole, err := w.store.GetRun(t.Context(), w.key())
			if err != nil {
				t.Fatal(err)
			}
			ctx, die := context.WithCancel(t.Context())
			w.store.db.Client = dyingClient(alive, n, after, die)
			_, err = w.store.PruneRuns(ctx, w.pruning())
			die()
			w.store.db.Client = alive
			w.interrupted(whole)
			w.checked()
			w.prune(w.pruning())
			if left := w.remains(); len(left) != 0 {
				t.Fatalf("died at request %d (carried out: %t): %v are left", n, after, left)
			}
			if err == nil {
				if n < 30 {
					t.Fatalf("pruning took %d requests", n)
				}
				break
			}
			if !errors.Is(err, runlane.ErrOperationCancelled) {
				t.Fatal(err)
			}
		}
	}
}

// interrupted demands that a run whose pruning was interrupted reads without errors: it is there, perhaps without payload, output
// and the end of its history, or it is gone.
func (w *world) interrupted(whole *runlane.Run) {
	w.Helper()
	got, err := w.store.GetRun(w.Context(), w.key())
	if errors.Is(err, runlane.ErrRunNotFound) {
		if left := w.remains(); len(left) != 0 {
			w.Fatalf("the run is gone, and %v are left", left)
		}
		return
	}
	if err != nil {
		w.Fatalf("read under pruning: %v", err)
	}
	if got.Status != whole.Status || got.EventSequence != whole.EventSequence ||
		got.Payload != nil && string(got.Payload) != string(whole.Payload) || got.Output != nil && string(got.Output) != string(whole.Output) {
		w.Fatalf("read under pruning: %+v", got)
	}
	events, err := w.store.ListRunEvents(w.Context(), &lane.EventQuery{PageQuery: lane.PageQuery{Environment: "test"}, RunID: w.run.ID})
	if err != nil {
		w.Fatalf("history under pruning: %v", err)
	}
	for i, e := range events.Items {
		if e.Sequence != int64(i)+1 {
			w.Fatalf("history under pruning has event %d in place %d", e.Sequence, i+1)
		}
	}
}

// The key of a finished run is taken over after pruning has read its owner: the new owner stays.
func TestHazard17_OwnerTakenOverMeanwhile_Stays(t *testing.T) {
	w := newWorld(t)
	w.create(eager, 0, owned("key", []byte(`{}`))).ack().claim(time.Minute, true)
	w.end(&runlane.RunFailed{Attempt: 1, Failure: runlane.Failure{Code: runlane.ErrTaskFailed}})
	command := w.pruning()
	alive := w.store.db.Client
	w.store.db.Client = pruneClient(alive, func(n int64, _ string) answer {
		if n == 1 {
			w.store.db.Client = alive
			w.pass(time.Second).create(eager, 0, owned("key", []byte(`{}`)))
		}
		return answer{commit: true}
	})
	if progress := w.prune(command); progress.Pruned != 1 {
		t.Fatalf("%+v", progress)
	}
	for what, lookup := range map[string]func(context.Context, lane.OwnerKey) (*runlane.Run, error){
		"idempotency": w.store.GetRunByIdempotencyKey, "singleton": w.store.GetRunBySingletonKey,
	} {
		run, err := lookup(t.Context(), lane.OwnerKey{Environment: "test", TaskID: "bench.noop", Key: "key"})
		if err != nil || run.ID != w.run.ID {
			t.Errorf("%s: %v %v", what, run, err)
		}
	}
	w.checked()
}

// Another caller finishes the run, and its id is used again, between this caller's reading and its deletions.
func TestPrune_IdUsedAgainMeanwhile_LeavesTheNewRunAlone(t *testing.T) {
	t.Parallel()
	for _, at := range []string{readParts, rows.OwnerSK, "detach", rows.PayloadSK, rows.OutputSK, rows.ProgressSK, "log:0000000005", "log:0000000001", rows.RunSK} {
		t.Run(at, func(t *testing.T) {
			w := newWorld(t)
			w.keyed("key", bulky(3))
			other, client := w.another(), w.store.db.Client
			var pruned *lane.PruneProgress
			var left []string
			script := pruneClient(client, func(_ int64, sk string) answer {
				if sk == at && pruned == nil {
					pruned = other.prune(w.pruning())
					other.again = w.run.ID
					other.pass(time.Hour).keyed("key", bulky(2))
					left = other.remains()
				}
				return answer{commit: true}
			})
			w.store.db.Client = script
			first, err := w.store.PruneRuns(t.Context(), w.pruning())
			if err != nil {
				t.Fatal(err)
			}
			if first.Pruned != 0 || pruned == nil || pruned.Pruned != 1 {
				t.Errorf("%+v and %+v", first, pruned)
			}
			if now := other.remains(); !slices.Equal(now, left) {
				t.Errorf("%v are left, want %v of the new run", now, left)
			}
			other.checked()
			if run, err := other.store.GetRun(t.Context(), other.key()); err != nil || !bytes.Equal(run.Payload, bulky(2)) {
				t.Errorf("%v %v", run, err)
			}
		})
	}
}

// keyed makes a run that has everything a run can have, and ends it.
func (w *world) keyed(key string, payload []byte) *world {
	w.Helper()
	w.create(eager, 0, owned(key, payload)).ack().claim(time.Minute, true)
	if err := w.store.PutProgress(w.Context(), w.key(), w.run.Lease.Token, runlane.Progress{Attempt: 1, Note: "half", At: w.now}); err != nil {
		w.Fatal(err)
	}
	return w.end(&runlane.RunSucceeded{Attempt: 1, Output: payload})
}

// readParts stands for the read of what a run consists of, in a script.
const readParts = "read"

// What a deletion meets on its way is not the caller's business, and a lost answer is not counted as another's work.
func TestPrune_ConflictsThrottlingAndLostAnswers_AreRepeated(t *testing.T) {
	w := newWorld(t)
	w.finished(owned("key", bulky(3)), nil)
	alive := w.store.db.Client
	w.store.db.Client = pruneClient(alive, func(n int64, what string) answer {
		if what == "detach" {
			return answer{commit: true}
		}
		switch n % 4 {
		case 1:
			return answer{false, &types.TransactionConflictException{}}
		case 2:
			return answer{false, &types.ProvisionedThroughputExceededException{}}
		case 3:
			return answer{true, errLostAnswer}
		default:
			return answer{commit: true}
		}
	})
	if progress := w.prune(w.pruning()); progress.Pruned != 1 {
		t.Errorf("%+v", progress)
	}
	if left := w.remains(); len(left) != 0 {
		t.Errorf("%v are left", left)
	}
}

// Any other refusal ends the call at once, with the run still to be found.
func TestPrune_Refused_SaysSoAndIsResumed(t *testing.T) {
	w := newWorld(t)
	w.finished(nil, nil)
	alive, calls := w.store.db.Client, 0
	w.store.db.Client = pruneClient(alive, func(_ int64, what string) answer {
		if what == readParts {
			return answer{commit: true}
		}
		calls++
		return answer{false, &types.ResourceNotFoundException{}}
	})
	_, err := w.store.PruneRuns(t.Context(), w.pruning())
	if !errors.Is(err, runlane.ErrConfigurationInvalid) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
	w.store.db.Client = alive
	if progress := w.prune(w.pruning()); progress.Pruned != 1 || len(w.remains()) != 0 {
		t.Errorf("%+v %v", progress, w.remains())
	}
}

// An owner whose run is gone is dead: without ReleaseOwners a run past its time goes with its owner, and one whose owner could not
// be removed would not keep its key either.
func TestHazard17_OwnerWithoutRun_CountsAsDead(t *testing.T) {
	w := newWorld(t)
	w.finished(owned("key", []byte(`{}`)), nil)
	key := lane.OwnerKey{Environment: "test", TaskID: "bench.noop", Key: "key"}
	owner, err := w.store.db.Get(t.Context(), "test", rows.IdempotencyPK(key), rows.OwnerSK)
	if err != nil || owner == nil {
		t.Fatal(owner, err)
	}
	w.prune(w.pruning())
	if _, _, err := w.store.db.Update(t.Context(), "test", &item.Update{
		Key: item.KeyOf(owner), Expression: "SET #ru = :ru, #ir = :ir", Condition: item.Condition{Text: "attribute_not_exists(#pk)"},
		Values: item.Item{":ru": owner["ru"], ":ir": owner["ir"]},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.GetRunByIdempotencyKey(t.Context(), key); !errors.Is(err, runlane.ErrRunNotFound) {
		t.Fatalf("lookup: %v", err)
	}
	w.pass(time.Second).create(eager, 0, owned("key", []byte(`{}`)))
	if run, err := w.store.GetRunByIdempotencyKey(t.Context(), key); err != nil || run.ID != w.run.ID {
		t.Fatal(fmt.Sprint(run, err))
	}
	w.checked()
}
