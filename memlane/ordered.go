package memlane

import (
	"cmp"
	"slices"
	"sort"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
)

// ordered is a set of runs ordered by time, then by ID: a sorted list cut into blocks. Adding at the end (the common
// case) and removing from the front move little. The zero value is empty.
type ordered struct {
	blocks [][]item
	size   int
	kind   kind // if it is a list of runs
	// precedence of all of its runs, in lists by priority. Only ranked walks mind it.
	precedence embedded.Millis
	spare      []item // an empty block for reuse: many sets fill and empty repeatedly
}

// item is a run at the time that orders it.
type item struct {
	at    embedded.Millis
	entry *entry
}

// ranked is an item with the time that orders it in its walk.
type ranked struct {
	item

	rank embedded.Millis
}

// Place returns the item's position for cursors.
func (r ranked) Place(part byte) embedded.Position {
	return embedded.Position{Part: part, At: r.rank, ID: string(r.entry.id)}
}

func (r ranked) compare(other ranked) int {
	return cmp.Or(cmp.Compare(r.rank, other.rank), cmp.Compare(r.entry.id, other.entry.id))
}

// position is a place in the order, on an item or between two.
type position struct {
	at embedded.Millis
	id runlane.RunID
}

const blockSize = 256

func (i item) position() position { return position{i.at, i.entry.id} }

// Place returns the item's position for cursors.
func (i item) Place(part byte) embedded.Position {
	return embedded.Position{Part: part, At: i.at, ID: string(i.entry.id)}
}

// placeOf returns where a cursor resumes, nil for the start.
func placeOf(after *embedded.Position) *position {
	if after == nil {
		return nil
	}
	return &position{after.At, runlane.RunID(after.ID)}
}

func (p position) compare(other position) int {
	if p.at != other.at {
		return cmp.Compare(p.at, other.at)
	}
	return cmp.Compare(p.id, other.id)
}

// seek finds the first item at or after p.
func (o *ordered) seek(p position) (block, index int) {
	block = sort.Search(len(o.blocks), func(b int) bool {
		items := o.blocks[b]
		return items[len(items)-1].position().compare(p) >= 0
	})
	if block == len(o.blocks) {
		return block, 0
	}
	items := o.blocks[block]
	index = sort.Search(len(items), func(i int) bool { return items[i].position().compare(p) >= 0 })
	return block, index
}

func (o *ordered) insert(i item) {
	o.size++
	block, index := o.seek(i.position())
	if block == len(o.blocks) { // after all others
		if block == 0 || len(o.blocks[block-1]) == blockSize {
			o.blocks = append(o.blocks, append(o.spare, i))
			o.spare = nil
			return
		}
		o.blocks[block-1] = append(o.blocks[block-1], i)
		return
	}
	if len(o.blocks[block]) == blockSize {
		o.split(block)
		if half := len(o.blocks[block]); index > half {
			block, index = block+1, index-half
		}
	}
	o.blocks[block] = slices.Insert(o.blocks[block], index, i)
}

func (o *ordered) split(block int) {
	items := o.blocks[block]
	upper := append(make([]item, 0, blockSize), items[len(items)/2:]...)
	clear(items[len(items)/2:])
	o.blocks[block] = items[:len(items)/2]
	o.blocks = slices.Insert(o.blocks, block+1, upper)
}

// remove returns false if the item was missing.
func (o *ordered) remove(i item) bool {
	block, index, ok := o.find(i)
	if !ok {
		return false
	}
	o.size--
	o.blocks[block] = without(o.blocks[block], index)
	if len(o.blocks[block]) == 0 {
		o.spare = o.blocks[block]
		o.blocks = slices.Delete(o.blocks, block, block+1)
	}
	return true
}

// without moves the shorter side: most removals are near the front.
func without(items []item, index int) []item {
	if index >= len(items)/2 {
		return slices.Delete(items, index, index+1)
	}
	copy(items[1:], items[:index])
	items[0] = item{}
	return items[1:]
}

func (o *ordered) find(i item) (block, index int, ok bool) {
	block, index = o.seek(i.position())
	return block, index, block < len(o.blocks) && o.blocks[block][index] == i
}

// walk merges several sets in order. The sets must not change meanwhile.
type walk struct {
	sets       []*ordered
	next       [][2]int // block and index of each set's next item
	descending bool
	ranking    bool            // order by rank, in each set up to until
	until      embedded.Millis // the last time of a ranked walk
	heap       []int           // indexes of sets with a next item, smallest item first
}

// rank walks up from the position in the order of ranks, through the items that are due at until. The rank of an item is
// its time less the precedence of its set.
func rank(sets []*ordered, after *position, until embedded.Millis) *walk {
	w := &walk{sets: sets, next: make([][2]int, len(sets)), ranking: true, until: until}
	for n, set := range sets {
		if after != nil {
			w.next[n] = set.behind(position{after.at + set.precedence, after.id})
		}
	}
	return w.begin()
}

// ascend walks up from the first item after the position, nil for the start.
func ascend(sets []*ordered, after *position) *walk {
	w := &walk{sets: sets, next: make([][2]int, len(sets))}
	for n, set := range sets {
		if after == nil {
			continue
		}
		w.next[n] = set.behind(*after)
	}
	return w.begin()
}

// behind finds the first item after p.
func (o *ordered) behind(p position) [2]int {
	block, index := o.seek(p)
	if block < len(o.blocks) && o.blocks[block][index].position() == p {
		block, index = o.step(block, index, 1)
	}
	return [2]int{block, index}
}

// descend walks down from the last item before the position, nil for the end.
func descend(sets []*ordered, after *position) *walk {
	w := &walk{sets: sets, next: make([][2]int, len(sets)), descending: true}
	for n, set := range sets {
		block, index := len(set.blocks), 0
		if after != nil {
			block, index = set.seek(*after)
		}
		block, index = set.step(block, index, -1)
		w.next[n] = [2]int{block, index}
	}
	return w.begin()
}

func (w *walk) begin() *walk {
	for n := range w.sets {
		if w.has(n) {
			w.heap = append(w.heap, n)
		}
	}
	for i := len(w.heap)/2 - 1; i >= 0; i-- {
		w.sink(i)
	}
	return w
}

// step returns the place after or before a place. Block -1 or len(blocks) is outside.
func (o *ordered) step(block, index, by int) (int, int) {
	index += by
	switch {
	case index < 0:
		block--
		if block >= 0 {
			index = len(o.blocks[block]) - 1
		}
	case index >= len(o.blocks[block]):
		block, index = block+1, 0
	}
	return block, index
}

// peek returns the next item, ok = false at the end.
func (w *walk) peek() (found item, ok bool) {
	if len(w.heap) == 0 {
		return item{}, false
	}
	return w.at(w.heap[0]), true
}

// pop returns the next item and advances. The error, always nil, is for [embedded.FillPage].
func (w *walk) pop() (found item, ok bool, err error) {
	if found, ok = w.peek(); ok {
		w.advance()
	}
	return found, ok, nil
}

// popRanked is pop with the item's rank, which is its time unless the walk is ranked.
func (w *walk) popRanked() (found ranked, ok bool, err error) {
	if len(w.heap) == 0 {
		return ranked{}, false, nil
	}
	n := w.heap[0]
	found.item = w.at(n)
	found.rank = w.place(n).at
	w.advance()
	return found, true, nil
}

func (w *walk) advance() {
	n, by, last := w.heap[0], 1, len(w.heap)-1
	if w.descending {
		by = -1
	}
	block, index := w.sets[n].step(w.next[n][0], w.next[n][1], by)
	w.next[n] = [2]int{block, index}
	if !w.has(n) {
		w.heap[0], w.heap = w.heap[last], w.heap[:last]
	}
	w.sink(0)
}

func (w *walk) sink(i int) {
	for {
		child := 2*i + 1
		if child >= len(w.heap) {
			return
		}
		if right := child + 1; right < len(w.heap) && w.before(w.heap[right], w.heap[child]) {
			child = right
		}
		if !w.before(w.heap[child], w.heap[i]) {
			return
		}
		w.heap[i], w.heap[child] = w.heap[child], w.heap[i]
		i = child
	}
}

func (w *walk) has(n int) bool {
	return w.next[n][0] >= 0 && w.next[n][0] < len(w.sets[n].blocks) && (!w.ranking || w.at(n).at <= w.until)
}

func (w *walk) at(n int) item { return w.sets[n].blocks[w.next[n][0]][w.next[n][1]] }

func (w *walk) place(n int) position {
	p := w.at(n).position()
	if w.ranking {
		p.at -= w.sets[n].precedence
	}
	return p
}

func (w *walk) before(a, b int) bool {
	order := w.place(a).compare(w.place(b))
	return order < 0 && !w.descending || order > 0 && w.descending
}
