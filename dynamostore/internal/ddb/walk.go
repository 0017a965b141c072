package ddb

import (
	"context"
	"slices"
	"strings"

	"github.com/runlane/runlane-go/dynamostore/internal/item"
)

// Span merges partitions of an index by sort key. Equal keys are in the order of the partitions, then in the index's
// own stable order. So a position resumes exactly, even among many rows with one key.
type Span struct {
	Index
	SK         string // sort key of every item in the index
	Partitions []Partition
	Backwards  bool
}

// Partition is one partition of a span, between two sort keys.
type Partition struct{ Name, From, Until string }

// Position is the place of a row. The zero value is before every row.
type Position struct {
	Partition string `json:"p,omitempty"`
	Sort      string `json:"s,omitempty"`
	PK        string `json:"k,omitempty"`
}

type Row struct {
	Position
	Item item.Item
}

// Order compares two positions. Rows of one partition and key compare as equal.
func (sp *Span) Order(a, b Position) int {
	bySort := strings.Compare(a.Sort, b.Sort)
	if sp.Backwards {
		bySort = -bySort
	}
	if bySort != 0 {
		return bySort
	}
	return strings.Compare(a.Partition, b.Partition)
}

// visitor returns how many rows it took from the start of the batch: at least one, unless it has enough.
type visitor func(rows []Row) (taken int, enough bool, err error)

// Walk calls visit with batches of the rows after a position, until visit has enough or has taken most rows. It returns
// how many it took, the position of the last one, and whether more follow. chunk is how many rows of a partition one
// request reads.
func (t *Table) Walk(
	ctx context.Context, operation string, sp *Span, after Position, chunk, most int, visit visitor,
) (examined int, stopped Position, more bool, err error) {
	return t.NewWalk(operation, sp, after, chunk).Show(ctx, most, visit)
}

func (t *Table) NewWalk(operation string, sp *Span, after Position, chunk int) *Walking {
	w := &Walking{
		Table:     t,
		Operation: operation,
		Span:      sp,
		After:     after,
		Chunk:     chunk,
		Batch:     BatchKeys,
		AtOnce:    MaxParallel,
	}
	w.Add(sp.Partitions)
	return w
}

// Firsts remembers the first row's sort key of spans that were read, "" for none.
type Firsts interface {
	First(span Partition) (first string, known bool)
	Note(span Partition, first string)
}

type Walking struct {
	Table     *Table
	Operation string
	Span      *Span
	After     Position
	Chunk     int    // rows of a partition that one request reads
	Batch     int    // rows of one call of visit
	AtOnce    int    // requests
	Firsts    Firsts // shared with other walks; nil: none
	readers   []*partitionReader
}

// ChunkOf is how many rows of a shard to read at once for a page: runs are spread evenly over eight shards or more.
func ChunkOf(limit int) int { return max(limit/4, 16) }

func (w *Walking) Add(partitions []Partition) {
	for _, p := range partitions {
		if !slices.ContainsFunc(w.readers, func(r *partitionReader) bool { return r.Partition == p }) {
			w.readers = append(w.readers, &partitionReader{Partition: p, after: w.After, cut: true})
		}
	}
}

// Show continues the walk like Walk.
func (w *Walking) Show(
	ctx context.Context, most int, visit visitor,
) (examined int, stopped Position, more bool, err error) {
	var batch []Row
	after := w.After
	for {
		if batch, err = w.fill(ctx, batch, min(w.Batch, most-examined)); err != nil || len(batch) == 0 {
			return examined, after, false, err
		}
		taken, enough, err := visit(batch)
		if err != nil {
			return examined, after, false, err
		}
		if taken > 0 {
			after = batch[taken-1].Position
		}
		batch, examined = batch[taken:], examined+taken
		if enough || examined == most {
			return examined, after, len(batch) > 0 || w.more(), nil
		}
	}
}

// partitionReader buffers rows of a partition. cut means that more rows follow.
type partitionReader struct {
	Partition
	after Position // last row that was read, in any partition at first
	rows  []Row
	cut   bool
}

func (w *Walking) more() bool {
	for _, r := range w.readers {
		if r.cut || len(r.rows) > 0 {
			return true
		}
	}
	return false
}

// fill adds rows to a batch until it has size rows or there are no more.
func (w *Walking) fill(ctx context.Context, batch []Row, size int) ([]Row, error) {
	for len(batch) < size {
		if err := w.read(ctx); err != nil {
			return nil, err
		}
		first := w.Span.first(w.readers)
		if first == nil {
			break
		}
		batch, first.rows = append(batch, first.rows[0]), first.rows[1:]
	}
	return batch, nil
}

func (sp *Span) first(readers []*partitionReader) (first *partitionReader) {
	for _, r := range readers {
		if len(r.rows) > 0 && (first == nil || sp.Order(r.rows[0].Position, first.rows[0].Position) < 0) {
			first = r
		}
	}
	return first
}

// Ready returns, without taking them, the next rows that are known without another request, at most most.
func (w *Walking) Ready(most int) (rows []Row) {
	copies := make([]*partitionReader, len(w.readers))
	for i, r := range w.readers {
		copied := *r
		copies[i] = &copied
	}
	for len(rows) < most && !slices.ContainsFunc(copies, (*partitionReader).needsRead) {
		first := w.Span.first(copies)
		if first == nil {
			break
		}
		rows, first.rows = append(rows, first.rows[0]), first.rows[1:]
	}
	return rows
}

// needsRead reports that the next row is not known without a read.
func (r *partitionReader) needsRead() bool { return r.cut && len(r.rows) == 0 }

// Reads are the reads needed now, as independent functions: the order is known only with a row of every unfinished
// partition.
func (w *Walking) Reads() (reads []func(context.Context) error) {
	for _, r := range w.readers {
		if r.needsRead() {
			reads = append(reads, func(ctx context.Context) error { return w.readPartition(ctx, r) })
		}
	}
	return reads
}

func (w *Walking) read(ctx context.Context) error { return AllOf(ctx, w.AtOnce, w.Reads()) }

// readPartition reads the next rows of one partition. Rows with the position's sort key precede the position in earlier
// partitions and follow it in later ones.
func (w *Walking) readPartition(ctx context.Context, r *partitionReader) error {
	sp, after, from, until := w.Span, r.after, r.From, r.Until
	q := &Query{
		Operation: w.Operation,
		Index:     sp.Name,
		Where:     "#" + sp.Hash + " = :p AND #" + sp.Sort + " BETWEEN :from AND :until",
		Backwards: sp.Backwards,
		Limit:     w.Chunk + 1,
	}
	passed := after.PK != "" && r.Name < after.Partition
	switch {
	case after.PK == "":
	case sp.Backwards:
		until = min(until, after.Sort)
	case passed:
		from = max(from, after.Sort+" ") // a space sorts below every character of a key
	default:
		from = max(from, after.Sort)
	}
	r.cut = false
	if from > until {
		return nil
	}
	span, first, end, noting := Partition{Name: r.Name, From: from}, "", until, false
	if w.Firsts != nil && after.PK == "" && !sp.Backwards {
		known := false
		if first, known = w.Firsts.First(span); known && (first == "" || first > until) {
			return nil
		}
		if noting = !known; noting {
			end = item.BeyondKeys // the first row tells the other walks whether they have to read
		}
	}
	if r.Name == after.Partition && from <= after.Sort && after.Sort <= until {
		q.Behind = item.Key(after.PK, sp.SK)
		q.Behind[sp.Hash], q.Behind[sp.Sort] = item.Text(r.Name), item.Text(after.Sort)
	}
	q.Values = item.Item{":p": item.Text(r.Name), ":from": item.Text(from), ":until": item.Text(end)}
	err := w.Table.Query(ctx, q, func(it item.Item) (bool, error) {
		row := Row{Position{r.Name, item.TextOf(it[sp.Sort]), item.TextOf(it[item.PK])}, it}
		if first == "" {
			first = row.Sort
		}
		if row.Sort > until {
			return false, nil
		}
		if passed && row.Sort == after.Sort {
			return true, nil
		}
		if r.cut = len(r.rows) == w.Chunk; r.cut {
			return false, nil
		}
		r.rows, r.after = append(r.rows, row), row.Position
		return true, nil
	})
	if err == nil && noting {
		w.Firsts.Note(span, first)
	}
	return err
}
