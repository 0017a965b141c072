package lives

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore"
)

// faultyRequests is a client whose requests go wrong. What happens to a write depends on the step and on the item, so that writes made
// at the same time, in whatever order, meet what they met before.
type faultyRequests struct {
	dynamostore.API // items that indexes show late

	environment string
	seed        uint64
	rates       map[fault]float64
	tally       *tally
	sound       dynamostore.API // to which nothing happens

	mu      sync.Mutex
	step    int
	over    bool
	stale   *faultyClient            // each of whose indexes is behind, always
	clients map[string]*faultyClient // of this step, by item
	asked   map[string]int           // queries of this step, by what they ask for
}

func newFaulty(items *written, environment runlane.Environment, l *life) *faultyRequests {
	var always map[fault]float64
	if l.weather.requests[staleIndex] > 0 {
		always = map[fault]float64{staleIndex: 1}
	}
	stale := newFaultyClient(items, 1, always)
	return &faultyRequests{
		API: stale, environment: environment.Name(), seed: l.seed, rates: l.weather.requests, tally: l.tally, sound: items,
		stale: stale, clients: map[string]*faultyClient{}, asked: map[string]int{},
	}
}

// begin counts what happened in the step before.
func (f *faultyRequests) begin(step int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.step = step
	for _, client := range f.clients {
		client.count(f.tally)
	}
	clear(f.clients)
	clear(f.asked)
}

func (f *faultyRequests) end() {
	f.begin(0)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
}

func (f *faultyRequests) client(keys ...itemKey) dynamostore.API {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over || len(keys) == 0 {
		return f.sound
	}
	name := strings.TrimPrefix(keys[0].pk, f.environment+":") + " " + keys[0].sk
	client := f.clients[name]
	if client == nil {
		seed := f.seed ^ hashOf(name)*uint64(2*f.step+1) // a step is positive
		client = newFaultyClient(f.stale, seed, f.rates)
		f.clients[name] = client
	}
	return client
}

// TransactWriteItems implements dynamostore.API.
func (f *faultyRequests) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	return f.client(keysOf(in)...).TransactWriteItems(ctx, in, o...)
}

// UpdateItem implements dynamostore.API.
func (f *faultyRequests) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return f.client(keyOf(in.Key)).UpdateItem(ctx, in, o...)
}

// DeleteItem implements dynamostore.API.
func (f *faultyRequests) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return f.client(keyOf(in.Key)).DeleteItem(ctx, in, o...)
}

// Query implements dynamostore.API.
func (f *faultyRequests) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if f.behind(in) {
		return f.stale.Query(ctx, in, o...)
	}
	return f.sound.Query(ctx, in, o...)
}

// behind decides about a query by the step and by what it asks for: some are made side by side.
func (f *faultyRequests) behind(in *dynamodb.QueryInput) bool {
	var parts []string
	for name, value := range in.ExpressionAttributeValues {
		if s, ok := value.(*types.AttributeValueMemberS); ok {
			parts = append(parts, name+" "+strings.TrimPrefix(s.Value, f.environment+":"))
		}
	}
	slices.Sort(parts)
	name := aws.ToString(in.IndexName) + strings.Join(parts, " ")
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over || in.IndexName == nil {
		return false
	}
	f.asked[name]++
	if chanceOf(f.seed, strconv.Itoa(f.step)+" "+name+" "+strconv.Itoa(f.asked[name])) >= f.rates[staleIndex] {
		return false
	}
	f.tally.fault(string(staleIndex))
	return true
}
