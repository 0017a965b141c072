package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	_ "modernc.org/sqlite" // the driver, without cgo
)

const sqliteSchema = `
CREATE TABLE jobs (
	id       INTEGER PRIMARY KEY,
	state    INTEGER NOT NULL DEFAULT 0, -- 0 waits, 1 is claimed, 2 is done
	inserted INTEGER NOT NULL DEFAULT (unixepoch()),
	payload  BLOB NOT NULL
);
CREATE INDEX jobs_waiting ON jobs (id) WHERE state = 0;`

const (
	sqliteInsert = `INSERT INTO jobs (payload) VALUES (?)`
	sqliteClaim  = `UPDATE jobs SET state = 1 WHERE id IN (SELECT id FROM jobs WHERE state = 0 ORDER BY id LIMIT ?) ` +
		`RETURNING id, payload`
	sqliteDone = `UPDATE jobs SET state = 2 WHERE id = ?`
)

// sqliteSubjects is the table that one would write by hand: no retries, no schedules, no leases.
func sqliteSubjects(ctx context.Context, p *place) (subjects []*subject, release func() error, err error) {
	var databases []*sql.DB
	release = func() error {
		var faults []error
		for _, db := range databases {
			faults = append(faults, db.Close())
		}
		return errors.Join(faults...)
	}
	defer func() {
		if err != nil {
			err, release = errors.Join(err, release()), nil
		}
	}()
	for _, durability := range []struct {
		group   group
		address string
		setup   string
		fewest  int
	}{
		{memory, ":memory:", "in memory", 1_000},
		{process, fileAddress(p, "normal"), "in a file, WAL, synchronous NORMAL", 1_000},
		{machine, fileAddress(p, "full"), "in a file, WAL, synchronous FULL", 300},
	} {
		db, err := sql.Open("sqlite", durability.address)
		if err != nil {
			return nil, release, err
		}
		databases = append(databases, db)
		db.SetMaxOpenConns(1) // SQLite has one writer; waiting here is fairer and faster than its busy loop
		if _, err := db.ExecContext(ctx, sqliteSchema); err != nil {
			return nil, release, err
		}
		var version string
		if err := db.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version); err != nil {
			return nil, release, err
		}
		subjects = append(subjects, &subject{
			name: "sqlite table", group: durability.group, fewest: durability.fewest,
			setup: fmt.Sprintf(
				"a plain table of SQLite %s without cgo, %s; one connection, claims and completions grouped; done "+
					"jobs kept",
				version,
				durability.setup,
			),
			open: func(ctx context.Context, handle func(job)) (session, error) {
				return openSQLite(ctx, db, handle)
			},
		})
	}
	return subjects, release, nil
}

func fileAddress(p *place, synchronous string) string {
	return fmt.Sprintf(
		"file:%s?_pragma=journal_mode(WAL)&_pragma=synchronous(%s)",
		filepath.Join(p.dir, "jobs-"+synchronous+".db"),
		synchronous,
	)
}

type sqliteSession struct {
	*tally
	db *sql.DB
	insertOne, claim,
	done *sql.Stmt
	handle func(job)

	inserted chan struct{} // tells the claiming goroutine to look; holds one
	stop     context.CancelFunc
	running  sync.WaitGroup
	fault    error // of claiming or completing, read after running
	faultMu  sync.Mutex
}

func openSQLite(ctx context.Context, db *sql.DB, handle func(job)) (session, error) {
	if _, err := db.ExecContext(ctx, "DELETE FROM jobs"); err != nil {
		return nil, err
	}
	s := &sqliteSession{tally: newTally(), db: db, handle: handle, inserted: make(chan struct{}, 1)}
	for text, statement := range map[string]**sql.Stmt{
		sqliteInsert: &s.insertOne,
		sqliteClaim:  &s.claim,
		sqliteDone:   &s.done,
	} {
		prepared, err := db.PrepareContext(ctx, text)
		if err != nil {
			return nil, err
		}
		*statement = prepared
	}
	return s, nil
}

func (s *sqliteSession) insert(ctx context.Context, j job) error {
	payload, err := json.Marshal(j)
	if err != nil {
		return err
	}
	if _, err := s.insertOne.ExecContext(ctx, payload); err != nil {
		return err
	}
	s.wake()
	return nil
}

func (s *sqliteSession) insertBatch(ctx context.Context, jobs []job) error {
	values := make([]any, len(jobs))
	for i, j := range jobs {
		payload, err := json.Marshal(j)
		if err != nil {
			return err
		}
		values[i] = payload
	}
	_, err := s.db.ExecContext(ctx, sqliteInsert+strings.Repeat(", (?)", len(jobs)-1), values...)
	s.wake()
	return err
}

func (s *sqliteSession) wake() {
	select {
	case s.inserted <- struct{}{}:
	default: // it will look anyway
	}
}

// claimed is a job that a worker has.
type claimed struct {
	id int64
	job
}

// work starts the workers, a goroutine that claims for them as many jobs as are free to take one, and one that records
// in one transaction whatever has been done since the last. close ends them.
func (s *sqliteSession) work(ctx context.Context, workers int) error {
	ctx, s.stop = context.WithCancel(ctx)
	waiting, finished := make(chan claimed), make(chan int64, workers)
	s.running.Go(func() {
		defer close(waiting)
		s.record(s.claimAll(ctx, waiting, workers))
	})
	var executing sync.WaitGroup
	for range workers {
		executing.Go(func() {
			for c := range waiting {
				s.handle(c.job)
				finished <- c.id
			}
		})
	}
	s.running.Go(func() {
		executing.Wait()
		close(finished)
	})
	s.running.Go(func() { s.record(s.completeAll(context.WithoutCancel(ctx), finished, workers)) })
	return nil
}

// claimAll hands jobs to the workers until ctx ends.
func (s *sqliteSession) claimAll(ctx context.Context, waiting chan<- claimed, workers int) error {
	for ctx.Err() == nil {
		// An interrupted statement may cost the connection, and a table in memory with it.
		jobs, err := s.claimSome(context.WithoutCancel(ctx), workers)
		if err != nil {
			return err
		}
		for _, c := range jobs {
			waiting <- c
		}
		if len(jobs) > 0 {
			continue
		}
		select {
		case <-s.inserted:
		case <-ctx.Done():
		}
	}
	return nil
}

func (s *sqliteSession) claimSome(ctx context.Context, most int) (jobs []claimed, err error) {
	rows, err := s.claim.QueryContext(ctx, most)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var c claimed
		var payload []byte
		if err := rows.Scan(&c.id, &payload); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(payload, &c.job); err != nil {
			return nil, err
		}
		jobs = append(jobs, c)
	}
	return jobs, rows.Err()
}

// completeAll records finished jobs until there are no more to come. After a fault it only empties the channel.
func (s *sqliteSession) completeAll(ctx context.Context, finished <-chan int64, most int) (fault error) {
	for id := range finished {
		ids := []int64{id}
		for len(ids) < most && len(finished) > 0 { // the only receiver: what is there stays there
			ids = append(ids, <-finished)
		}
		if fault != nil {
			continue
		}
		if fault = s.complete(ctx, ids); fault == nil {
			s.add(int64(len(ids)))
		}
	}
	return fault
}

func (s *sqliteSession) complete(ctx context.Context, ids []int64) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	done := tx.StmtContext(ctx, s.done)
	for _, id := range ids {
		if _, err := done.ExecContext(ctx, id); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

func (s *sqliteSession) record(fault error) {
	s.faultMu.Lock()
	defer s.faultMu.Unlock()
	s.fault = errors.Join(s.fault, fault)
}

func (s *sqliteSession) close(context.Context) error {
	if s.stop != nil {
		s.stop()
		s.running.Wait()
	}
	return errors.Join(s.fault, s.insertOne.Close(), s.claim.Close(), s.done.Close())
}
