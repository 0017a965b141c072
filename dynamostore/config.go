package dynamostore

import (
	"context"
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
)

const shardsCached = time.Minute

// shardCounts are the environment's numbers of shards, read about once a minute. Concurrent callers share one read.
func (s *Store) shardCounts(ctx context.Context, e runlane.Environment) (rows.Shards, error) {
	if counts, ok := s.knownShards(e); ok {
		return counts, nil
	}
	read := s.shardsFlight.DoChan(e.Name(), func() (any, error) {
		return s.readShardCounts(context.WithoutCancel(ctx), e)
	})
	select {
	case result := <-read:
		counts, _ := result.Val.(rows.Shards)
		return counts, result.Err
	case <-ctx.Done():
		return rows.Shards{}, s.db.Failure(ctx, "read config", ctx.Err())
	}
}

func (s *Store) knownShards(e runlane.Environment) (counts rows.Shards, ok bool) {
	s.shardsMutex.Lock()
	defer s.shardsMutex.Unlock()
	cached, ok := s.shards[e.Name()]
	return cached.Shards, ok && s.now().Sub(cached.at) < shardsCached
}

func (s *Store) readShardCounts(ctx context.Context, e runlane.Environment) (rows.Shards, error) {
	now := s.now()
	counts := rows.Shards{Write: rows.DefaultShards, Read: rows.DefaultShards}
	raw, err := s.db.Get(ctx, "read config", rows.ConfigPK(e), rows.ShardsSK)
	if err != nil {
		return counts, err
	}
	if raw != nil {
		if err := rows.Unmarshal(raw, &counts); err != nil {
			return counts, err
		}
		if counts.Write < 1 || counts.Read < counts.Write {
			return counts, &runlane.Error{
				Code: runlane.ErrInvariantViolation,
				Message: fmt.Sprintf(
					"the config item says %d shards to write and %d to read",
					counts.Write,
					counts.Read,
				),
				Hint: "readers must know at least as many shards as writers",
			}
		}
	}
	s.shardsMutex.Lock()
	defer s.shardsMutex.Unlock()
	if s.shards == nil {
		s.shards = map[string]cachedShards{}
	}
	s.shards[e.Name()] = cachedShards{counts, now}
	return counts, nil
}
