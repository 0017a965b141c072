package crash_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// small is a module with one effect behind an interface, behind a closure, in a goroutine and behind a type argument.
var small = map[string]string{
	"lane/lane.go": `package lane

import "context"

type Storage interface {
	Append(ctx context.Context) error
	Read(ctx context.Context) error
}`,
	"core/core.go": `package core

import (
	"context"
	"golang.org/x/sync/errgroup"
	"` + module + `/lane"
)

type Runtime struct{ storage lane.Storage }

func (rt *Runtime) Trigger(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() error { return rt.commit(ctx) })
	if err := rt.storage.Read(ctx); err != nil {
		return err
	}
	rt.commit(ctx)
	return group.Wait()
}

func (rt *Runtime) commit(ctx context.Context) error { return rt.storage.Append(ctx) }

func (rt *Runtime) Look(ctx context.Context) error { return rt.storage.Read(ctx) }`,
	"dynamostore/store.go": `package dynamostore

import (
	"context"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

type Store struct{ client *dynamodb.Client }

func (s Store) Append(ctx context.Context) error {
	return inParallel([]int{1}, func(n int) error { return s.write(ctx) })
}

func inParallel[T any](all []T, do func(T) error) error { return do(all[0]) }

func (s Store) write(ctx context.Context) error {
	return retried[int](func() error {
		_, err := s.client.PutItem(ctx, &dynamodb.PutItemInput{})
		return err
	})
}

func retried[T any](do func() error) error { return do() }

func (s Store) Read(ctx context.Context) error {
	_, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{})
	return err
}`,
}

func TestScan_CallsThatLeadToAnEffect_AreSitesAndNoOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range small {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sites, err := scan(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, s := range sites {
		got = append(got, s.name)
	}
	want := []string{
		"core.(*Runtime).Trigger > core.(*Runtime).commit (1)",
		"core.(*Runtime).Trigger > core.(*Runtime).commit (2)",
		"core.(*Runtime).commit > lane.Storage.Append",
		"dynamostore.Store.Append > dynamostore.Store.write",
		"dynamostore.Store.write > PutItem",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if at := sites[0]; at.file != "core/core.go" || at.first != 13 || at.last != 13 {
		t.Errorf("the first site is at %s:%d-%d", at.file, at.first, at.last)
	}
}
