package ddb

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

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
