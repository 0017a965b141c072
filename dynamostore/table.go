package dynamostore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
)

// checkTable compares the table with what this version reads and writes.
func (s *Store) checkTable(ctx context.Context) error {
	if s.table == "" {
		return &runlane.Error{Code: runlane.ErrConfigurationInvalid, Message: "no table is named", Hint: "set RUNLANE_TABLE"}
	}
	var out *dynamodb.DescribeTableOutput
	err := s.send(ctx, func(ctx context.Context) (err error) {
		out, err = s.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &s.table})
		return err
	})
	if err != nil {
		return s.failure(ctx, "look at the table", err)
	}
	faults := keyFaults("the table", out.Table.KeySchema, attrPK, attrSK)
	faults = append(faults, indexFaults(out.Table, indexDue, attrDueP, attrDueA)...)
	faults = append(faults, indexFaults(out.Table, indexDone, attrDoneP, attrDoneA)...)
	if len(faults) == 0 {
		return nil
	}
	return &runlane.Error{
		Code: runlane.ErrConfigurationInvalid, Message: fmt.Sprintf("table %q does not have the layout: %s", s.table, strings.Join(faults, "; ")),
		Hint: "create the table by the template, or locally by make local-up; an index cannot be changed, only made anew",
	}
}

func indexFaults(table *types.TableDescription, name, hash, sort string) []string {
	for _, index := range table.GlobalSecondaryIndexes {
		if aws.ToString(index.IndexName) == name {
			return keyFaults("index "+name, index.KeySchema, hash, sort)
		}
	}
	return []string{"index " + name + " is missing"}
}

func keyFaults(what string, schema []types.KeySchemaElement, hash, sort string) []string {
	if len(schema) == 2 && aws.ToString(schema[0].AttributeName) == hash && aws.ToString(schema[1].AttributeName) == sort {
		return nil
	}
	return []string{fmt.Sprintf("%s is not keyed by %s and %s", what, hash, sort)}
}

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
		return shardCounts{}, s.failure(ctx, "read config", ctx.Err())
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
	raw, err := s.getItem(ctx, "read config", configPK(e), skShards)
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

type cachedShards struct {
	shardCounts
	at time.Time
}
