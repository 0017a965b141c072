package ddb

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go/dynamostore/internal/item"
)

// A run's units, and how many runs a second the narrow table can create and finish.
const (
	unitsCreate, unitsClaim, unitsEnd = 5, 4, 5
	runsSecond                        = 300
	unitsSecond                       = runsSecond * (unitsCreate + unitsClaim + unitsEnd)
)

// narrow is a client of a table of limited capacity. A write's partition key is the number of its units.
type narrow struct {
	Client

	mutex  sync.Mutex
	units  float64 // left, at most those of a second
	filled time.Time
}

func (n *narrow) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	<-time.After(5 * time.Millisecond)
	n.mutex.Lock()
	defer n.mutex.Unlock()
	units, err := strconv.ParseFloat(item.TextOf(in.Key[item.PK]), 64)
	n.units = min(n.units+unitsSecond*time.Since(n.filled).Seconds(), unitsSecond)
	n.filled = time.Now()
	if n.units < units {
		return nil, &types.ProvisionedThroughputExceededException{}
	}
	n.units -= units
	return &dynamodb.UpdateItemOutput{}, err
}

type silent struct{}

func (silent) Used(context.Context, string, Usage) {}
func (silent) Conflict()                           {}

// process triggers and executes on the table, with 50 workers. Without limit its triggers are not asked for.
type process struct {
	table             *Table
	limit             bool
	queue             chan struct{} // of all processes
	created, finished atomic.Int64
}

func (p *process) write(units int) error {
	_, _, err := p.table.Update(context.Background(), "write", &item.Update{Key: item.Key(strconv.Itoa(units), "1"), Expression: "SET #x = :x"})
	return err
}

func (p *process) work() {
	for range p.queue {
		if p.write(unitsClaim) != nil {
			time.AfterFunc(30*time.Second, func() { p.queue <- struct{}{} }) // its wakeup comes again
			continue
		}
		<-time.After(100 * time.Millisecond)
		for p.write(unitsEnd) != nil {
		}
		p.finished.Add(1)
	}
}

// trigger makes the triggers of some seconds, each in its own time.
func (p *process) trigger(seconds, each int) {
	for range seconds * each {
		<-time.After(time.Second / time.Duration(each))
		go func() {
			if _, ok := p.table.Load.Admit(1); (ok || !p.limit) && p.write(unitsCreate) == nil {
				p.created.Add(1)
				p.queue <- struct{}{}
			}
		}()
	}
}

func overloaded(limit bool) (both [2]*process) {
	client := &narrow{filled: time.Now(), units: unitsSecond}
	queue := make(chan struct{}, 1_000_000)
	for i := range both {
		p := &process{limit: limit, queue: queue, table: &Table{Client: client, Timeout: 5 * time.Second, Meter: silent{}}}
		both[i] = p
		for range 50 {
			go p.work()
		}
	}
	return both
}

// A table that can finish 300 runs a second finishes 250 while two processes trigger 1,000, and each of them makes its
// share. Without the limit it finishes fewer than 100 (of these 20 seconds; later fewer than 25). When the load ends the
// limit ends too.
func TestLoad_MoreTriggersThanTheTableBears_RunsStillFinish(t *testing.T) {
	t.Parallel()
	const seconds = 20
	for _, limit := range []bool{true, false} {
		t.Run("limit "+strconv.FormatBool(limit), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				both := overloaded(limit)
				go both[0].trigger(seconds, 500)
				both[1].trigger(seconds, 500)
				finished := (both[0].finished.Load() + both[1].finished.Load()) / seconds
				t.Logf("%d runs a second; created %d and %d", finished, both[0].created.Load(), both[1].created.Load())
				if limit != (finished >= 250) || !limit && finished >= 100 {
					t.Errorf("%d runs a second finished", finished)
				}
				if a, b := both[0].created.Load(), both[1].created.Load(); limit && min(a, b)*3 < max(a, b)*2 {
					t.Errorf("one process made %d runs and the other %d", a, b)
				}
				both[0].trigger(25, 100)
				if limit && both[0].table.Load.watching.Load() {
					t.Error("100 triggers a second are limited")
				}
				<-time.After(time.Hour)
				close(both[0].queue)
			})
		})
	}
}

func TestLoad_FewThrottles_RefuseNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var few, part Load
		for range 100 {
			few.wrote(&types.ThrottlingException{}) // two of four writes a second
			few.wrote(nil)
			for n := range 100 {
				if part.wrote(nil); n%10 == 0 {
					part.wrote(&types.ThrottlingException{})
				}
			}
			for _, load := range []*Load{&few, &part} {
				if delay, ok := load.Admit(1); !ok {
					t.Fatalf("refused for %s", delay)
				}
			}
			<-time.After(time.Second / 2)
		}
	})
}

// A function may sleep between two requests.
func TestLoad_ThrottlesOfLongAgo_RefuseNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var load Load
		for range 2 * loadFew {
			load.wrote(&types.ThrottlingException{})
		}
		<-time.After(time.Minute)
		for range 10 {
			if delay, ok := load.Admit(1); !ok {
				t.Fatalf("refused for %s", delay)
			}
		}
	})
}

func TestLoad_WasThrottled(t *testing.T) {
	t.Parallel()
	cancelled := func(code string) error {
		return &types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{{Code: aws.String("None")}, {Code: &code}}}
	}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&types.ProvisionedThroughputExceededException{}, true},
		{&types.RequestLimitExceeded{}, true},
		{cancelled("ThrottlingError"), true},
		{cancelled("ProvisionedThroughputExceeded"), true},
		{cancelled("TransactionConflict"), false},
		{&types.ConditionalCheckFailedException{}, false},
		{errors.New("connection reset"), false},
	} {
		if got := wasThrottled(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}
