package memlane

import (
	"fmt"
	"slices"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"pgregory.net/rapid"
)

// The sorted slice is the model: slow, and obviously right.
func TestOrdered_BehavesLikeASortedSlice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var set ordered
		var model []item
		entries := make([]*entry, 2*blockSize+10)
		for i := range entries {
			entries[i] = &entry{id: runlane.RunID(fmt.Sprintf("run_%04d", i))}
		}
		find := func(i item) (int, bool) {
			return slices.BinarySearchFunc(model, i.position(), func(m item, p position) int { return m.position().compare(p) })
		}
		spread := rapid.SampledFrom([]int64{1, 5, 1000}).Draw(t, "instants") // many ties, some, hardly any
		steps := rapid.IntRange(1, 3*blockSize).Draw(t, "steps")
		removes := rapid.SampledFrom([]int{2, 4, 10}).Draw(t, "one in so many steps removes")
		for step := range steps {
			if step%removes == removes-1 && len(model) > 0 {
				n := rapid.IntRange(0, len(model)-1).Draw(t, "remove")
				if !set.remove(model[n]) {
					t.Fatalf("%v was not there", model[n])
				}
				if set.remove(model[n]) {
					t.Fatalf("%v was there twice", model[n])
				}
				model = slices.Delete(model, n, n+1)
				continue
			}
			i := item{embedded.Millis(rapid.Int64Range(0, spread).Draw(t, "at")), entries[rapid.IntRange(0, len(entries)-1).Draw(t, "entry")]}
			if n, there := find(i); !there {
				set.insert(i)
				model = slices.Insert(model, n, i)
			}
		}
		if set.size != len(model) {
			t.Fatalf("size is %d, want %d", set.size, len(model))
		}
		sets := []*ordered{&set}
		same(t, "upwards", model, all(ascend(sets, nil)))
		backwards := slices.Clone(model)
		slices.Reverse(backwards)
		same(t, "downwards", backwards, all(descend(sets, nil)))

		from := position{embedded.Millis(rapid.Int64Range(-1, spread+1).Draw(t, "from")), entries[rapid.IntRange(0, len(entries)-1).Draw(t, "from")].id}
		n, there := slices.BinarySearchFunc(model, from, func(m item, p position) int { return m.position().compare(p) })
		before, behind := model[:n], model[n:]
		if there {
			behind = model[n+1:]
		}
		same(t, "upwards from a place", behind, all(ascend(sets, &from)))
		backwards = slices.Clone(before)
		slices.Reverse(backwards)
		same(t, "downwards from a place", backwards, all(descend(sets, &from)))
	})
}

func TestWalk_MergesSetsInOrder(t *testing.T) {
	t.Parallel()
	var sets [3]ordered
	var want []item
	for n := range 700 {
		i := item{embedded.Millis(n / 2), &entry{id: runlane.RunID(fmt.Sprintf("run_%04d", n))}}
		sets[n%3].insert(i)
		want = append(want, i)
	}
	all3 := []*ordered{&sets[0], &sets[1], &sets[2]}
	same(t, "upwards", want, all(ascend(all3, nil)))
	middle := want[350].position()
	same(t, "upwards from the middle", want[351:], all(ascend(all3, &middle)))
	slices.Reverse(want)
	same(t, "downwards", want, all(descend(all3, nil)))
	same(t, "of nothing", nil, all(ascend(nil, nil)))
}

func all(w *walk) []item {
	var items []item
	for {
		next, ok := w.peek()
		if !ok {
			return items
		}
		items = append(items, next)
		w.advance()
	}
}

func same(t interface{ Fatalf(string, ...any) }, what string, want, got []item) {
	if !slices.Equal(want, got) {
		t.Fatalf("%s: %d items, want %d, or in another order", what, len(got), len(want))
	}
}
