package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

const (
	// cleanUpTime is for everything; endTime is what a run has to end after it was cancelled, most of an attempt of the
	// task.
	cleanUpTime = 2 * time.Minute
	endTime     = 20 * time.Second
	// atOnce bounds how many runs are cleaned up in parallel.
	atOnce = 8
)

// cleanUp cancels what is still active and removes every run of the check, those of the plan that were never made
// excepted. Messages that are still on their way find no run and are dropped.
func (s *smoke) cleanUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cleanUpTime)
	defer cancel()
	var ids []runlane.RunID
	for _, p := range s.probes {
		if ids = append(ids, p.id); p.second != "" {
			ids = append(ids, p.second)
		}
	}
	failures, made := make([]error, len(ids)), make([]bool, len(ids))
	var group errgroup.Group // without a context: one failure keeps nothing else from being removed
	group.SetLimit(atOnce)
	for i, id := range ids {
		group.Go(func() error {
			made[i], failures[i] = s.erase(ctx, id)
			return nil
		})
	}
	_ = group.Wait() // failures has them
	for i, err := range failures {
		switch {
		case err != nil:
			s.leftover = append(s.leftover, fmt.Errorf("%s: %w", ids[i], err))
		case made[i]:
			s.removed++
		}
	}
}

// erase ends a run, where it has not ended, and removes it.
func (s *smoke) erase(ctx context.Context, id runlane.RunID) (made bool, err error) {
	run, err := s.rt.Runs().Get(ctx, id)
	if errors.Is(err, runlane.ErrRunNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !run.Status.Terminal() {
		if run, err = s.end(ctx, id); err != nil {
			return true, err
		}
	}
	if run.IdempotencyKey != "" {
		if err := s.release(ctx, run); err != nil {
			return true, err
		}
	}
	return true, s.remove(ctx, run)
}

func (s *smoke) end(ctx context.Context, id runlane.RunID) (*runlane.Run, error) {
	_, cancelErr := s.rt.Runs().Cancel(ctx, id, &core.ChangeOptions{
		Actor:  actor,
		Reason: "the check of the deployment is over",
	})
	ctx, stop := context.WithTimeout(ctx, endTime)
	defer stop()
	run, err := s.rt.Wait(ctx, id) // it may also have ended by itself meanwhile, which is why it could not be cancelled
	if err != nil {
		return nil, errors.Join(cancelErr, err)
	}
	return run, nil
}

// release deletes the owner of the run's idempotency key, also one that no longer counts, which IdempotencyKeys.Reset
// leaves alone.
func (s *smoke) release(ctx context.Context, run *runlane.Run) error {
	_, err := s.db.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &s.table, Key: map[string]types.AttributeValue{
			"pk": text(s.rt.Environment().Name() + ":idem:" + hash(string(run.TaskID), run.IdempotencyKey)),
			"sk": text("owner"),
		},
		ConditionExpression:       aws.String("ru = :run"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":run": text(string(run.ID))},
	})
	if _, others := errors.AsType[*types.ConditionalCheckFailedException](err); others {
		return nil
	}
	return err
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// hash is how the layout spells keys that users choose.
func hash(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil))[:32]
}

// remove deletes the partition of a finished run, its run item last, as docs/internals/layout.md has them. The
// runtime's own way, Runs.Prune, goes by age alone: it would remove the application's runs, too.
func (s *smoke) remove(ctx context.Context, run *runlane.Run) error {
	pk := text(s.rt.Environment().Name() + ":run:" + string(run.ID))
	pages := dynamodb.NewQueryPaginator(s.db, &dynamodb.QueryInput{
		TableName:                 &s.table,
		ConsistentRead:            aws.Bool(true),
		ScanIndexForward:          aws.Bool(false),
		KeyConditionExpression:    aws.String("pk = :pk"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":pk": pk},
	})
	var last *dynamodb.DeleteItemInput
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			in := &dynamodb.DeleteItemInput{
				TableName: &s.table,
				Key:       map[string]types.AttributeValue{"pk": pk, "sk": item["sk"]},
			}
			if sk, ok := item["sk"].(*types.AttributeValueMemberS); ok && sk.Value == "run" {
				last = in
				continue
			}
			if _, err := s.db.DeleteItem(ctx, in); err != nil {
				return err
			}
		}
	}
	if last == nil {
		return nil
	}
	_, err := s.db.DeleteItem(ctx, last)
	return err
}
