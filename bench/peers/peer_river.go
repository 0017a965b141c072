package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const (
	// River's own benchmark uses these two.
	riverTunedCooldown = 2 * time.Millisecond
	riverTunedPoll     = 20 * time.Millisecond
	// riverEvents is more completions than ever wait for their counter: River drops what has no room.
	riverEvents = 100_000
)

// riverSubjects is River on PostgreSQL: as it comes and tuned, waiting for the disk or not.
func riverSubjects(ctx context.Context, p *place) (subjects []*subject, release func() error, err error) {
	pg, err := startPostgres(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	var pools []*pgxpool.Pool
	release = func() error {
		for _, pool := range pools {
			pool.Close()
		}
		return pg.stop()
	}
	defer func() {
		if err != nil {
			err, release = errors.Join(err, release()), nil
		}
	}()
	for _, durability := range []struct {
		synchronousCommit string
		group             group
		slow              string
	}{{"off", process, ""}, {"on", machine, "its cooldown bounds it as in the group process"}} {
		pool, err := pg.pool(ctx, durability.synchronousCommit)
		if err != nil {
			return nil, release, err
		}
		pools = append(pools, pool)
		on := fmt.Sprintf(
			"PostgreSQL %s, synchronous_commit %s, a pool of %d connections",
			pg.version,
			durability.synchronousCommit,
			poolConnections,
		)
		subjects = append(subjects,
			&subject{
				name: "river", group: durability.group, fewest: 500, slow: durability.slow,
				settles: river.FetchCooldownDefault, away: river.FetchPollIntervalDefault,
				setup: "River as it comes (fetch cooldown 100 ms, poll 1 s, woken by NOTIFY), batches by InsertMany, " +
					"on " + on,
				open: func(ctx context.Context, handle func(job)) (session, error) {
					return openRiver(ctx, pool, false, handle)
				},
			},
			&subject{
				name: "river tuned", group: durability.group, fewest: 500, away: riverTunedPoll,
				setup: "River with fetch cooldown 2 ms and poll 20 ms, batches by InsertManyFast (COPY), on " + on,
				open: func(ctx context.Context, handle func(job)) (session, error) {
					return openRiver(ctx, pool, true, handle)
				},
			})
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pools[0]), &rivermigrate.Config{
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, release, err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return subjects, release, err
}

// riverJob is the payload with River's name for it.
type riverJob struct{ job }

// Kind implements river.JobArgs.
func (riverJob) Kind() string { return "peers_noop" }

type riverWorker struct {
	river.WorkerDefaults[riverJob]
	handle func(job)
}

// Work implements river.Worker.
func (w *riverWorker) Work(_ context.Context, j *river.Job[riverJob]) error {
	w.handle(j.Args.job)
	return nil
}

// riverSession has a client that inserts, and from work on a second one that executes as well: River fixes the number
// of workers when a client is made.
type riverSession struct {
	*tally
	pool     *pgxpool.Pool
	tuned    bool
	handle   func(job)
	client   *river.Client[pgx.Tx]
	working  bool
	unlisten func()
	counter  sync.WaitGroup
}

func openRiver(ctx context.Context, pool *pgxpool.Pool, tuned bool, handle func(job)) (session, error) {
	if _, err := pool.Exec(ctx, "TRUNCATE river_job"); err != nil {
		return nil, err
	}
	s := &riverSession{tally: newTally(), pool: pool, tuned: tuned, handle: handle}
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: slog.New(slog.DiscardHandler)})
	s.client = client
	return s, err
}

func (s *riverSession) insert(ctx context.Context, j job) error {
	_, err := s.client.Insert(ctx, riverJob{j}, nil)
	return err
}

func (s *riverSession) insertBatch(ctx context.Context, jobs []job) error {
	params := make([]river.InsertManyParams, len(jobs))
	for i, j := range jobs {
		params[i].Args = riverJob{j}
	}
	var err error
	if s.tuned {
		_, err = s.client.InsertManyFast(ctx, params)
	} else {
		_, err = s.client.InsertMany(ctx, params)
	}
	return err
}

// work starts a goroutine that counts what River says is completed; close ends it.
func (s *riverSession) work(ctx context.Context, workers int) error {
	registered := river.NewWorkers()
	river.AddWorker(registered, &riverWorker{handle: s.handle})
	cfg := &river.Config{
		Logger: slog.New(slog.DiscardHandler), Workers: registered,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
	}
	if s.tuned {
		cfg.FetchCooldown, cfg.FetchPollInterval = riverTunedCooldown, riverTunedPoll
	}
	client, err := river.NewClient(riverpgxv5.New(s.pool), cfg)
	if err != nil {
		return err
	}
	events, unlisten := client.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: riverEvents, Kinds: []river.EventKind{river.EventKindJobCompleted},
	})
	s.client, s.unlisten = client, unlisten
	s.counter.Go(func() {
		for range events {
			s.add(1)
		}
	})
	if err := client.Start(ctx); err != nil {
		return err
	}
	s.working = true
	return nil
}

func (s *riverSession) close(ctx context.Context) error {
	var err error
	if s.working {
		err = s.client.Stop(ctx)
	}
	if s.unlisten != nil {
		s.unlisten() // closes the events
		s.counter.Wait()
	}
	return err
}
