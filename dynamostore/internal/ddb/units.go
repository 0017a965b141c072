package ddb

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go/dynamostore/internal/item"
)

// Usage counts requests and capacity units. A write unit is one write of up to 1 KB, twice that in a transaction, plus
// one for each index entry put or removed; a read unit is one strongly consistent read of up to 4 KB.
type Usage struct {
	Requests   int64
	WriteUnits float64
	ReadUnits  float64
}

// Meter is told what every request uses, computed from the data sent and received, and each collision of a transaction
// with another one.
type Meter interface {
	Used(ctx context.Context, operation string, u Usage)
	Conflict()
}

// Index is a global secondary index: its name and its key attributes.
type Index struct {
	Name, Hash, Sort string
	// Projected are the attributes that it has beside the keys.
	Projected []string
}

// ReadUnits is the number of 4 KB read units of a size, at least one.
func ReadUnits(size int, consistent bool) float64 {
	n := float64(max((size+4095)/4096, 1))
	if !consistent {
		n /= 2
	}
	return n
}

// indexUnits is what the change of an item costs in the indexes: one unit for an entry put, one for an entry removed,
// two for an entry that moves, none for one that stays, because its projected attributes never change.
func indexUnits(indexes []Index, before, after item.Item) int {
	total := 0
	for _, index := range indexes {
		old, isOld := entry(before, index)
		now, isNew := entry(after, index)
		if isOld && isNew && old == now {
			continue
		}
		if isOld {
			total++
		}
		if isNew {
			total++
		}
	}
	return total
}

func entry(it item.Item, index Index) (key [2]string, ok bool) {
	p, ok1 := it[index.Hash].(*types.AttributeValueMemberS)
	a, ok2 := it[index.Sort].(*types.AttributeValueMemberS)
	if !ok1 || !ok2 {
		return key, false
	}
	return [2]string{p.Value, a.Value}, true
}

// writeUsage is the usage of one request that changes one item.
func writeUsage(indexes []Index, before, after item.Item) Usage {
	size := max(item.Size(before), item.Size(after))
	return Usage{Requests: 1, WriteUnits: float64(max(item.Units(size), 1) + indexUnits(indexes, before, after))}
}

// transactionUsage is the usage of one transaction. entries is the part of it for index entries, which a cancelled
// transaction does not put.
func transactionUsage(indexes []Index, writes []item.Write) (u Usage, entries float64) {
	for i := range writes {
		before, after := writes[i].Before, writes[i].After
		size := max(item.Size(before), item.Size(after))
		u.WriteUnits += float64(2 * max(item.Units(size), 1))
		entries += float64(indexUnits(indexes, before, after))
	}
	return Usage{Requests: 1, WriteUnits: u.WriteUnits + entries}, entries
}
