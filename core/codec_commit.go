package core

import (
	"bytes"
	"context"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

type coded struct {
	plain   *lane.Transition // core's; never changed
	stored  lane.Transition
	sealed  runlane.Sealed // of the resulting run
	changed string         // see codecChanged
}

// encodeTransition makes the storage's transition. An existing run is committed without its bodies: the storage has
// them, and encoding again would give other bytes.
func (s *codedStorage) encodeTransition(ctx context.Context, t *lane.Transition) (*coded, error) {
	if t.Projected == nil {
		return &coded{plain: t, stored: *t}, nil // the storage rejects it
	}
	projected := *t.Projected
	c := &coded{plain: t, stored: *t}
	if projected.Sealed != nil {
		c.sealed = *projected.Sealed
	}
	projected.Payload, projected.Output, projected.Sealed = nil, nil, nil
	// A hash of the plain payload would confirm a guess.
	c.stored.Projected, c.stored.PayloadHash = &projected, ""
	of := runlane.BodyRef{Environment: runlane.Environment(projected.Environment.Name()), RunID: projected.ID}
	for i := range t.Events {
		switch body := t.Events[i].Body.(type) {
		case *runlane.RunCreated:
			of.TaskID, of.Output = body.TaskID, false
			stored, key, err := s.encodeBody(ctx, of, body.Payload)
			if err != nil {
				return nil, err
			}
			created := *body
			created.Payload, projected.Payload, c.sealed.PayloadKey = stored, stored, key
			c.replace(i, &created, body.Payload, stored)
		case *runlane.RunDebounced:
			if body.Payload == nil {
				continue // of a copied history: run.created has the latest
			}
			of.TaskID, of.Output = projected.TaskID, false
			stored, key, err := s.encodeBody(ctx, of, body.Payload)
			if err != nil {
				return nil, err
			}
			debounced := *body
			debounced.Payload, projected.Payload, c.sealed.PayloadKey, c.sealed.PayloadFault = stored, stored, key, ""
			c.replace(i, &debounced, body.Payload, stored)
		case *runlane.RunSucceeded:
			of.TaskID, of.Output = "", true
			stored, key, err := s.encodeBody(ctx, of, body.Output)
			if err != nil {
				return nil, err
			}
			succeeded := *body
			succeeded.Output, projected.Output, c.sealed.OutputKey = stored, stored, key
			c.replace(i, &succeeded, body.Output, stored)
		default: // the others have no bytes
		}
	}
	return c, nil
}

func (c *coded) replace(i int, body runlane.EventBody, plain, stored []byte) {
	c.changed = codecChanged(plain, stored)
	c.stored.Events = slices.Clone(c.stored.Events)
	c.stored.Events[i].Body = body
}

// commit puts the plain bodies into the storage's commit, which is the caller's copy.
func (c *coded) commit(commit *lane.Commit) {
	if commit == nil {
		return
	}
	run := c.plain.Projected
	if commit.Run == nil && c.plain.Creates() {
		commit.Run = lane.RunAtRest(run)
	}
	if commit.Run != nil {
		commit.Run.Payload, commit.Run.Output = bytes.Clone(run.Payload), bytes.Clone(run.Output)
		sealed := c.sealed
		if about := commit.Run.Sealed; about != nil {
			sealed.PayloadApart, sealed.OutputApart = about.PayloadApart, about.OutputApart
		}
		if sealed != (runlane.Sealed{}) {
			commit.Run.Sealed = &sealed
		}
	}
	for i := range min(len(commit.Events), len(c.plain.Events)) {
		switch body := commit.Events[i].Body.(type) {
		case *runlane.RunCreated:
			body.Payload = bytes.Clone(run.Payload)
		case *runlane.RunSucceeded:
			body.Output = bytes.Clone(run.Output)
		default: // the others have no bytes
		}
	}
}

func (s *codedStorage) AppendRunEvents(ctx context.Context, command *lane.AppendCommand) (*lane.Commit, error) {
	commit, err := s.append(ctx, command)
	if run := command.Transition.Projected; err == nil && s.ends != nil && run.Status.Terminal() {
		s.ends.notify(endOf{run: run.ID})
	}
	return commit, err
}

// checkSizes refuses new bodies above the runtime's bound. Most callers have checked theirs before.
func (s *codedStorage) checkSizes(t *lane.Transition) error {
	for i := range t.Events {
		switch body := t.Events[i].Body.(type) {
		case *runlane.RunCreated:
			return s.check("payload", body.Payload)
		case *runlane.RunDebounced:
			return s.check("payload", body.Payload)
		case *runlane.RunSucceeded:
			return s.check("output", body.Output)
		default: // the others have no bytes
		}
	}
	return nil
}

func (s *codedStorage) append(ctx context.Context, command *lane.AppendCommand) (*lane.Commit, error) {
	if err := s.checkSizes(&command.Transition); err != nil {
		return nil, err
	}
	if s.codec == nil {
		return s.Storage.AppendRunEvents(ctx, command)
	}
	c, err := s.encodeTransition(ctx, &command.Transition)
	if err != nil {
		return nil, err
	}
	commit, err := s.Storage.AppendRunEvents(ctx, c.appended(command))
	if err != nil {
		return nil, withCodecSizes(err, c.changed)
	}
	c.commit(commit)
	return commit, nil
}

// appended is the command with the stored transition.
func (c *coded) appended(command *lane.AppendCommand) *lane.AppendCommand {
	given := *command
	given.Transition = c.stored
	return &given
}

func (s *codedStorage) ReserveRunDispatch(
	ctx context.Context, command *lane.ReserveCommand,
) (*lane.Acquisition, error) {
	if s.codec == nil {
		return s.Storage.ReserveRunDispatch(ctx, command)
	}
	c, err := s.encodeTransition(ctx, &command.Transition)
	if err != nil {
		return nil, err
	}
	given := *command
	given.Transition = c.stored
	return c.acquired(s.Storage.ReserveRunDispatch(ctx, &given))
}

func (s *codedStorage) ClaimRunLease(ctx context.Context, command *lane.ClaimCommand) (*lane.Acquisition, error) {
	if s.codec == nil {
		return s.Storage.ClaimRunLease(ctx, command)
	}
	c, err := s.encodeTransition(ctx, &command.Transition)
	if err != nil {
		return nil, err
	}
	given := *command
	given.Transition = c.stored
	return c.acquired(s.Storage.ClaimRunLease(ctx, &given))
}

func (c *coded) acquired(got *lane.Acquisition, err error) (*lane.Acquisition, error) {
	if err == nil && got.Outcome == lane.Acquired {
		c.commit(got.Commit)
	}
	return got, err
}

func (s *codedStorage) HeartbeatRunLease(ctx context.Context, command *lane.HeartbeatCommand) (*lane.Commit, error) {
	if s.codec == nil {
		return s.Storage.HeartbeatRunLease(ctx, command)
	}
	c, err := s.encodeTransition(ctx, &command.Transition)
	if err != nil {
		return nil, err
	}
	commit, err := s.Storage.HeartbeatRunLease(ctx, &lane.HeartbeatCommand{Transition: c.stored})
	if err == nil {
		c.commit(commit)
	}
	return commit, err
}
