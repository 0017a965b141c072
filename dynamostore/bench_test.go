package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

const (
	// leastRatio is the budget: operations per second of a method, as a part of what the bare client reaches with its requests.
	leastRatio = 0.85
	// leastRounds are measured of slow methods too.
	leastRounds = 25
	// undecidedTime is spent at most while it is not clear on which side of the budget a method is.
	undecidedTime = 5 * time.Second
)

// operation is one call of a method, all it needs at hand.
type operation func(ctx context.Context) error

// BenchmarkMethods compares each method with a bare client that sends the same requests to the same items, built beforehand. The
// two take turns, and the table is put back after each, so that whatever else the machine does meets both. A line has the medians
// of the method and of the bare client in microseconds, the median ratio of the two (with its quartiles), and what one call sends.
// A median below the budget fails.
//
//	go test -run '^$' -bench Methods ./dynamostore
func BenchmarkMethods(b *testing.B) {
	for _, m := range methodCases() {
		b.Run(m.name, func(b *testing.B) {
			w := openWorld(b)
			w.compare(b, m.prepare(w))
		})
	}
}

// comparison is a method and its recording on one world.
type comparison struct {
	*world
	client    *dynamodb.Client
	call      operation
	recording *recorder
	used      Usage // by one call; looking at the table is free
	snapshots *recent[string, *rows.Run]
}

// record lets the method run once. The world is left as the method left it.
func (w *world) recorded(call operation) *comparison {
	w.Helper()
	client, ok := w.store.db.Client.(*dynamodb.Client)
	if !ok {
		w.Fatalf("%T", w.store.db.Client)
	}
	c := &comparison{world: w, client: client, call: call, snapshots: newRecent[string, *rows.Run](cap(w.store.snapshots.ring))}
	c.snapshots.become(w.store.snapshots)
	c.recording = newRecorder(client, w.store.db.Name)
	if _, err := w.store.shardCounts(w.Context(), "test"); err != nil { // which one call in a minute pays for
		w.Fatal(err)
	}
	w.store.db.Client = c.recording
	defer func() { w.store.db.Client = client }()
	before := w.store.Stats()
	if err := call(w.Context()); err != nil {
		w.Fatal(err)
	}
	c.used = w.store.Stats().Minus(before.Usage)
	return c
}

// rewind puts the table and the store's memory back.
func (c *comparison) rewind() {
	c.Helper()
	c.store.snapshots.become(c.snapshots)
	if err := c.recording.rewind(c.Context(), c.client); err != nil {
		c.Fatal(err)
	}
}

// time is how long one side takes, from the same state.
func (c *comparison) time(side operation) time.Duration {
	c.Helper()
	ctx := c.Context()
	start := time.Now()
	err := side(ctx)
	took := time.Since(start)
	if err != nil {
		c.Fatal(err)
	}
	c.rewind()
	return took
}

func (w *world) compare(b *testing.B, call operation) {
	b.Helper()
	c := w.recorded(call)
	c.rewind()
	bare := func(ctx context.Context) error { return c.recording.replay(ctx, c.client) }
	var methods, bares, ratios []float64
	round := func() {
		var method, plain time.Duration
		if len(ratios)%2 == 0 {
			method, plain = c.time(call), c.time(bare)
		} else {
			plain, method = c.time(bare), c.time(call)
		}
		methods, bares = append(methods, float64(method.Microseconds())), append(bares, float64(plain.Microseconds()))
		ratios = append(ratios, float64(plain)/float64(method))
	}
	before := w.store.Stats()
	for b.Loop() {
		round()
	}
	for start := time.Now(); len(ratios) < leastRounds || undecided(ratios) && time.Since(start) < undecidedTime; {
		round()
	}
	if sent := w.store.Stats().Minus(before.Usage).Requests; sent != c.used.Requests*int64(len(ratios)) {
		b.Errorf("%d calls sent %d requests, not %d each", len(ratios), sent, c.used.Requests)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(quantile(methods, 0.5), "method-µs")
	b.ReportMetric(quantile(bares, 0.5), "bare-µs")
	b.ReportMetric(quantile(ratios, 0.25), "ratio-q1")
	b.ReportMetric(quantile(ratios, 0.5), "ratio")
	b.ReportMetric(quantile(ratios, 0.75), "ratio-q3")
	b.ReportMetric(float64(c.recording.requests()), "requests")
	b.ReportMetric(c.used.ReadUnits, "read-units")
	b.ReportMetric(c.used.WriteUnits, "write-units")
	if got := quantile(ratios, 0.5); got < leastRatio {
		b.Errorf("the method takes %v µs, the bare client %v: it reaches %.2f of its operations per second, less than %v",
			quantile(methods, 0.5), quantile(bares, 0.5), got, leastRatio)
	}
}

// undecided reports that the 95 % interval of the median holds the budget.
func undecided(ratios []float64) bool {
	spread := 1 / math.Sqrt(float64(len(ratios)))
	return quantile(ratios, 0.5-spread) < leastRatio && leastRatio < quantile(ratios, 0.5+spread)
}

// quantile is the value below which a part of the values lies.
func quantile(values []float64, part float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[int(part*float64(len(values)-1)+0.5)]
}

// calling is a call whose answer is only looked at for a race that was lost.
func calling[Command, Answer any](method func(context.Context, Command) (Answer, error), c Command) operation {
	return func(ctx context.Context) error {
		answer, err := method(ctx, c)
		switch answer := any(answer).(type) {
		case *lane.Acquisition:
			return wantAcquired(answer.Outcome, err)
		case *lane.OccurrenceClaim:
			return wantAcquired(answer.Outcome, err)
		}
		return err
	}
}

func wantAcquired(outcome lane.Outcome, err error) error {
	if err == nil && outcome != lane.Acquired {
		err = errors.New(string(outcome))
	}
	return err
}

// finding is a call that finds so many; count is from its answer.
func finding[Command, Answer any](want int, count func(Answer) int, method func(context.Context, Command) (Answer, error), c Command) operation {
	return func(ctx context.Context) error {
		answer, err := method(ctx, c)
		if err != nil {
			return err
		}
		if got := count(answer); got != want {
			return fmt.Errorf("found %d, not %d", got, want)
		}
		return nil
	}
}

func (r *recent[K, V]) become(other *recent[K, V]) {
	clear(r.byKey)
	maps.Copy(r.byKey, other.byKey)
	r.ring, r.next = append(r.ring[:0], other.ring...), other.next
}
