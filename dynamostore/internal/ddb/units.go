package ddb

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go/dynamostore/internal/item"
)

// Usage counts requests and capacity units. A write of up to 1 KB is one write unit, in a transaction two, plus one for
// each index entry put or removed. A strong read of up to 4 KB is one read unit.
type Usage struct {
	Requests   int64
	WriteUnits float64
	ReadUnits  float64
}

// Meter gets the usage of each request, computed from the data sent and received, and each conflict of transactions.
type Meter interface {
	Used(ctx context.Context, operation string, u Usage)
	Conflict()
}

type Index struct {
	Name, Hash, Sort string
	// Projected are its attributes apart from the keys.
	Projected []string
}

// ReadUnits is the number of read units for a size, at least 1 before halving.
func ReadUnits(size int, consistent bool) float64 {
	n := float64(max((size+4095)/4096, 1))
	if !consistent {
		n /= 2
	}
	return n
}

// indexUnits is the cost of an item's change in the indexes: one unit for an entry put or removed, two for one that
// moves. An unmoved entry costs none, because its projected attributes never change.
func indexUnits(indexes []Index, before, after item.Item) int {
	total := 0
	for _, index := range indexes {
		old, isOld := indexEntry(before, index)
		now, isNew := indexEntry(after, index)
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

func indexEntry(it item.Item, index Index) (key [2]string, ok bool) {
	p, ok1 := it[index.Hash].(*types.AttributeValueMemberS)
	a, ok2 := it[index.Sort].(*types.AttributeValueMemberS)
	if !ok1 || !ok2 {
		return key, false
	}
	return [2]string{p.Value, a.Value}, true
}

func writeUsage(indexes []Index, before, after item.Item) Usage {
	size := max(item.Size(before), item.Size(after))
	return Usage{Requests: 1, WriteUnits: float64(max(item.Units(size), 1) + indexUnits(indexes, before, after))}
}

// transactionUsage is the usage of one transaction; entries is the part for index entries, which a cancelled one does
// not cost.
func transactionUsage(indexes []Index, writes []item.Write) (u Usage, entries float64) {
	for i := range writes {
		before, after := writes[i].Before, writes[i].After
		size := max(item.Size(before), item.Size(after))
		u.WriteUnits += float64(2 * max(item.Units(size), 1))
		entries += float64(indexUnits(indexes, before, after))
	}
	return Usage{Requests: 1, WriteUnits: u.WriteUnits + entries}, entries
}
