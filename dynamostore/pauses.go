package dynamostore

import (
	"context"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

type cachedPauses struct {
	lane.Pauses
	at  time.Time // when they were read
	put time.Time // when this process put them; zero: another did
}

// latePut is how long an eventually consistent read may miss this process's own put.
const latePut = 10 * time.Second

// GetPauses implements lane.Storage. Without Exact it reads at most once in lane.MaxPausesAge, for half a unit, and only
// when asked. Concurrent callers share one read.
func (s *Store) GetPauses(ctx context.Context, q lane.PausesQuery) (lane.Pauses, error) {
	if q.Exact {
		raw, err := s.db.Get(ctx, "read pauses", rows.ConfigPK(q.Environment), rows.PausesSK)
		if err != nil {
			return lane.Pauses{}, err
		}
		return rows.ReadPauses(raw)
	}
	if known, ok := s.knownPauses(q.Environment); ok {
		return known, nil
	}
	read := s.pausesFlight.DoChan(q.Environment.Name(), func() (any, error) {
		return s.readPauses(context.WithoutCancel(ctx), q.Environment)
	})
	select {
	case result := <-read:
		p, _ := result.Val.(lane.Pauses)
		p.Entries = slices.Clone(p.Entries) // callers share the result
		return p, result.Err
	case <-ctx.Done():
		return lane.Pauses{}, s.db.Failure(ctx, "read pauses", ctx.Err())
	}
}

func (s *Store) knownPauses(e runlane.Environment) (lane.Pauses, bool) {
	s.pausesMutex.Lock()
	defer s.pausesMutex.Unlock()
	cached, ok := s.pauses[e.Name()]
	if !ok {
		return lane.Pauses{}, false
	}
	if age := s.now().Sub(cached.at); age < 0 || age >= lane.MaxPausesAge {
		return lane.Pauses{}, false
	}
	p := cached.Pauses
	p.Entries = slices.Clone(p.Entries)
	return p, true
}

func (s *Store) readPauses(ctx context.Context, e runlane.Environment) (lane.Pauses, error) {
	now := s.now()
	raw, err := s.db.GetLate(ctx, "read pauses", rows.ConfigPK(e), rows.PausesSK)
	if err != nil {
		return lane.Pauses{}, err
	}
	p, err := rows.ReadPauses(raw)
	if err == nil {
		p = s.keepPauses(e, cachedPauses{Pauses: p, at: now})
	}
	return p, err
}

// keepPauses keeps and returns the newer pauses: a late read may be older than this process's own put.
func (s *Store) keepPauses(e runlane.Environment, next cachedPauses) lane.Pauses {
	s.pausesMutex.Lock()
	defer s.pausesMutex.Unlock()
	if s.pauses == nil {
		s.pauses = map[string]cachedPauses{}
	}
	if own, ok := s.pauses[e.Name()]; ok && own.Version > next.Version && next.at.Sub(own.put) < latePut {
		next.Pauses, next.put = own.Pauses, own.put
	}
	s.pauses[e.Name()] = next
	return next.Pauses
}

// PutPauses implements lane.Storage: one conditional write.
func (s *Store) PutPauses(ctx context.Context, c *lane.PutPausesCommand) (int64, error) {
	if err := c.Validate(); err != nil {
		return 0, err
	}
	if _, err := s.shardCounts(ctx, c.Environment); err != nil { // an environment of a newer format is left alone
		return 0, err
	}
	put, err := rows.PutPauses(c, randomID())
	if err != nil {
		return 0, err
	}
	now := s.now()
	after, ok, err := s.db.Update(ctx, "put pauses", put)
	if err != nil {
		return 0, err
	}
	stored, err := rows.ReadPauses(after)
	if err != nil {
		return 0, err
	}
	if !ok {
		return 0, lane.PausesChanged(stored.Version, c)
	}
	s.keepPauses(c.Environment, cachedPauses{stored, now, now})
	return stored.Version, nil
}
