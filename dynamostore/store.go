// Package dynamostore implements lane.Storage on one DynamoDB table with two sparse indexes.
//
// Every transition of a run is one TransactWriteItems: the run item, conditional on its sequence, a log item with the
// commit's events and outbox rows, and owner, payload and output items as needed. The index due has the runs that need
// inspection, by time; the index done has the finished runs. See docs/internals/layout.md.
//
// A [Store] is safe for concurrent use by any number of goroutines and processes, and counts the capacity units of its
// requests.
package dynamostore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/singleflight"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// API is the part of a DynamoDB client that the store uses. *dynamodb.Client implements it.
type API interface {
	BatchGetItem(
		ctx context.Context, in *dynamodb.BatchGetItemInput, o ...func(*dynamodb.Options),
	) (*dynamodb.BatchGetItemOutput, error)
	DeleteItem(
		ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options),
	) (*dynamodb.DeleteItemOutput, error)
	DescribeTable(
		ctx context.Context, in *dynamodb.DescribeTableInput, o ...func(*dynamodb.Options),
	) (*dynamodb.DescribeTableOutput, error)
	GetItem(
		ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options),
	) (*dynamodb.GetItemOutput, error)
	Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	Scan(ctx context.Context, in *dynamodb.ScanInput, o ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	TransactWriteItems(
		ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options),
	) (*dynamodb.TransactWriteItemsOutput, error)
	UpdateItem(
		ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options),
	) (*dynamodb.UpdateItemOutput, error)
}

// Options of [New]. nil means the defaults.
type Options struct {
	// Now is the clock for the expiry of idempotency keys and schedule occurrences. Defaults to time.Now. Everything
	// else uses the instants of commands.
	Now func() time.Time

	// RequestTimeout limits each request with the client's own retries. Defaults to DefaultRequestTimeout.
	RequestTimeout time.Duration
}

// DefaultRequestTimeout limits each request to DynamoDB.
const DefaultRequestTimeout = 5 * time.Second

var indexes = []ddb.Index{
	{Name: rows.IndexDue, Hash: rows.AttrDueP, Sort: rows.AttrDueA},
	{Name: rows.IndexDone, Hash: rows.AttrDoneP, Sort: rows.AttrDoneA, Projected: rows.ListedAttributes()},
}

// Store implements lane.Storage on a DynamoDB table. Use [New].
type Store struct {
	lane.UnimplementedStorage

	db    *ddb.Table
	now   func() time.Time
	meter meter

	snapshots *recent[string, *rows.Run] // by partition key
	owners    *recent[string, string]    // commits of dead owners, by partition key
	offers    *offers
	paces     *recent[rows.Partition, lane.Pace] // as last seen
	spans     spans

	shardsMutex sync.Mutex
	shards      map[string]cachedShards // by environment

	shardsFlight singleflight.Group

	pauses       map[string]cachedPauses // by environment; guarded by pausesMutex
	pausesMutex  sync.Mutex
	pausesFlight singleflight.Group
}

var (
	_ lane.Storage  = (*Store)(nil)
	_ lane.Admitter = (*Store)(nil)
)

// New returns a store on an existing table. It makes no request; Start checks the table.
func New(client API, table string, options *Options) *Store {
	if options == nil {
		options = &Options{}
	}
	s := &Store{
		now:       options.Now,
		snapshots: newRecent[string, *rows.Run](4096),
		owners:    newRecent[string, string](1024),
	}
	s.db = &ddb.Table{
		Client:  client,
		Name:    table,
		Indexes: indexes,
		Timeout: options.RequestTimeout,
		Meter:   tableMeter{&s.meter},
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.offers = newOffers(s.now)
	s.paces = newRecent[rows.Partition, lane.Pace](4096)
	if s.db.Timeout == 0 {
		s.db.Timeout = DefaultRequestTimeout
	}
	return s
}

// Capabilities are all of the contract's except ProcessLocalState.
func (s *Store) Capabilities() lane.StorageCapabilities {
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
		CommitsWrites:             true,
		FindsLostWakeups:          true,
		KeepsDeadLetters:          true,
		KeepsSchedules:            true,
		KeepsProgress:             true,
		KeepsTasks:                true,
		SuspendsRuns:              true,
	}
}

// Start checks New's arguments, and the table's keys and indexes. It returns runlane.ErrConfigurationInvalid, or
// runlane.ErrStorageUnavailable if the endpoint does not answer.
func (s *Store) Start(ctx context.Context) error {
	fault := &runlane.Error{Code: runlane.ErrConfigurationInvalid}
	switch {
	case s.db.Client == nil:
		fault.Message, fault.Hint = "the store has no client", "pass a *dynamodb.Client to dynamostore.New"
	case s.db.Name == "":
		fault.Message, fault.Hint = "the store has no table", "pass the table's name to dynamostore.New"
	case s.db.Timeout < 0:
		fault.Message = fmt.Sprintf("Options.RequestTimeout is %s", s.db.Timeout)
		fault.Hint = fmt.Sprintf("use 0 for %s, or a time", DefaultRequestTimeout)
	default:
		return s.db.Check(ctx)
	}
	return fault
}

// Stats are the requests and capacity units since New.
func (s *Store) Stats() Stats { return s.meter.Stats() }

// AdmitRuns implements lane.Admitter: once writes are throttled it takes as many triggers as the table bears.
func (s *Store) AdmitRuns(n int) error {
	delay, ok := s.db.Load.Admit(n)
	if ok {
		return nil
	}
	return &runlane.Error{
		Code:       runlane.ErrOverloaded,
		Message:    "the table throttles writes, so this trigger was refused",
		Hint:       fmt.Sprintf("try again in %s; if it lasts, raise the table's throughput", delay),
		Retryable:  true,
		RetryAfter: delay,
	}
}

// CheckOutput implements lane.Storage.
func (s *Store) CheckOutput(run runlane.RunID, output []byte) error {
	if len(output) <= rows.MaxOutputBytes {
		return nil
	}
	_, _, err := rows.PutOutput(run, output)
	return err
}

// CheckPayload implements lane.Storage.
func (s *Store) CheckPayload(run runlane.RunID, payload []byte) error {
	return rows.CheckPayload(run, payload)
}
