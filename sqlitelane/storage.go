package sqlitelane

import (
	"context"
	"crypto/rand"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
)

// Storage keeps runs in the file. It is safe for concurrent use, also across processes. [Open] returns it as part of a
// lane.
//
// Each read sees one state of the file. Writes are commands to this process's only writer, which executes all waiting
// ones in one transaction. Commands are judged by reads in that transaction.
type Storage struct {
	lane.UnimplementedStorage

	options file.Options
	now     func() time.Time
	tokens  atomic.Uint64 // for claims
	prefix  string        // of this process's tokens
	names   names
	groups  groups
	offers  offers

	mu   sync.RWMutex
	file *file.File // nil before Start and after Close

	// The writer's cache, valid until another process writes. Only commands use it and encoded.
	entries map[entryKey]*entry
	limited map[limitedQueue]bool // nil: not read yet
	fed     *bool                 // nil: not read yet
	encoded []byte                // buffer for records

	// ordered belongs to the same cache, but anyone may read it. nil: not read yet.
	ordered atomic.Pointer[[]runlane.QueueName]
}

var _ lane.Storage = (*Storage)(nil)

func newStorage(o file.Options) *Storage {
	return &Storage{
		options: o, now: time.Now, prefix: rand.Text()[:12] + "-",
		entries: map[entryKey]*entry{}, offers: offers{given: map[partitionKey][]offer{}},
	}
}

// Capabilities includes everything.
func (*Storage) Capabilities() lane.StorageCapabilities {
	return lane.StorageCapabilities{
		ClaimsScheduleOccurrences: true,
		DurableState:              true,
		EnforcesIdempotency:       true,
		EnforcesQueueConcurrency:  true,
		EnforcesQueueRate:         true,
		EnforcesSingleton:         true,
		LeasesRuns:                true,
		PersistsOutbox:            true,
		PrunesRuns:                true,
		ReadsRunHistory:           true,
		FindsLostWakeups:          true,
		KeepsDeadLetters:          true,
		KeepsSchedules:            true,
		FeedsCommits:              true,
		KeepsProgress:             true,
		KeepsTasks:                true,
		SuspendsRuns:              true,
	}
}

// TickEvery is how often workers tick, and so how long after its lease the run of a killed worker waits at most. A tick
// that finds no work takes a quarter of a millisecond.
func (*Storage) TickEvery() time.Duration { return 4 * time.Second }

// Start opens the file.
func (s *Storage) Start(ctx context.Context) error {
	if err := embedded.Ended(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		return nil
	}
	f, err := file.Open(&s.options)
	if err != nil {
		return err
	}
	f.Remember(s.forget)
	s.file = f
	return nil
}

// Close waits for commits under way.
func (s *Storage) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.file
	if f == nil {
		return nil
	}
	s.file = nil
	err := f.Close()
	s.forget()
	return err
}

func (s *Storage) opened() (*file.File, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.file == nil {
		return nil, &runlane.Error{
			Code:    runlane.ErrStorageUnavailable,
			Message: "the file is not open: the lane was not started, or is closed",
			Meta:    map[string]string{"outcome": "not committed"},
		}
	}
	return s.file, nil
}

// forget drops the cache: another process wrote, or a batch was rolled back. The writer calls it.
func (s *Storage) forget() {
	clear(s.entries)
	s.limited, s.fed = nil, nil
	s.ordered.Store(nil)
}

func (s *Storage) nextToken() string {
	return s.prefix + strconv.FormatUint(s.tokens.Add(1), 36)
}

// tx is the transaction of a command.
type tx struct {
	*file.Tx
	s *Storage
}

// write executes a command. run may be called again; its last call counts.
func (s *Storage) write(ctx context.Context, run func(*tx) error) error {
	f, err := s.opened()
	if err != nil {
		return err
	}
	return f.Write(ctx, func(t *file.Tx) error { return run(&tx{t, s}) })
}

// read reads one state of the file. If whole is false, read may execute only one statement.
func (s *Storage) read(ctx context.Context, whole bool, read func(*file.Conn) error) error {
	f, err := s.opened()
	if err != nil {
		return err
	}
	return f.Read(ctx, func(c *file.Conn) error {
		if !whole {
			return read(c)
		}
		if _, err := c.Exec("BEGIN"); err != nil {
			return err
		}
		err := read(c)
		if _, ended := c.Exec("ROLLBACK"); err == nil {
			err = ended
		}
		return err
	})
}

func (s *Storage) clock() embedded.Millis { return embedded.At(s.now()) }
