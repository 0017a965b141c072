package dynamostore

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// usage counts requests and capacity units. A write unit is one write of up to 1 KB, twice that in a transaction, plus one for
// each index entry put or removed; a read unit is one strongly consistent read of up to 4 KB.
type usage struct {
	Requests   int64
	WriteUnits float64
	ReadUnits  float64
}

// requestMeter is told what every request uses, computed from what is sent and received, and of transactions that met another one.
type requestMeter interface {
	Used(ctx context.Context, operation string, u usage)
	Conflict()
}

func (t *Table) used(ctx context.Context, operation string, u usage) { t.Meter.Used(ctx, operation, u) }

// units is the number of 1 KB write units of a size.
func units(size int) int { return (size + 1023) / 1024 }

// readUnits is the number of 4 KB read units of a size, at least one.
func readUnits(size int, consistent bool) float64 {
	n := float64(max((size+4095)/4096, 1))
	if !consistent {
		n /= 2
	}
	return n
}

// indexUnits is what the change of an item costs in the indexes: one unit for an entry put, one for an entry removed, two for one
// that moves, nothing for one that stays: what an index projects beside its keys never changes once it is there.
func (t *Table) indexUnits(before, after item) int {
	total := 0
	for _, index := range t.Indexes {
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

func entry(it item, index Index) (key [2]string, ok bool) {
	p, ok1 := it[index.Hash].(*types.AttributeValueMemberS)
	a, ok2 := it[index.Sort].(*types.AttributeValueMemberS)
	if !ok1 || !ok2 {
		return key, false
	}
	return [2]string{p.Value, a.Value}, true
}

// writeUsage is one request that changes one item.
func (t *Table) writeUsage(before, after item) usage {
	size := max(itemSize(before), itemSize(after))
	return usage{Requests: 1, WriteUnits: float64(max(units(size), 1) + t.indexUnits(before, after))}
}
