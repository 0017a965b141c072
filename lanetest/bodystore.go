package lanetest

import (
	"bytes"
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/runlane/runlane-go/lane"
)

// RunBodyStore runs the conformance cases of a store of bodies. Each call of made returns an empty one.
func RunBodyStore(t *testing.T, made func(t testing.TB) lane.BodyStore) {
	t.Helper()
	for name, run := range map[string]func(*testing.T, lane.BodyStore){
		"PutGet": bodyPutGet, "List": bodyList, "Delete": bodyDelete,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, made(t))
		})
	}
}

func bodyPutGet(t *testing.T, s lane.BodyStore) {
	ctx, key := t.Context(), "env/run_1.j/k0-abc"
	if _, err := s.Get(ctx, key); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("a missing body: %v", err)
	}
	for _, body := range [][]byte{[]byte("first"), bytes.Repeat([]byte{0, 255}, 1<<20), []byte("last")} {
		if err := s.Put(ctx, key, body); err != nil {
			t.Fatal(err)
		}
		got := must(s.Get(ctx, key))(t)
		if !bytes.Equal(got, body) {
			t.Fatalf("got %d bytes of %d, or others", len(got), len(body))
		}
		clear(got)
		if !bytes.Equal(must(s.Get(ctx, key))(t), body) {
			t.Fatal("the caller's copy is the store's")
		}
		clear(body)
	}
}

func bodyList(t *testing.T, s lane.BodyStore) {
	ctx := t.Context()
	if got := must(s.List(ctx, "e/", "", 9))(t); len(got) != 0 {
		t.Fatalf("an empty store lists %v", got)
	}
	begun := time.Now().Add(-time.Minute)
	// In the order of their bytes: a slash is after a dash and a dot, and before a digit.
	keys := []string{"e/a-b/1-x", "e/a.b/1-x", "e/a/1-x", "e/a/1-y", "e/a0/1-x", "e/b/1-x"}
	for _, key := range append([]string{"d/a/1-x", "f/a/1-x", "ee/a/1-x"}, keys...) {
		if err := s.Put(ctx, key, []byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	for _, limit := range []int{1, 2, 100} {
		var listed []string
		for after := ""; ; {
			page := must(s.List(ctx, "e/", after, limit))(t)
			for _, body := range page {
				if body.Bytes != int64(len(body.Key)) || body.At.Before(begun) {
					t.Errorf("listed %+v", body)
				}
				listed, after = append(listed, body.Key), body.Key
			}
			if len(page) < limit {
				break
			}
		}
		equal(t, "listed", keys, listed)
	}
	page := must(s.List(ctx, "e/", "e/a/", 2))(t)
	if len(page) != 2 || page[0].Key != "e/a/1-x" {
		t.Errorf("after a prefix: %v", page)
	}
}

func bodyDelete(t *testing.T, s lane.BodyStore) {
	ctx := t.Context()
	for _, key := range []string{"e/a/1-x", "e/a/1-y", "e/b/1-x"} {
		if err := s.Put(ctx, key, []byte("body")); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second time they are missing
		if err := s.Delete(ctx, "e/a/1-x", "e/b/1-x"); err != nil {
			t.Fatal(err)
		}
	}
	page := must(s.List(ctx, "", "", 9))(t)
	if len(page) != 1 || page[0].Key != "e/a/1-y" {
		t.Fatalf("left are %v", page)
	}
	if err := s.Put(ctx, "e/b/1-x", []byte("again")); err != nil {
		t.Fatal(err)
	}
	equal(t, "again", "again", string(must(s.Get(ctx, "e/b/1-x"))(t)))
}
