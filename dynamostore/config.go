package dynamostore

import (
	"context"
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
)

// shardCounts say how many partitions each kind of marker is spread over. Growing: readers learn of the larger number first.
type shardCounts struct {
	Write int `dynamodbav:"wr"`
	Read  int `dynamodbav:"rd"`
}

const (
	defaultShards = 8
	shardsCached  = time.Minute
)

// shardCounts are the environment's counts, read about once a minute, once for all who ask at the same time.
func (s *Store) shardCounts(ctx context.Context, e runlane.Environment) (shardCounts, error) {
	if counts, ok := s.cachedShards(e); ok {
		return counts, nil
	}
	read := s.shardsFlight.DoChan(e.Name(), func() (any, error) {
		return s.readShardCounts(context.WithoutCancel(ctx), e)
	})
	select {
	case result := <-read:
		counts, _ := result.Val.(shardCounts)
		return counts, result.Err
	case <-ctx.Done():
		return shardCounts{}, s.db.Failure(ctx, "read config", ctx.Err())
	}
}

func (s *Store) cachedShards(e runlane.Environment) (counts shardCounts, ok bool) {
	s.shardsMutex.Lock()
	defer s.shardsMutex.Unlock()
	cached, ok := s.shards[e.Name()]
	return cached.shardCounts, ok && s.now().Sub(cached.at) < shardsCached
}

func (s *Store) readShardCounts(ctx context.Context, e runlane.Environment) (shardCounts, error) {
	now := s.now()
	counts := shardCounts{Write: defaultShards, Read: defaultShards}
	raw, err := s.db.Get(ctx, "read config", configPK(e), skShards)
	if err != nil {
		return counts, err
	}
	if raw != nil {
		if err := unmarshalItem(raw, &counts); err != nil {
			return counts, err
		}
		if counts.Write < 1 || counts.Read < counts.Write {
			return counts, &runlane.Error{
				Code: runlane.ErrInvariantViolation, Message: fmt.Sprintf("the config item says %d shards to write and %d to read", counts.Write, counts.Read),
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
