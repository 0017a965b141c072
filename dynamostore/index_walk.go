package dynamostore

import (
	"context"
	"slices"
	"strings"
)

// span is a part of an index: partitions that are merged in the order of their sort keys. Ties are in the order of the partitions,
// and within one in the index's own order, which is stable but nobody else's business: so a position resumes exactly, however
// many rows share a key.
type span struct {
	Index
	sk         string // the sort key of every item that the index holds
	partitions []partition
	backwards  bool
}

// partition is one of a span's, or a part of it, between two sort keys.
type partition struct{ name, from, until string }

// Every sort key is between these two.
const (
	beforeKeys = "\x01"
	beyondKeys = "\U0010FFFF"
)

// indexPosition is a row's place. The zero value is before every row.
type indexPosition struct {
	Partition string `json:"p,omitempty"`
	Sort      string `json:"s,omitempty"`
	PK        string `json:"k,omitempty"`
}

type indexRow struct {
	indexPosition
	item item
}

// order is the order of a span; rows of one partition and key are equal to it.
func (sp *span) order(a, b indexPosition) int {
	bySort := strings.Compare(a.Sort, b.Sort)
	if sp.backwards {
		bySort = -bySort
	}
	if bySort != 0 {
		return bySort
	}
	return strings.Compare(a.Partition, b.Partition)
}

// visitor looks at rows and tells how many it took, from the first on: at least one, unless it has had enough.
type visitor func(rows []indexRow) (taken int, enough bool, err error)

// Walk shows the rows behind a position in order, in batches, until visit has had enough or most were taken. It returns how
// many were, the position of the last one, and whether there is more behind it. chunk is how many rows of a partition are read at
// once.
func (t *Table) Walk(
	ctx context.Context, operation string, sp *span, after indexPosition, chunk, most int, visit visitor,
) (examined int, stopped indexPosition, more bool, err error) {
	return t.NewWalk(operation, sp, after, chunk).show(ctx, most, visit)
}

func (t *Table) NewWalk(operation string, sp *span, after indexPosition, chunk int) *indexWalk {
	w := &indexWalk{table: t, operation: operation, span: sp, after: after, chunk: chunk, batch: BatchKeys, atOnce: MaxParallel}
	w.add(sp.partitions)
	return w
}

// indexWalk merges the partitions of a span, from a position on.
type indexWalk struct {
	table     *Table
	operation string
	span      *span
	after     indexPosition
	chunk     int // rows of a partition that the next request reads
	batch     int // rows that are shown at once
	atOnce    int // requests
	readers   []*partitionReader
}

// chunkOf is how many rows of a shard are read at once for a page: runs are spread evenly over eight or more.
func chunkOf(limit int) int { return max(limit/4, 16) }

// add takes partitions in that no reader has yet.
func (w *indexWalk) add(partitions []partition) {
	for _, p := range partitions {
		if !slices.ContainsFunc(w.readers, func(r *partitionReader) bool { return r.partition == p }) {
			w.readers = append(w.readers, &partitionReader{partition: p, after: w.after, cut: true})
		}
	}
}

// show is Walk over what was read already, and what has to be read.
func (w *indexWalk) show(ctx context.Context, most int, visit visitor) (examined int, stopped indexPosition, more bool, err error) {
	var batch []indexRow
	after := w.after
	for {
		if batch, err = w.fill(ctx, batch, min(w.batch, most-examined)); err != nil || len(batch) == 0 {
			return examined, after, false, err
		}
		taken, enough, err := visit(batch)
		if err != nil {
			return examined, after, false, err
		}
		if taken > 0 {
			after = batch[taken-1].indexPosition
		}
		batch, examined = batch[taken:], examined+taken
		if enough || examined == most {
			return examined, after, len(batch) > 0 || w.more(), nil
		}
	}
}

// partitionReader holds the next rows of a partition. cut tells that there are more behind them.
type partitionReader struct {
	partition
	after indexPosition // of the last row that was read, of any partition at first
	rows  []indexRow
	cut   bool
}

func (w *indexWalk) more() bool {
	for _, r := range w.readers {
		if r.cut || len(r.rows) > 0 {
			return true
		}
	}
	return false
}

// fill adds the next rows to a batch until it has so many, or there are no more.
func (w *indexWalk) fill(ctx context.Context, batch []indexRow, size int) ([]indexRow, error) {
	for len(batch) < size {
		if err := w.read(ctx); err != nil {
			return nil, err
		}
		first := w.span.first(w.readers)
		if first == nil {
			break
		}
		batch, first.rows = append(batch, first.rows[0]), first.rows[1:]
	}
	return batch, nil
}

// first is the reader whose next row is the first of all; nil when none has any.
func (sp *span) first(readers []*partitionReader) (first *partitionReader) {
	for _, r := range readers {
		if len(r.rows) > 0 && (first == nil || sp.order(r.rows[0].indexPosition, first.rows[0].indexPosition) < 0) {
			first = r
		}
	}
	return first
}

// ready are the next rows, at most so many, whose order is known without another request. It takes none of them.
func (w *indexWalk) ready(most int) (rows []indexRow) {
	copies := make([]*partitionReader, len(w.readers))
	for i, r := range w.readers {
		copied := *r
		copies[i] = &copied
	}
	for len(rows) < most && !slices.ContainsFunc(copies, (*partitionReader).wants) {
		first := w.span.first(copies)
		if first == nil {
			break
		}
		rows, first.rows = append(rows, first.rows[0]), first.rows[1:]
	}
	return rows
}

// wants tells that the reader has to read before it can say which of its rows is next.
func (r *partitionReader) wants() bool { return r.cut && len(r.rows) == 0 }

// reads are what has to be read now, each on its own: without a row of every partition that has more, the order is not known.
func (w *indexWalk) reads() (reads []func(context.Context) error) {
	for _, r := range w.readers {
		if r.wants() {
			reads = append(reads, func(ctx context.Context) error { return w.readPartition(ctx, r) })
		}
	}
	return reads
}

func (w *indexWalk) read(ctx context.Context) error { return AllOf(ctx, w.atOnce, w.reads()) }

// readPartition reads the next rows of one partition. Of rows with the position's own key, those of earlier partitions are behind
// it, those of later ones ahead.
func (w *indexWalk) readPartition(ctx context.Context, r *partitionReader) error {
	sp, after, from, until := w.span, r.after, r.from, r.until
	q := &Query{
		Operation: w.operation, Index: sp.Name, Where: "#" + sp.Hash + " = :p AND #" + sp.Sort + " BETWEEN :from AND :until",
		Backwards: sp.backwards, Limit: w.chunk + 1,
	}
	passed := after.PK != "" && r.name < after.Partition
	switch {
	case after.PK == "":
	case sp.backwards:
		until = min(until, after.Sort)
	case passed:
		from = max(from, after.Sort+" ") // below every character of a key: the next one
	default:
		from = max(from, after.Sort)
	}
	r.cut = false
	if from > until {
		return nil
	}
	if r.name == after.Partition && from <= after.Sort && after.Sort <= until {
		q.Behind = itemKey(after.PK, sp.sk)
		q.Behind[sp.Hash], q.Behind[sp.Sort] = text(r.name), text(after.Sort)
	}
	q.Values = item{":p": text(r.name), ":from": text(from), ":until": text(until)}
	return w.table.Query(ctx, q, func(it item) (bool, error) {
		row := indexRow{indexPosition{r.name, textOf(it[sp.Sort]), textOf(it[attrPK])}, it}
		if passed && row.Sort == after.Sort {
			return true, nil
		}
		if r.cut = len(r.rows) == w.chunk; r.cut {
			return false, nil
		}
		r.rows, r.after = append(r.rows, row), row.indexPosition
		return true, nil
	})
}
