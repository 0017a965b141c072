package formats_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
)

// newerWriter is the client of a newer program of the same format: everything that is written through it gets a part more.
type newerWriter struct {
	dynamostore.API

	mu    sync.Mutex
	wrote map[string]bool // by key
}

func (n *newerWriter) note(keys ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, key := range keys {
		n.wrote[key] = true
	}
}

// TransactWriteItems implements dynamostore.API.
func (n *newerWriter) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	more := *in
	more.TransactItems = make([]types.TransactWriteItem, len(in.TransactItems))
	var keys []string
	for i, member := range in.TransactItems {
		if member.Put != nil {
			put := *member.Put
			put.Item = maps.Clone(put.Item)
			put.Item[addition] = additions()[i%len(additions())]
			member.Put = &put
			keys = append(keys, keyOf(put.Item))
		}
		if member.Update != nil {
			update := *member.Update
			update.UpdateExpression, update.ExpressionAttributeNames, update.ExpressionAttributeValues = setAddition(
				update.UpdateExpression, update.ExpressionAttributeNames, update.ExpressionAttributeValues)
			member.Update = &update
			keys = append(keys, keyOf(update.Key))
		}
		more.TransactItems[i] = member
	}
	out, err := n.API.TransactWriteItems(ctx, &more, o...)
	if err == nil {
		n.note(keys...)
	}
	return out, err
}

// UpdateItem implements dynamostore.API.
func (n *newerWriter) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	more := *in
	more.UpdateExpression, more.ExpressionAttributeNames, more.ExpressionAttributeValues = setAddition(
		in.UpdateExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	out, err := n.API.UpdateItem(ctx, &more, o...)
	if err == nil {
		n.note(keyOf(in.Key))
	}
	return out, err
}

func setAddition(expression *string, names map[string]string, values item) (*string, map[string]string, item) {
	rest, sets := strings.CutPrefix(*expression, "SET ")
	text := "SET #" + addition + " = :" + addition
	if sets {
		text += ","
	}
	text += " " + rest
	names, values = maps.Clone(names), maps.Clone(values)
	if values == nil {
		values = item{}
	}
	names["#"+addition], values[":"+addition] = addition, additions()[len(additions())-1]
	return &text, names, values
}

// A newer program and today's take turns with the same runs, while one is rolled out: the runs end as they would, whichever had them when,
// and today's keeps what the newer one had added, where it changes an item in part.
func TestSideBySide_ANewerProgramOfTheSameFormat_SharesItsRuns(t *testing.T) {
	t.Parallel()
	r := added(t, loadRecording(t, current))
	w := openWorld(t, r.At, r.Items)
	w.mailbox.put(r.Messages)
	newer := &newerWriter{API: w.client, wrote: map[string]bool{}}
	w.other = w.runtime(dynamostore.New(newer, w.table, &dynamostore.Options{Now: w.now, RequestTimeout: awstest.RequestTimeout}))
	w.finishes(r)
	w.keepsAdditions(r, newer.wrote)
}

// replaced are the kinds of items that are written anew when they get another owner; all others are changed in part.
var replaced = []string{"slot", "run note"}

// keepsAdditions compares what is left with what was there in the beginning, and with what the newer program has written since.
func (w *world) keepsAdditions(r *recording, rewritten map[string]bool) {
	w.Helper()
	was := map[string]item{}
	for _, it := range r.Items {
		was[keyOf(it)] = it
	}
	kept, ours, theirs, rows := map[string]int{}, 0, 0, 0
	for _, it := range w.items() {
		key, old := keyOf(it), was[keyOf(it)]
		switch {
		case slices.Contains(replaced, kindOf(it)):
			continue
		case rewritten[key]:
			theirs++
			if it[addition] == nil {
				w.Errorf("%s has lost what the newer program added", key)
			}
		case old != nil:
			ours++
			if !sameJSON(w, old[addition], it[addition]) {
				w.Errorf("%s has lost what was there", key)
			}
		}
		if old != nil {
			kept[kindOf(it)]++
			rows += w.keepsRows(key, rowsOf(old), rowsOf(it))
		}
	}
	for _, kind := range []string{"run", "run log", "sched", "schedule", "task", "idem", "config shards", "config dispatch"} {
		if kept[kind] == 0 {
			w.Errorf("no item of kind %s was compared", kind)
		}
	}
	if ours < len(r.Lives) || theirs < len(r.Lives) || rows < len(r.Lives) {
		w.Errorf("%d items of ours, %d of the newer program and %d outbox rows were compared", ours, theirs, rows)
	}
}

func rowsOf(it item) (rows []item) {
	if list, ok := it["dl"].(*types.AttributeValueMemberL); ok {
		for _, row := range list.Value {
			if m, ok := row.(*types.AttributeValueMemberM); ok {
				rows = append(rows, m.Value)
			}
		}
	}
	return rows
}

func (w *world) keepsRows(key string, was, is []item) int {
	w.Helper()
	if len(was) != len(is) {
		w.Errorf("%s had %d outbox rows, and has %d", key, len(was), len(is))
		return 0
	}
	for i := range was {
		if !sameJSON(w, was[i][addition], is[i][addition]) {
			w.Errorf("row %d of %s has lost what was there", i, key)
		}
	}
	return len(is)
}
