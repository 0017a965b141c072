package dynamostore

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runlane/runlane-go/lane"
)

// between does something before the next change of an item.
type between struct {
	API
	do func()
}

func (b *between) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if do := b.do; do != nil {
		b.do = nil
		do()
	}
	return b.API.UpdateItem(ctx, in, o...)
}

// A publisher that read a failed row is late: another one claimed it, and failed once more. The row is due when that one said.
func TestClaimOutboxMessages_RowFailedAgainMeanwhile_IsNotClaimedBeforeItsTime(t *testing.T) {
	w := newWorld(t).create(eager, 0, nil).fail(time.Second).pass(time.Second)
	slow := &between{API: w.store.db.Client}
	slow.do = func() { w.flush().fail(time.Hour) }
	id := w.item().DeliveryID()
	rows, err := New(slow, w.store.db.Name, nil).ClaimOutboxMessages(t.Context(), &lane.ClaimOutboxCommand{
		Environment: "test", IDs: []string{id}, At: w.now, ClaimUntil: w.now.Add(time.Minute),
	})
	if err != nil || len(rows) != 0 {
		t.Fatalf("claimed %d rows an hour before their time: %v", len(rows), err)
	}
}
