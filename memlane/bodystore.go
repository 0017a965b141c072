package memlane

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// bodyStore keeps large bodies as the other lanes do, so that programs meet the same rules.
type bodyStore struct {
	mu     sync.Mutex
	bodies map[string]storedBody
}

type storedBody struct {
	bytes []byte // never modified
	at    time.Time
}

// NewBodyStore returns an empty store of bodies, for lanes from parts.
func NewBodyStore() lane.BodyStore { return &bodyStore{bodies: map[string]storedBody{}} }

// Put implements lane.BodyStore.
func (s *bodyStore) Put(ctx context.Context, key string, body []byte) error {
	if err := embedded.Ended(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies[key] = storedBody{bytes.Clone(body), time.Now()}
	return nil
}

// Get implements lane.BodyStore.
func (s *bodyStore) Get(ctx context.Context, key string) ([]byte, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	body, ok := s.bodies[key]
	if !ok {
		return nil, fmt.Errorf("body %s: %w", key, fs.ErrNotExist)
	}
	return bytes.Clone(body.bytes), nil
}

// List implements lane.BodyStore.
func (s *bodyStore) List(ctx context.Context, prefix, after string, limit int) ([]lane.ListedBody, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var page []lane.ListedBody
	for _, key := range slices.Sorted(maps.Keys(s.bodies)) {
		if len(page) < limit && key > after && strings.HasPrefix(key, prefix) {
			page = append(page, lane.ListedBody{Key: key, Bytes: int64(len(s.bodies[key].bytes)), At: s.bodies[key].at})
		}
	}
	return page, nil
}

// Delete implements lane.BodyStore.
func (s *bodyStore) Delete(ctx context.Context, keys ...string) error {
	if err := embedded.Ended(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		delete(s.bodies, key)
	}
	return nil
}
