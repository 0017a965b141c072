package lane

import (
	"context"
	"sync"
)

// Usage counts requests and capacity units of a storage that is paid for by them. On DynamoDB a write unit is one write
// of up to 1 KB, twice that in a transaction, plus one for each index entry put or removed; a read unit is one strongly
// consistent read of up to 4 KB.
type Usage struct {
	Requests   int64   `json:"requests"`   // to the storage; one of several writes counts once
	WriteUnits float64 `json:"writeUnits"` // see above
	ReadUnits  float64 `json:"readUnits"`  // half a unit where the read may be late
}

// Minus is what was used between two readings.
func (u Usage) Minus(before Usage) Usage {
	return Usage{u.Requests - before.Requests, u.WriteUnits - before.WriteUnits, u.ReadUnits - before.ReadUnits}
}

// UsageCount adds up what is used under one context. Make it with [CountUsage]. Safe for concurrent use.
type UsageCount struct {
	mutex sync.Mutex
	sum   Usage
}

// Usage returns the sum so far. It is zero where the storage does not count.
func (c *UsageCount) Usage() Usage {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.sum
}

type usageKey struct{}

// CountUsage returns a context whose requests a storage that counts adds to the count, too, besides its own sums: what
// one call or one page has used. Without it nothing is counted.
func CountUsage(ctx context.Context) (context.Context, *UsageCount) {
	count := &UsageCount{}
	return context.WithValue(ctx, usageKey{}, count), count
}

// AddUsage is how a storage tells the count of a request's context, where it has one, what the request has used.
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
