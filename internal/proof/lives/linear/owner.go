package linear

import (
	"context"
	"errors"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
)

// Operations on the owner of a key.
const (
	linearCreate = "create"
	linearEnd    = "end"
	linearReset  = "reset"
	linearRead   = "read"
)

// ownedKey is who owns a key: an active run, or a finished one that is retained.
type ownedKey struct {
	owner  runlane.RunID
	active bool
}

func singletonSubject() linearSubject {
	o := linearOwners{
		options: func(key string) lanetest.RunOptions { return lanetest.RunOptions{SingletonKey: key} },
		retains: func(string) bool { return false },
		kind:    runlane.ConflictSingletonKey,
		read:    lane.Storage.GetRunBySingletonKey,
	}
	return linearSubject{
		needs: func(c lane.StorageCapabilities) bool { return c.EnforcesSingleton && c.ReadsRunHistory },
		act:   o.act,
		begin: ownedKey{},
		step:  o.step,
		meets: []string{"create done", "create refused", "end done", "read done"},
	}
}

func idempotencySubject() linearSubject {
	o := linearOwners{
		options: func(key string) lanetest.RunOptions {
			if retainsKey(key) {
				return lanetest.RunOptions{IdempotencyKey: key, Retention: runlane.KeyRetention{TTL: time.Hour}}
			}
			return lanetest.RunOptions{IdempotencyKey: key, Retention: runlane.KeyRetention{WhileActive: true}}
		},
		retains: retainsKey,
		kind:    runlane.ConflictIdempotencyKey,
		read:    lane.Storage.GetRunByIdempotencyKey,
		resets:  true,
	}
	return linearSubject{
		needs: func(c lane.StorageCapabilities) bool { return c.EnforcesIdempotency && c.ReadsRunHistory },
		act:   o.act,
		begin: ownedKey{},
		step:  o.step,
		meets: []string{"create done", "create refused", "end done", "read done"},
	}
}

// retainsKey is so for every other key.
func retainsKey(key string) bool { return key[len(key)-1]%2 == 0 }

// linearOwners are the two kinds of keys.
type linearOwners struct {
	options func(key string) lanetest.RunOptions
	retains func(key string) bool // beyond the end of the run
	kind    runlane.ConflictKind
	read    func(s lane.Storage, ctx context.Context, key lane.OwnerKey) (*runlane.Run, error)
	resets  bool
}

func (o linearOwners) act(c *linearClient) {
	key := c.key()
	owner := c.owners[key]
	switch roll := c.choose.IntN(10); {
	case roll < 2:
		o.lookUp(c, key)
	case roll < 4 && o.resets:
		o.reset(c, key)
	case roll < 8 && owner != "":
		o.end(c, key, owner)
	default:
		o.create(c, key)
	}
}

func (o linearOwners) create(c *linearClient, key string) {
	command := c.Creation(c.t, time.Now(), o.options(key))
	id := command.Projected.ID
	c.guard.Lock()
	c.known[id] = command.Projected
	c.guard.Unlock()
	answer, heard := c.writes(
		linearCall{Key: key, Kind: linearCreate, Run: id},
		func(s lane.Storage) (linearAnswer, error) {
			_, err := s.AppendRunEvents(c.ctx(), command)
			if isConflict(err, o.kind) {
				e, _ := errors.AsType[*runlane.Error](err)
				return linearAnswer{Result: linearRefused, Run: e.RunID}, nil
			}
			return linearAnswer{Result: linearDone}, err
		},
	)
	switch {
	case heard && answer.Result == linearRefused:
		c.owners[key] = answer.Run
	case heard || answer.Result == linearUnknown:
		c.owners[key] = id
		if c.chance(0.4) {
			o.end(c, key, id)
		}
	}
}

// end cancels a run that owned the key when the client last heard of it. Any client may have made the run.
func (o linearOwners) end(c *linearClient, key string, id runlane.RunID) {
	c.guard.Lock()
	run := c.known[id]
	c.guard.Unlock()
	if run == nil {
		c.problem(linearEnd, key, "the key is said to belong to a run that was never made: "+string(id))
		return
	}
	transition, ok := c.project(run, time.Now(), &runlane.RunCancelled{})
	if !ok {
		return
	}
	answer, _ := c.writes(linearCall{Key: key, Kind: linearEnd, Run: id}, func(s lane.Storage) (linearAnswer, error) {
		_, err := s.AppendRunEvents(c.ctx(), &lane.AppendCommand{Transition: transition})
		if isConflict(err, runlane.ConflictEventSequence) {
			return linearAnswer{Result: linearRefused}, nil
		}
		return linearAnswer{Result: linearDone}, err
	})
	if answer.Result == linearDone {
		c.closes(id)
	}
	if !o.retains(key) {
		delete(c.owners, key)
	}
}

func (o linearOwners) reset(c *linearClient, key string) {
	_, _ = c.writes(linearCall{Key: key, Kind: linearReset}, func(s lane.Storage) (linearAnswer, error) {
		err := s.ResetIdempotencyKey(c.ctx(), c.owner(key))
		switch e, _ := errors.AsType[*runlane.Error](err); {
		case isConflict(err, o.kind):
			return linearAnswer{Result: linearRefused, Run: e.RunID}, nil
		case runlane.CodeOf(err) == runlane.ErrRunNotFound:
			return linearAnswer{Result: linearNone}, nil
		}
		return linearAnswer{Result: linearDone}, err
	})
	delete(c.owners, key)
}

func (o linearOwners) lookUp(c *linearClient, key string) {
	answer, heard := c.reads(linearCall{Key: key, Kind: linearRead}, func(s lane.Storage) (linearAnswer, error) {
		run, err := o.read(s, c.ctx(), c.owner(key))
		if runlane.CodeOf(err) == runlane.ErrRunNotFound {
			return linearAnswer{Result: linearNone}, nil
		}
		if err != nil {
			return linearAnswer{}, err
		}
		return linearAnswer{Result: linearDone, Run: run.ID}, nil
	})
	if heard {
		c.owners[key] = answer.Run
	}
}

// step is the contract of owners, one operation after the other.
func (o linearOwners) step(state any, call linearCall, answer linearAnswer) (bool, any) {
	s := state.(ownedKey)
	unknown := answer.Result == linearUnknown
	switch call.Kind {
	case linearCreate:
		if answer.Result == linearRefused {
			return s.owner != "" && s.owner == answer.Run, s
		}
		if s.owner == "" {
			return true, ownedKey{call.Run, true}
		}
		return unknown, s
	case linearEnd:
		owns := s.owner == call.Run && s.active
		if answer.Result == linearRefused {
			return !owns, s
		}
		switch {
		case owns && o.retains(call.Key):
			return true, ownedKey{s.owner, false}
		case owns:
			return true, ownedKey{}
		}
		return unknown, s
	case linearReset:
		retained := s.owner != "" && !s.active
		switch {
		case answer.Result == linearNone:
			return s.owner == "", s
		case answer.Result == linearRefused:
			// the owner is active, or is not the retained one that the caller met any more
			return !retained || s.owner != answer.Run, s
		case retained:
			return true, ownedKey{}
		}
		return unknown, s
	default:
		return s.owner == answer.Run, s
	}
}
