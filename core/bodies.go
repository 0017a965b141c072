package core

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/apart"
	"github.com/runlane/runlane-go/lane"
)

// bodyStorage keeps large bodies in the lane's store of bodies, below the codec: its caller has whole bodies, the
// storage references. A body is put before the commit that refers to it, and removed after its run.
type bodyStorage struct {
	lane.Storage

	bodies *lane.Bodies
	logger *slog.Logger
}

// keepApart wraps the storage if the lane has a store of bodies.
func (rt *Runtime) keepApart() {
	rt.limits = rt.lane.Storage
	if rt.lane.Bodies == nil {
		return
	}
	with := *rt.lane
	with.Storage = &bodyStorage{Storage: rt.lane.Storage, bodies: rt.lane.Bodies, logger: rt.logger}
	rt.lane = &with
}

// checkSize refuses a body above the runtime's bound. what is "payload" or the like.
func (rt *Runtime) checkSize(what string, body []byte) error {
	if len(body) <= rt.maxBody {
		return nil
	}
	e := &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		Message: fmt.Sprintf("%s has %d bytes, more than %d", what, len(body), rt.maxBody),
		Hint:    "store the bulk elsewhere and pass a reference",
	}
	if rt.lane.Bodies != nil && len(body) <= runlane.MaxBodyBytes {
		e.Hint += ", or raise core.Options.MaxBodyBytes"
	}
	return e
}

// boundBodies sets the runtime's bound.
func (rt *Runtime) boundBodies(most int) error {
	switch rt.maxBody = runlane.MaxPayloadBytes; {
	case most == 0 || most == rt.maxBody:
		return nil
	case most < 0 || most > runlane.MaxBodyBytes:
		return invalidOption(fmt.Sprintf("use 0 for %d, or up to %d", rt.maxBody, runlane.MaxBodyBytes),
			"Options.MaxBodyBytes is %d", most)
	case most > rt.maxBody && rt.lane.Bodies == nil:
		return invalidOption("give the lane a store of bodies, or leave it 0",
			"Options.MaxBodyBytes is %d, and the lane keeps no bodies apart from its storage", most)
	}
	rt.maxBody = most
	return nil
}

// Unwrap lets lane.As find the storage's abilities.
func (s *bodyStorage) Unwrap() lane.Storage { return s.Storage }

func (s *bodyStorage) large(body []byte) bool { return len(body) > s.bodies.Above }

// put returns the bytes for the storage: the body, or a reference to it in the store.
func (s *bodyStorage) put(ctx context.Context, key lane.RunKey, run *lane.RunInstance, body []byte) ([]byte, error) {
	if !s.large(body) {
		return body, nil
	}
	r := lane.NewReference(run.CreatedAt, body)
	if err := s.bodies.Store.Put(ctx, r.Key(key), body); err != nil {
		e := bodiesFailed(ctx, run.RunID, err)
		e.Meta = map[string]string{"outcome": "not committed"}
		return nil, e
	}
	return r.Stored(), nil
}

// get returns the body for stored bytes, and what is known about a body kept apart. fault: it cannot be had.
func (s *bodyStorage) get(
	ctx context.Context, key lane.RunKey, stored []byte,
) (body []byte, about runlane.BodyApart, fault string, err error) {
	if !lane.IsReference(stored) {
		return stored, runlane.BodyApart{}, "", nil
	}
	r, ok := lane.ParseReference(stored)
	switch {
	case !ok:
		return nil, runlane.BodyApart{}, unknownForm, nil
	case apart.Left(ctx):
		return nil, r.BodyApart, "", nil
	}
	body, err = s.bodies.Store.Get(ctx, r.Key(key))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, r.BodyApart, fmt.Sprintf("its %d bytes are missing in the store of bodies", r.Bytes), nil
	case err != nil:
		return nil, r.BodyApart, "", bodiesFailed(ctx, key.RunID, err)
	case !r.Matches(body):
		return nil, r.BodyApart, "the store of bodies has other bytes than were put there", nil
	}
	return body, r.BodyApart, "", nil
}

func bodiesFailed(ctx context.Context, run runlane.RunID, err error) *runlane.Error {
	if ctx.Err() != nil {
		if e, ok := asError(cancelled(ctx, run)); ok {
			return e
		}
	}
	if e, ok := asError(err); ok {
		failed := *e
		return &failed
	}
	return &runlane.Error{
		Code:      runlane.ErrStorageUnavailable,
		Message:   "the store of bodies failed",
		RunID:     run,
		Hint:      "the cause is the store's own error",
		Retryable: true,
		Cause:     safeCause(err),
	}
}

func instanceOf(run *runlane.Run) *lane.RunInstance {
	return &lane.RunInstance{RunID: run.ID, CreatedAt: run.CreatedAt}
}

// whole puts the bodies into a run that was read.
func (s *bodyStorage) whole(ctx context.Context, run *runlane.Run, err error) (*runlane.Run, error) {
	if err != nil || run == nil || !lane.IsReference(run.Payload) && !lane.IsReference(run.Output) {
		return run, err
	}
	key, about := lane.RunKey{Environment: run.Environment, RunID: run.ID}, runlane.Sealed{}
	if run.Payload, about.PayloadApart, about.PayloadFault, err = s.get(ctx, key, run.Payload); err != nil {
		return nil, err
	}
	if run.Output, about.OutputApart, about.OutputFault, err = s.get(ctx, key, run.Output); err != nil {
		return nil, err
	}
	run.Sealed = &about
	return run, nil
}

// GetRun implements lane.Storage.
func (s *bodyStorage) GetRun(ctx context.Context, key lane.RunKey) (*runlane.Run, error) {
	run, err := s.Storage.GetRun(ctx, key)
	return s.whole(ctx, run, err)
}

// GetRuns implements lane.Storage.
func (s *bodyStorage) GetRuns(ctx context.Context, q *lane.RunsQuery) ([]*runlane.Run, error) {
	runs, err := s.Storage.GetRuns(ctx, q)
	if err != nil || q.WithoutPayload {
		return runs, err
	}
	for _, run := range runs {
		if _, err := s.whole(ctx, run, nil); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// GetRunByIdempotencyKey implements lane.Storage.
func (s *bodyStorage) GetRunByIdempotencyKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	run, err := s.Storage.GetRunByIdempotencyKey(ctx, key)
	return s.whole(ctx, run, err)
}

// GetRunBySingletonKey implements lane.Storage.
func (s *bodyStorage) GetRunBySingletonKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	run, err := s.Storage.GetRunBySingletonKey(ctx, key)
	return s.whole(ctx, run, err)
}

// InspectRun implements lane.Storage.
func (s *bodyStorage) InspectRun(ctx context.Context, q *lane.InspectQuery) (*lane.Inspection, error) {
	seen, err := s.Storage.InspectRun(ctx, q)
	if err == nil {
		_, err = s.whole(ctx, seen.Run, nil)
	}
	if err != nil {
		return nil, err
	}
	return seen, nil
}

// ListRunEvents implements lane.Storage. It leaves out bodies that cannot be had; the run has the reason.
func (s *bodyStorage) ListRunEvents(
	ctx context.Context, q *lane.EventQuery,
) (*runlane.Page[runlane.EventRecord], error) {
	page, err := s.Storage.ListRunEvents(ctx, q)
	if err != nil {
		return nil, err
	}
	key := lane.RunKey{Environment: q.Environment, RunID: q.RunID}
	for i := range page.Items {
		switch body := page.Items[i].Body.(type) {
		case *runlane.RunCreated:
			body.Payload, _, _, err = s.get(ctx, key, body.Payload)
		case *runlane.RunSucceeded:
			body.Output, _, _, err = s.get(ctx, key, body.Output)
		default: // the others have no bytes
		}
		if err != nil {
			return nil, err
		}
	}
	return page, nil
}

// CheckOutput implements lane.Storage.
func (s *bodyStorage) CheckOutput(run runlane.RunID, output []byte) error {
	if s.large(output) {
		return nil
	}
	return s.Storage.CheckOutput(run, output)
}

// CheckPayload implements lane.Storage.
func (s *bodyStorage) CheckPayload(run runlane.RunID, payload []byte) error {
	if s.large(payload) {
		return nil
	}
	return s.Storage.CheckPayload(run, payload)
}

// listedBodies is how many bodies one List returns.
const listedBodies = 1000

// PruneRuns implements lane.Storage. Bodies go after their runs: a crash in between leaves them without a run, and
// [Runs.OrphanedBodies] finds them.
func (s *bodyStorage) PruneRuns(ctx context.Context, c *lane.PruneCommand) (*lane.PruneProgress, error) {
	progress, err := s.Storage.PruneRuns(ctx, c)
	if progress != nil && len(progress.Removed) > 0 {
		limited := afterCommit(ctx)
		defer limited.stop()
		if err := s.remove(limited, c.Environment, progress.Removed); err != nil {
			s.logger.LogAttrs(ctx, slog.LevelWarn, "bodies of pruned runs were not removed; doctor finds them",
				errorAttrs(bodiesFailed(limited, "", err))...)
		}
	}
	return progress, err
}

// remove removes the bodies of runs. It walks through runs and bodies in the order of the keys: runs without bodies,
// which may be all of them, cost no request of their own.
func (s *bodyStorage) remove(ctx context.Context, environment runlane.Environment, runs []lane.RunInstance) error {
	prefixes := make([]string, len(runs))
	for i, run := range runs {
		prefixes[i] = lane.BodiesOf(environment, run)
	}
	slices.Sort(prefixes)
	for after := prefixes[0]; ; {
		page, err := s.bodies.Store.List(ctx, lane.BodiesIn(environment), after, listedBodies)
		if err != nil {
			return err
		}
		var gone []string
		for _, body := range page {
			for len(prefixes) > 0 && prefixes[0] < body.Key && !strings.HasPrefix(body.Key, prefixes[0]) {
				prefixes = prefixes[1:]
			}
			if len(prefixes) > 0 && strings.HasPrefix(body.Key, prefixes[0]) {
				gone = append(gone, body.Key)
			}
			after = body.Key
		}
		if len(gone) > 0 {
			if err := s.bodies.Store.Delete(ctx, gone...); err != nil {
				return err
			}
		}
		if len(page) < listedBodies || len(prefixes) == 0 {
			return nil
		}
		after = max(after, prefixes[0])
	}
}
