package embedded

import (
	"iter"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// KeyKind is a kind of key that runs own. sqlitelane stores the numbers.
type KeyKind int64

// The kinds of keys, in the order in which a creation is judged by them.
const (
	IdempotencyKey KeyKind = 1
	SingletonKey   KeyKind = 2
)

var keyKinds = [...]KeyKind{IdempotencyKey, SingletonKey}

func (k KeyKind) String() string {
	if k == SingletonKey {
		return "singleton"
	}
	return "idempotency"
}

// of returns the key of that kind.
func (k KeyKind) of(idempotency, singleton string) string {
	if k == SingletonKey {
		return singleton
	}
	return idempotency
}

// Keys yields the keys that the run has.
func Keys(run *runlane.Run) iter.Seq2[KeyKind, string] {
	return func(yield func(KeyKind, string) bool) {
		for _, kind := range keyKinds {
			if key := kind.of(run.IdempotencyKey, run.SingletonKey); key != "" && !yield(kind, key) {
				return
			}
		}
	}
}

// Owner is the run that is stored as the owner of a key. The zero value is none.
type Owner struct {
	ID        runlane.RunID
	State     *State
	Retention runlane.KeyRetention
}

// owns reports whether the run owns a key of that kind at now. Only a retained idempotency key has a finished owner.
func (o Owner) owns(kind KeyKind, now Millis) bool {
	return o.State != nil && (kind == SingletonKey || o.State.Retains(o.Retention, now))
}

// JudgeOwners refuses a new run if one of its keys has an owner, the idempotency key first. An import creates runs in
// the past, when a key may have had an owner that has expired since: judged is by the storage's clock, or by the time
// of the creation if that is later.
func JudgeOwners(t *lane.Transition, clock Millis, owner func(kind KeyKind, key string) (Owner, error)) error {
	now := max(clock, At(t.Events[0].OccurredAt))
	for kind, key := range Keys(t.Projected) {
		o, err := owner(kind, key)
		switch {
		case err != nil:
			return err
		case !o.owns(kind, now):
			continue
		case kind == SingletonKey:
			return Conflict(runlane.ConflictSingletonKey, o.ID, "another active run owns the singleton key")
		default:
			return Conflict(runlane.ConflictIdempotencyKey, o.ID, "another run owns the idempotency key")
		}
	}
	return nil
}

// FindOwner refuses a stored owner that does not own its key any more.
func FindOwner(o Owner, kind KeyKind, now Millis) error {
	if !o.owns(kind, now) {
		return noOwner(kind)
	}
	return nil
}

// JudgeReset refuses to free an idempotency key that no run owns, or an active one.
func JudgeReset(o Owner, now Millis) error {
	switch {
	case !o.owns(IdempotencyKey, now):
		return noOwner(IdempotencyKey)
	case o.State.Status.Active():
		return Conflict(runlane.ConflictIdempotencyKey, o.ID, "the run that owns the idempotency key is still active")
	default:
		return nil
	}
}

// noOwner does not repeat the key: keys often contain personal data.
func noOwner(kind KeyKind) error {
	return &runlane.Error{
		Code: runlane.ErrRunNotFound, Message: "no run owns the " + kind.String() + " key",
		Hint: "check the task and the key; the owner may have finished, or its retention may be over",
	}
}
