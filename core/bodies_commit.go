package core

import (
	"bytes"
	"context"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// kept is a transition for the storage, with the bodies of new events put into the store.
type kept struct {
	whole  *lane.Transition // the caller's; never changed
	stored lane.Transition
	sealed runlane.Sealed // of the resulting run
}

// keep puts the large bodies of a transition. nil: it has none, and its run has none, so the storage gets it as it is.
// An existing run is committed without its bodies: the storage has them.
func (s *bodyStorage) keep(ctx context.Context, t *lane.Transition) (*kept, error) {
	p := t.Projected
	if p == nil || p.Sealed == nil && !s.large(p.Payload) && !s.large(p.Output) {
		return nil, nil
	}
	projected := *p
	k := &kept{whole: t, stored: *t}
	if p.Sealed != nil {
		k.sealed = *p.Sealed
	}
	projected.Payload, projected.Output, projected.Sealed = nil, nil, nil
	k.stored.Projected = &projected
	key, run := t.Key(), instanceOf(p)
	for i := range t.Events {
		switch body := t.Events[i].Body.(type) {
		case *runlane.RunCreated:
			stored, err := s.put(ctx, key, run, body.Payload)
			if err != nil {
				return nil, err
			}
			created := *body
			created.Payload, projected.Payload = stored, stored
			k.replace(i, &created, stored, &k.sealed.PayloadApart)
		case *runlane.RunDebounced:
			if body.Payload == nil {
				continue // of a copied history: run.created has the latest
			}
			stored, err := s.put(ctx, key, run, body.Payload)
			if err != nil {
				return nil, err
			}
			debounced := *body
			debounced.Payload, projected.Payload, k.sealed.PayloadApart = stored, stored, runlane.BodyApart{}
			k.replace(i, &debounced, stored, &k.sealed.PayloadApart)
		case *runlane.RunSucceeded:
			stored, err := s.put(ctx, key, run, body.Output)
			if err != nil {
				return nil, err
			}
			succeeded := *body
			succeeded.Output, projected.Output = stored, stored
			k.replace(i, &succeeded, stored, &k.sealed.OutputApart)
		default: // the others have no bytes
		}
	}
	return k, nil
}

func (k *kept) replace(i int, body runlane.EventBody, stored []byte, about *runlane.BodyApart) {
	k.stored.Events = slices.Clone(k.stored.Events)
	k.stored.Events[i].Body = body
	if r, ok := lane.ParseReference(stored); ok {
		*about = r.BodyApart
	}
}

// commit puts the whole bodies into the storage's commit, which is the caller's copy. A nil k has none.
func (k *kept) commit(commit *lane.Commit) {
	if k == nil || commit == nil {
		return
	}
	run := k.whole.Projected
	if commit.Run != nil {
		commit.Run.Payload, commit.Run.Output = bytes.Clone(run.Payload), bytes.Clone(run.Output)
		if k.sealed != (runlane.Sealed{}) {
			commit.Run.Sealed = new(k.sealed)
		}
	}
	for i := range commit.Events {
		switch body := commit.Events[i].Body.(type) {
		case *runlane.RunCreated:
			body.Payload = bytes.Clone(run.Payload)
		case *runlane.RunSucceeded:
			body.Output = bytes.Clone(run.Output)
		default: // the others have no bytes
		}
	}
}

// AppendRunEvents implements lane.Storage.
func (s *bodyStorage) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	k, err := s.keep(ctx, &c.Transition)
	if err != nil {
		return nil, err
	}
	if k != nil {
		given := *c
		given.Transition = k.stored
		c = &given
	}
	commit, err := s.Storage.AppendRunEvents(ctx, c)
	k.commit(commit)
	return commit, err
}

// ReserveRunDispatch implements lane.Storage.
func (s *bodyStorage) ReserveRunDispatch(ctx context.Context, c *lane.ReserveCommand) (*lane.Acquisition, error) {
	k, err := s.keep(ctx, &c.Transition)
	if err != nil {
		return nil, err
	}
	if k != nil {
		given := *c
		given.Transition = k.stored
		c = &given
	}
	return k.acquired(s.Storage.ReserveRunDispatch(ctx, c))
}

// ClaimRunLease implements lane.Storage.
func (s *bodyStorage) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	k, err := s.keep(ctx, &c.Transition)
	if err != nil {
		return nil, err
	}
	if k != nil {
		given := *c
		given.Transition = k.stored
		c = &given
	}
	return k.acquired(s.Storage.ClaimRunLease(ctx, c))
}

func (k *kept) acquired(got *lane.Acquisition, err error) (*lane.Acquisition, error) {
	if err == nil && got.Outcome == lane.Acquired {
		k.commit(got.Commit)
	}
	return got, err
}

// HeartbeatRunLease implements lane.Storage.
func (s *bodyStorage) HeartbeatRunLease(ctx context.Context, c *lane.HeartbeatCommand) (*lane.Commit, error) {
	k, err := s.keep(ctx, &c.Transition)
	if err != nil {
		return nil, err
	}
	if k != nil {
		c = &lane.HeartbeatCommand{Transition: k.stored}
	}
	commit, err := s.Storage.HeartbeatRunLease(ctx, c)
	k.commit(commit)
	return commit, err
}

// NotifyEnd implements lane.Storage.
func (s *bodyStorage) NotifyEnd(ctx context.Context, c *lane.NotifyCommand) (*lane.Commit, error) {
	k, given, err := s.keepResume(ctx, c.Resume)
	if err != nil {
		return nil, err
	}
	if k != nil {
		command := *c
		command.Resume = given
		c = &command
	}
	commit, err := s.Storage.NotifyEnd(ctx, c)
	k.commit(commit)
	return commit, err
}

// keepResume returns the end of a wait for the storage.
func (s *bodyStorage) keepResume(
	ctx context.Context, resume *lane.AppendCommand,
) (k *kept, given *lane.AppendCommand, err error) {
	if resume == nil {
		return nil, nil, nil
	}
	if k, err = s.keep(ctx, &resume.Transition); err != nil || k == nil {
		return nil, resume, err
	}
	command := *resume
	command.Transition = k.stored
	return k, &command, nil
}
