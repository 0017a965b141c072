package lane

import (
	"context"
	"sync"
)

// Usage counts requests and capacity units of a storage that charges for them. On DynamoDB a write unit is one write of
// up to 1 KB, twice that in a transaction, plus one for each index entry put or removed; a read unit is one strongly
// consistent read of up to 4 KB.
type Usage struct {
	Requests   int64   `json:"requests"`   // to the storage; a batch counts once
	WriteUnits float64 `json:"writeUnits"` // see above
	ReadUnits  float64 `json:"readUnits"`  // an eventually consistent read is half a unit
}

// Minus returns the usage between two readings.
func (u Usage) Minus(before Usage) Usage {
	return Usage{u.Requests - before.Requests, u.WriteUnits - before.WriteUnits, u.ReadUnits - before.ReadUnits}
}

// UsageCount sums the usage under one context. Make it with [CountUsage]. Safe for concurrent use.
type UsageCount struct {
	mutex sync.Mutex
	sum   Usage
}

// Usage returns the sum so far. It is zero if the storage does not count.
func (c *UsageCount) Usage() Usage {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.sum
}

type usageKey struct{}

// CountUsage returns a context that also counts the usage of its requests, for example of one call or page. Without it
// only the storage's own sums are kept.
func CountUsage(ctx context.Context) (context.Context, *UsageCount) {
	count := &UsageCount{}
	return context.WithValue(ctx, usageKey{}, count), count
}

// AddUsage is for storages: it adds a request's usage to the count of its context, if any.
func AddUsage(ctx context.Context, u Usage) {
	count, ok := ctx.Value(usageKey{}).(*UsageCount)
	if !ok {
		return
	}
	count.mutex.Lock()
	defer count.mutex.Unlock()
	count.sum.Requests += u.Requests
	count.sum.WriteUnits += u.WriteUnits
	count.sum.ReadUnits += u.ReadUnits
}
