package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

const (
	asynqQueue = "default"
	asynqKind  = "peers:noop"
	// asynqTunedCheck is how often an idle server looks; by default every second.
	asynqTunedCheck = 2 * time.Millisecond
	// asynqConnections is more than workers and inserters take at once.
	asynqConnections = 160
)

// redisServer is a server reached through a socket in its folder and nowhere else.
type redisServer struct {
	*child
	socket  string
	version string
	// ending are the asynq servers that shut down: see close.
	ending sync.WaitGroup
	faults []error // theirs, read after ending
}

func startRedis(ctx context.Context, p *place, fsync string) (*redisServer, error) {
	program, err := findProgram("redis-server")
	if err != nil {
		return nil, err
	}
	dir, err := p.folder("redis-"+fsync, nil)
	if err != nil {
		return nil, err
	}
	r := &redisServer{socket: filepath.Join(dir, "redis.sock")}
	r.child, err = startChild(dir, nil, program, "--port", "0", "--unixsocket", r.socket, "--dir", dir, "--save", "",
		"--appendonly", "yes", "--appendfsync", fsync)
	if err != nil {
		return nil, err
	}
	client := r.client()
	err = r.await(ctx, func(ctx context.Context) error {
		server := client.InfoMap(ctx, "server")
		r.version = server.Item("Server", "redis_version")
		return server.Err()
	})
	if err = errors.Join(err, client.Close()); err != nil {
		return nil, errors.Join(err, r.stop())
	}
	return r, nil
}

func (r *redisServer) client() *redis.Client {
	return redis.NewClient(&redis.Options{Network: "unix", Addr: r.socket})
}

// asynqSubjects is asynq on Redis with its append-only file, synced every second or at every commit.
func asynqSubjects(ctx context.Context, p *place) ([]*subject, func() error, error) {
	var subjects []*subject
	var servers []*redisServer
	release := func() error {
		var faults []error
		for _, r := range servers {
			r.ending.Wait()
			faults = append(faults, r.stop(), errors.Join(r.faults...))
		}
		return errors.Join(faults...)
	}
	for _, durability := range []struct {
		fsync string
		group group
		slow  string
	}{{"everysec", process, ""}, {"always", machine, "it sleeps through seconds as in the group process"}} {
		r, err := startRedis(ctx, p, durability.fsync)
		if err != nil {
			return nil, nil, errors.Join(err, release())
		}
		servers = append(servers, r)
		on := fmt.Sprintf("on Redis %s, append-only file, appendfsync %s", r.version, durability.fsync)
		subjects = append(subjects,
			&subject{
				name: "asynq", group: durability.group, fewest: 500, away: time.Second, slow: durability.slow,
				setup: "asynq as it comes (an idle server looks every second), finished tasks deleted, " + on,
				open: func(ctx context.Context, handle func(job)) (session, error) {
					return openAsynq(ctx, r, 0, handle)
				},
			},
			&subject{
				name: "asynq tuned", group: durability.group, fewest: 300, away: asynqTunedCheck,
				setup: "asynq with TaskCheckInterval 2 ms, finished tasks deleted, " + on,
				open: func(ctx context.Context, handle func(job)) (session, error) {
					return openAsynq(ctx, r, asynqTunedCheck, handle)
				},
			})
	}
	return subjects, release, nil
}

type asynqSession struct {
	*tally    // of handlers that returned: see await
	redis     *redisServer
	options   asynq.RedisClientOpt
	check     time.Duration
	handle    func(job)
	client    *asynq.Client
	inspector *asynq.Inspector
	server    *asynq.Server
}

func openAsynq(ctx context.Context, r *redisServer, check time.Duration, handle func(job)) (session, error) {
	r.ending.Wait()
	emptying := r.client()
	if err := errors.Join(emptying.FlushAll(ctx).Err(), emptying.Close()); err != nil {
		return nil, err
	}
	options := asynq.RedisClientOpt{Network: "unix", Addr: r.socket, PoolSize: asynqConnections}
	return &asynqSession{
		tally: newTally(), redis: r, options: options, check: check, handle: handle,
		client: asynq.NewClient(options), inspector: asynq.NewInspector(options),
	}, nil
}

// insert is all there is: asynq has no call that inserts several tasks.
func (s *asynqSession) insert(ctx context.Context, j job) error {
	payload, err := json.Marshal(j)
	if err != nil {
		return err
	}
	_, err = s.client.EnqueueContext(ctx, asynq.NewTask(asynqKind, payload))
	return err
}

func (s *asynqSession) work(_ context.Context, workers int) error {
	s.server = asynq.NewServer(s.options, asynq.Config{
		Concurrency: workers, TaskCheckInterval: s.check, LogLevel: asynq.FatalLevel, Logger: silent{},
	})
	return s.server.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		var j job
		if err := json.Unmarshal(t.Payload(), &j); err != nil {
			return err
		}
		s.handle(j)
		s.add(1)
		return nil
	}))
}

// await asks the inspector once the handlers have returned: asynq does not report that a task is done.
func (s *asynqSession) await(ctx context.Context, n int) error {
	if err := s.tally.await(ctx, n); err != nil {
		return err
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		info, err := s.inspector.GetQueueInfo(asynqQueue)
		if err != nil {
			return err
		}
		if info.ProcessedTotal-info.FailedTotal >= n {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d jobs completed: %w", info.ProcessedTotal, n, context.Cause(ctx))
		}
	}
}

// close does not wait for the server, which sleeps up to 1.5 s before it notices: the next session on this Redis does.
func (s *asynqSession) close(context.Context) error {
	s.redis.ending.Go(func() {
		if s.server != nil {
			s.server.Shutdown()
		}
		if err := errors.Join(s.client.Close(), s.inspector.Close()); err != nil {
			s.redis.faults = append(s.redis.faults, err)
		}
	})
	return nil
}

// silent drops what asynq logs.
type silent struct{}

func (silent) Debug(...any) {}
func (silent) Info(...any)  {}
func (silent) Warn(...any)  {}
func (silent) Error(...any) {}
func (silent) Fatal(...any) {}
