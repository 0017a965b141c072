package rows

import (
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

// Owner gives a key to a run. It never expires by itself, since an active run must keep its key. A caller that wants
// the key replaces a dead owner: its run failed, released the key by policy, is past its retention, or is gone.
type Owner struct {
	PK          string        `dynamodbav:"pk"`
	SK          string        `dynamodbav:"sk"`
	Run         runlane.RunID `dynamodbav:"ru"`
	PayloadHash string        `dynamodbav:"ph,omitempty"`
	Retention   int64         `dynamodbav:"ir,omitempty"`
	Commit      string        `dynamodbav:"ci,omitempty"` // that created the run; none in items of older programs

	Replaces item.Condition `dynamodbav:"-"` // condition on the dead owner; empty: there is no owner
}

func (o Owner) write() (item.Write, error) {
	raw, err := Marshal(o)
	m := item.Write{After: raw, Condition: item.Absent}
	if o.Replaces.Text != "" {
		m.Condition = o.Replaces
	}
	return m, err
}

// Unchanged requires that this is still the owner. Run IDs can be used again after pruning; commit IDs are unique.
func (o Owner) Unchanged() item.Condition {
	if o.Commit != "" {
		return item.Equal("ci", item.Text(o.Commit))
	}
	return item.Equal("ru", item.Text(string(o.Run))).And(item.Condition{Text: "attribute_not_exists(#ci)"})
}

// OwnersOf returns the owner items of a run's keys, the idempotency key's first.
func OwnersOf(run *runlane.Run, payloadHash string) []Owner {
	var owners []Owner
	key := lane.OwnerKey{Environment: run.Environment, TaskID: run.TaskID}
	if key.Key = run.IdempotencyKey; key.Key != "" {
		owners = append(owners, Owner{
			PK:          IdempotencyPK(key),
			SK:          OwnerSK,
			Run:         run.ID,
			PayloadHash: payloadHash,
			Retention:   storedRetention(run.Retention),
		})
	}
	if key.Key = run.SingletonKey; key.Key != "" {
		owners = append(owners, Owner{PK: SingletonPK(key), SK: OwnerSK, Run: run.ID})
	}
	return owners
}

func IsSingleton(o Owner) bool { return strings.Contains(o.PK, ":single:") }

func OwnerConflict(o Owner, holder runlane.RunID) error {
	if IsSingleton(o) {
		return Conflict(runlane.ConflictSingletonKey, holder, "an active run owns the singleton key")
	}
	return Conflict(runlane.ConflictIdempotencyKey, holder, "a run owns the idempotency key")
}

func (o Owner) RunKey() lane.RunKey {
	environment, _, _ := strings.Cut(o.PK, ":")
	return lane.RunKey{Environment: runlane.Environment(environment), RunID: o.Run}
}

// Holds reports whether the run still holds its key:
//
//	Run                                           Holds its keys
//	active                                        yes; no longer than the window if debounced or throttled
//	succeeded or cancelled, key kept for a time   until creation plus that time
//	finished otherwise                            no; until the end of the window if throttled
//
// See [lane.RetainsKey]. A run without the key is a different run that uses the same ID.
func (o Owner) Holds(run *Run, now time.Time) bool {
	switch {
	case !o.isKeyOf(run):
		return false
	case IsSingleton(o):
		return run.State().Active()
	default:
		return lane.RetainsKey(retention(o.Retention), run.State(), run.Sequence, int64(run.CreatedAt), int64(run.RunAt),
			now.UnixMilli())
	}
}

func (o Owner) isKeyOf(run *Run) bool {
	key := lane.OwnerKey{Environment: run.Key().Environment, TaskID: runlane.TaskID(run.Task), Key: run.IdempotencyKey}
	if !IsSingleton(o) {
		return o.PK == IdempotencyPK(key)
	}
	key.Key = run.SingletonKey
	return o.PK == SingletonPK(key)
}
