//go:build proof

package sqlitelane_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/crash"
	"github.com/runlane/runlane-go/internal/proof/lives"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane"
)

// Random lives of several processes over one file: they die between any two calls, act at once, and time jumps.
func TestLives_SQLite(t *testing.T) {
	t.Parallel()
	while := 20 * time.Second
	if testing.Short() {
		while = 3 * time.Second
	}
	path, lived := newPath(t), 0
	started(t, path, 0)
	lives.Run(t, "sqlite", 5000, while, func(now func() time.Time) *lives.World {
		lived++
		return fileWorld(t, path, runlane.Environment(fmt.Sprint("life-", lived)), now)
	})
}

// fileWorld is an environment of a file that each process of a life opens by itself.
func fileWorld(t *testing.T, path string, environment runlane.Environment, now func() time.Time) *lives.World {
	t.Helper()
	var opened []*sqlitelane.Storage
	w := &lives.World{Environment: environment, DoorMeets: true, Begin: func(int) {}, Calm: func() {}}
	w.Storage = func(bool) lane.Storage {
		s := sqlitelane.NewRelaxedStorage(path, now)
		if err := s.Start(context.Background()); err != nil {
			t.Fatal(err)
		}
		opened = append(opened, s)
		return s
	}
	checker := w.Storage(true).(*sqlitelane.Storage)
	w.Check = func(ctx context.Context, _ bool) ([]lane.Violation, error) {
		return crash.Violations(ctx, checker, environment)
	}
	w.Close = func(ctx context.Context) (err error) {
		for _, s := range opened {
			err = errors.Join(err, s.Close(ctx))
		}
		return err
	}
	return w
}
