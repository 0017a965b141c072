package sqlitelane

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

const (
	// bodiesAbove is where a file of its own begins to be faster than the database's overflow pages.
	bodiesAbove = 1 << 20
	// bodiesEnding is the ending of the folder with the bodies.
	bodiesEnding = "-bodies"
	// unfinished begins the names of files that are being written.
	unfinished = ".put-"
)

// bodyStore keeps each body in a file of a folder beside the database: folder/environment/run/body.
type bodyStore struct {
	folder  string
	relaxed bool // do not wait for the disk
}

func newBodyStore(path string, relaxed bool) *bodyStore {
	return &bodyStore{folder: path + bodiesEnding, relaxed: relaxed}
}

func (s *bodyStore) path(key string) string { return filepath.Join(s.folder, filepath.FromSlash(key)) }

// Put implements lane.BodyStore. The body and the names that lead to it are on disk when it returns.
func (s *bodyStore) Put(ctx context.Context, key string, body []byte) error {
	if err := embedded.Ended(ctx); err != nil {
		return err
	}
	path := s.path(key)
	// A concurrent Delete may remove the run's empty folder.
	for range 3 {
		err := s.put(path, body)
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return s.put(path, body)
}

func (s *bodyStore) put(path string, body []byte) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(folder, unfinished)
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	if err == nil && !s.relaxed {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if s.relaxed {
		return nil
	}
	for ; len(folder) >= len(filepath.Dir(s.folder)); folder = filepath.Dir(folder) {
		if err := syncFolder(folder); err != nil {
			return err
		}
	}
	return nil
}

// Get implements lane.BodyStore.
func (s *bodyStore) Get(ctx context.Context, key string) ([]byte, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	return os.ReadFile(s.path(key))
}

// List implements lane.BodyStore.
func (s *bodyStore) List(ctx context.Context, prefix, after string, limit int) ([]lane.ListedBody, error) {
	l := listing{ctx: ctx, store: s, prefix: prefix, after: after, limit: limit}
	err := l.walk("")
	return l.page, err
}

// listing is a walk through the folders in the order of the keys.
type listing struct {
	ctx           context.Context
	store         *bodyStore
	prefix, after string
	limit         int
	page          []lane.ListedBody
}

func (l *listing) walk(folder string) error {
	if err := embedded.Ended(l.ctx); err != nil {
		return err
	}
	entries, err := os.ReadDir(l.store.path(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no body was ever kept, or a Delete removed the folder
	}
	if err != nil {
		return err
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() {
			name += "/" // sorts like a key
		}
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		key := folder + name
		whole, isFolder := strings.CutSuffix(key, "/")
		switch {
		case len(l.page) == l.limit:
			return nil
		case isFolder && l.mayHold(key):
			err = l.walk(key)
		case !isFolder && strings.HasPrefix(name, unfinished):
			l.store.tidy(whole)
		case !isFolder && key > l.after && strings.HasPrefix(key, l.prefix):
			err = l.add(whole)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tidy removes a file that a process left unfinished long ago.
func (s *bodyStore) tidy(key string) {
	if info, err := os.Stat(s.path(key)); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
		_ = os.Remove(s.path(key))
	}
}

// mayHold reports whether keys in the folder may belong to the page.
func (l *listing) mayHold(folder string) bool {
	return (strings.HasPrefix(folder, l.prefix) || strings.HasPrefix(l.prefix, folder)) &&
		(folder > l.after || strings.HasPrefix(l.after, folder))
}

func (l *listing) add(key string) error {
	info, err := os.Stat(l.store.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed meanwhile
	}
	if err != nil {
		return err
	}
	l.page = append(l.page, lane.ListedBody{Key: key, Bytes: info.Size(), At: info.ModTime()})
	return nil
}

// Delete implements lane.BodyStore. It removes folders that become empty.
func (s *bodyStore) Delete(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		if err := embedded.Ended(ctx); err != nil {
			return err
		}
		path := s.path(key)
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		_ = os.Remove(filepath.Dir(path)) // of a run with other bodies, it stays
	}
	return nil
}

// copyBodies puts the bodies beside one file that are missing beside another there: as further names of the same files,
// which no one modifies, or as copies on another disk.
func copyBodies(ctx context.Context, from, to string) error {
	source, target := newBodyStore(from, false), newBodyStore(to, false)
	for after := ""; ; {
		page, err := source.List(ctx, "", after, copiedBodies)
		if err != nil {
			return refused(err, "the bodies in %s cannot be read", source.folder)
		}
		for _, body := range page {
			after = body.Key
			if err := source.copyTo(target, body.Key); err != nil && !errors.Is(err, fs.ErrNotExist) { // pruned meanwhile
				return refused(err, "a body cannot be written in %s", target.folder)
			}
		}
		if len(page) < copiedBodies {
			return nil
		}
	}
}

const copiedBodies = 1000

func (s *bodyStore) copyTo(target *bodyStore, key string) error {
	path := target.path(key)
	if _, err := os.Stat(path); err == nil {
		return nil // content and key belong together
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if os.Link(s.path(key), path) == nil {
		return syncFolder(filepath.Dir(path))
	}
	body, err := os.ReadFile(s.path(key))
	if err != nil {
		return err
	}
	return target.put(path, body)
}
