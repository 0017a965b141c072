package dynamostore

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/infra"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// describedClient answers what a table is.
type describedClient struct {
	API
	table types.TableDescription
}

func (c *describedClient) DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return &dynamodb.DescribeTableOutput{Table: &c.table}, nil
}

// describedTable is a table of the layout, and what the service says of it.
func describedTable() types.TableDescription {
	in := infra.TableInput("runs")
	table := types.TableDescription{KeySchema: in.KeySchema}
	for _, index := range in.GlobalSecondaryIndexes {
		table.GlobalSecondaryIndexes = append(table.GlobalSecondaryIndexes, types.GlobalSecondaryIndexDescription{
			IndexName: index.IndexName, IndexStatus: types.IndexStatusActive, KeySchema: index.KeySchema, Projection: index.Projection,
		})
	}
	return table
}

// What DynamoDB Local never shows, because its indexes are made and deleted at once, and what it can.
func TestIndexes_EachStateIsNamedWithWhatToDo(t *testing.T) {
	t.Parallel()
	further := types.GlobalSecondaryIndexDescription{IndexName: aws.String("next"), IndexStatus: types.IndexStatusActive}
	for name, c := range map[string]struct {
		change   func(*types.TableDescription, *types.GlobalSecondaryIndexDescription) // the second is done
		index    string
		readable bool
		says     string // "" is no fault
		code     runlane.ErrorCode
	}{
		"as it is": {index: "done", readable: true},
		"updating": {
			change: func(_ *types.TableDescription, done *types.GlobalSecondaryIndexDescription) {
				done.IndexStatus = types.IndexStatusUpdating
			}, index: "done", readable: true,
		},
		"missing": {
			change: func(table *types.TableDescription, _ *types.GlobalSecondaryIndexDescription) {
				table.GlobalSecondaryIndexes = table.GlobalSecondaryIndexes[:1]
			}, index: "done", says: "index done is missing", code: runlane.ErrConfigurationInvalid,
		},
		"creating": {
			change: func(_ *types.TableDescription, done *types.GlobalSecondaryIndexDescription) {
				done.IndexStatus = types.IndexStatusCreating
			}, index: "done", says: "index done is being created", code: runlane.ErrStorageUnavailable,
		},
		"backfilling": {
			change: func(_ *types.TableDescription, done *types.GlobalSecondaryIndexDescription) {
				done.IndexStatus, done.Backfilling = types.IndexStatusCreating, aws.Bool(true)
			}, index: "done", says: "index done is being created, and filled from the table", code: runlane.ErrStorageUnavailable,
		},
		"deleting": {
			change: func(_ *types.TableDescription, done *types.GlobalSecondaryIndexDescription) {
				done.IndexStatus = types.IndexStatusDeleting
			}, index: "done", says: "index done is being deleted", code: runlane.ErrConfigurationInvalid,
		},
		"other keys": {
			change: func(_ *types.TableDescription, done *types.GlobalSecondaryIndexDescription) {
				done.KeySchema = done.KeySchema[:1]
			}, index: "done", says: "index done is not keyed by fp and fa", code: runlane.ErrConfigurationInvalid,
		},
		"an attribute is not projected": {
			change: func(_ *types.TableDescription, done *types.GlobalSecondaryIndexDescription) {
				done.Projection = &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: []string{"tk", "qu"}}
			}, index: "done", says: "index done has no ca fc na nf nl nt ra sf so sr ss: lists show less", code: runlane.ErrConfigurationInvalid,
		},
		"all is projected": {
			change: func(_ *types.TableDescription, done *types.GlobalSecondaryIndexDescription) {
				done.Projection = &types.Projection{ProjectionType: types.ProjectionTypeAll}
			}, index: "done", readable: true, says: "index done also projects all attributes", code: runlane.ErrConfigurationInvalid,
		},
		"one that this version does not read": {
			change: func(table *types.TableDescription, _ *types.GlobalSecondaryIndexDescription) {
				table.GlobalSecondaryIndexes = append(table.GlobalSecondaryIndexes, further)
			}, index: "next", readable: true,
		},
		"one for the next version is being made": {
			change: func(table *types.TableDescription, _ *types.GlobalSecondaryIndexDescription) {
				made := further
				made.IndexStatus, made.Backfilling = types.IndexStatusCreating, aws.Bool(true)
				table.GlobalSecondaryIndexes = append(table.GlobalSecondaryIndexes, made)
			}, index: "next", readable: true, says: "index next is being created, and", code: runlane.ErrStorageUnavailable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := &describedClient{table: describedTable()}
			if c.change != nil {
				c.change(&client.table, &client.table.GlobalSecondaryIndexes[1])
			}
			states, err := New(client, "runs", nil).Indexes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(states, func(s lane.IndexState) bool { return s.Name == c.index })
			if at < 0 {
				t.Fatalf("no index %s: %+v", c.index, states)
			}
			got := states[at]
			if got.Readable != c.readable || got.Used != (c.index != "next") || (got.Fault != nil) != (c.says != "") {
				t.Fatalf("%+v", got)
			}
			if got.Fault != nil && (!strings.HasPrefix(got.Fault.Message, c.says) || got.Fault.Code != c.code || got.Fault.Hint == "") {
				t.Errorf("%+v", got.Fault)
			}
		})
	}
}

// The program's view of the table is the template's.
func TestIndexes_AreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	in := infra.TableInput("runs")
	var want, got []string
	for _, index := range in.GlobalSecondaryIndexes {
		want = append(want, aws.ToString(index.IndexName)+" "+strings.Join(index.Projection.NonKeyAttributes, " "))
	}
	for _, index := range indexes {
		got = append(got, index.Name+" "+strings.Join(index.Projected, " "))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("indexes (-infra +dynamostore):\n%s", diff)
	}
}

// An index is deleted and made anew beside a running program, as docs/operating.md says: everything but lists of finished runs goes on,
// and afterwards the index has what ended before and meanwhile.
func TestIndexes_MadeAnew_HasWhatEndedMeanwhile(t *testing.T) {
	t.Parallel()
	client := awstest.DynamoDB(t)
	table := awstest.Table(t, client)
	store := New(client, table, &Options{RequestTimeout: awstest.RequestTimeout})
	l, err := lane.New(store, memlane.NewTransport(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	task := runlane.NewTask[string]("indexed", nil)
	rt, err := core.Open(t.Context(), l, &core.Options{Handlers: []runlane.Handler{
		task.Handle(func(context.Context, *runlane.Attempt, string) error { return nil }),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	ended := func() runlane.RunID {
		result, err := rt.RunNow(t.Context(), task.With("x"), nil)
		if err != nil || result.Run.Status != runlane.StatusSucceeded {
			t.Fatalf("%+v, %v", result, err)
		}
		return result.Run.ID
	}
	want := []runlane.RunID{ended()}
	in := infra.TableInput(table)
	done := in.GlobalSecondaryIndexes[1]
	update := func(change types.GlobalSecondaryIndexUpdate) {
		_, err := client.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
			TableName: &table, AttributeDefinitions: in.AttributeDefinitions, GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{change},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	update(types.GlobalSecondaryIndexUpdate{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: done.IndexName}})
	awaitIndex(t, store, func(s lane.IndexState) bool { return s.Fault != nil && s.Fault.Message == "index done is missing" })
	if err := New(client, table, nil).Start(t.Context()); runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
		t.Errorf("a program starts without an index that it reads: %v", err)
	}
	want = append(want, ended())
	update(types.GlobalSecondaryIndexUpdate{Create: &types.CreateGlobalSecondaryIndexAction{
		IndexName: done.IndexName, KeySchema: done.KeySchema, Projection: done.Projection,
	}})
	awaitIndex(t, store, func(s lane.IndexState) bool { return s.Fault == nil && s.Readable })
	page, err := rt.Runs().List(t.Context(), &core.ListOptions{RunFilter: core.RunFilter{Statuses: []runlane.Status{runlane.StatusSucceeded}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range want {
		if !slices.ContainsFunc(page.Items, func(r runlane.RunSummary) bool { return r.ID == id && r.TaskID == "indexed" }) {
			t.Errorf("run %s is not in the list: %+v", id, page.Items)
		}
	}
}

// awaitIndex waits until the index done is as wanted.
func awaitIndex(t *testing.T, store *Store, wanted func(lane.IndexState) bool) {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		states, err := store.Indexes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if wanted(states[1]) {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("%+v", states[1])
		}
	}
}
