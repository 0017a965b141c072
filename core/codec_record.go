package core

import (
	"context"
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

func (s *codedStorage) KeepRecord(ctx context.Context, c *lane.KeepCommand) (*lane.StepRecord, error) {
	if err := s.check(fmt.Sprintf("result of step %q", c.Record.Name), c.Record.Result); err != nil {
		return nil, err
	}
	command, changed := c, ""
	if s.codec != nil && len(c.Record.Result) > 0 {
		given := *c
		stored, _, err := s.encodeBody(ctx, recordBody(c.RunKey, &c.Record), c.Record.Result)
		if err != nil {
			return nil, err
		}
		given.Record.Result = stored
		command, changed = &given, codecChanged(c.Record.Result, stored)
	}
	kept, err := s.Storage.KeepRecord(ctx, command)
	if err != nil {
		return nil, withCodecSizes(err, changed)
	}
	return kept, s.openRecord(ctx, c.RunKey, kept)
}

func (s *codedStorage) ListRecords(
	ctx context.Context, q *lane.RecordQuery,
) (*runlane.Page[lane.StepRecord], error) {
	page, err := s.Storage.ListRecords(ctx, q)
	if err != nil {
		return nil, err
	}
	key := lane.RunKey{Environment: q.Environment, RunID: q.RunID}
	for i := range page.Items {
		if err := s.openRecord(ctx, key, &page.Items[i]); err != nil {
			return nil, err
		}
	}
	return page, nil
}

func (s *codedStorage) openRecord(ctx context.Context, key lane.RunKey, r *lane.StepRecord) (err error) {
	if r.Fault != "" {
		return nil
	}
	r.Result, _, r.Fault, err = s.decodeBody(ctx, recordBody(key, r), r.Result)
	return err
}

func recordBody(key lane.RunKey, r *lane.StepRecord) runlane.BodyRef {
	kind := runlane.BodyStep
	if r.Kind == runlane.StepKindLog {
		kind = runlane.BodyLog
	}
	return runlane.BodyRef{
		Environment: runlane.Environment(key.Environment.Name()),
		RunID:       key.RunID,
		Kind:        kind,
		Name:        r.Name,
	}
}

func codecChanged(plain, stored []byte) string {
	return fmt.Sprintf("the codec returned %d bytes for %d", len(stored), len(plain))
}

// withCodecSizes adds to a rejection for size that encoded bytes were counted.
func withCodecSizes(err error, changed string) error {
	refused, ok := asError(err)
	if !ok || refused.Code != runlane.ErrValidationFailed || changed == "" {
		return err
	}
	explained := *refused
	explained.Message += "; " + changed
	return &explained
}
