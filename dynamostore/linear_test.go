//go:build proof

package dynamostore_test

import (
	"testing"

	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/lives/linear"
	"github.com/runlane/runlane-go/lane"
)

// Four processes over one table. What the store cannot know when requests below it lose their answers stands in the options.
func TestStore_Linearizability(t *testing.T) {
	t.Parallel()
	client := awstest.DynamoDB(t)
	table := awstest.Table(t, client)
	for name, c := range map[string]struct {
		refused, lost float64
		options       linear.Options
	}{
		"WithConflicts":   {0.05, -1, linear.Options{Operations: 3}},
		"WithLostAnswers": {0, 0.05, linear.Options{Clients: 16, Operations: 9, Keys: 6, LosesAnswers: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			behind := refusing(t, c.refused, c.lost)
			linear.Run(t, linear.Harness{
				New: func(t testing.TB) []lane.Storage {
					t.Helper()
					return processes(t, behind, table)
				},
				Options: &c.options,
			})
		})
	}
}

func processes(t testing.TB, client dynamostore.API, table string) []lane.Storage {
	t.Helper()
	var stores []lane.Storage
	for range 4 {
		store := dynamostore.New(client, table, &dynamostore.Options{RequestTimeout: awstest.RequestTimeout})
		if err := store.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		stores = append(stores, store)
	}
	return stores
}
