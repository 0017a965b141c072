package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/runlane/runlane-go/sqlitelane"
)

// fileName is Runlane's subject in one file.
const fileName = "runlane file"

// fileSubjects are Runlane's lane in one SQLite file, with each of its durabilities.
func fileSubjects(_ context.Context, p *place) ([]*subject, func() error, error) {
	var subjects []*subject
	var opened atomic.Int64
	for _, durability := range []struct {
		group  group
		sync   sqlitelane.Sync
		fewest int
	}{{process, sqlitelane.SyncNormal, 1_000}, {machine, sqlitelane.SyncFull, 300}} {
		subjects = append(subjects, &subject{
			name: fileName, group: durability.group, fewest: durability.fewest,
			setup: fmt.Sprintf(
				"sqlitelane.Open with Sync %s, the rest as it comes; a new file for each session; every run, "+
					"its history included, is kept",
				durability.sync,
			),
			open: func(ctx context.Context, handle func(job)) (session, error) {
				path := filepath.Join(p.dir, fmt.Sprintf("runlane-%d.db", opened.Add(1)))
				l, err := sqlitelane.Open(ctx, path, &sqlitelane.Options{Sync: durability.sync})
				if err != nil {
					return nil, err
				}
				return openRunlane(ctx, l, "", "", handle, func(context.Context) error { return os.Remove(path) })
			},
		})
	}
	return subjects, nil, nil
}
