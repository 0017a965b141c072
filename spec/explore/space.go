package explore

import "hash/maphash"

// Space is a set of states in the order in which they were found. Each is kept once and compared in full.
type Space[S comparable] struct {
	States []S // not to be changed

	seed  maphash.Seed
	table []int32 // index into States + 1, found by hash and linear probing
}

// NewSpace is empty.
func NewSpace[S comparable]() *Space[S] {
	return &Space[S]{seed: maphash.MakeSeed(), table: make([]int32, 1<<10)}
}

// Add returns the state's index, and whether it is new. The order in which states are found does not depend on the
// hash.
func (x *Space[S]) Add(s *S) (int32, bool) {
	if 2*len(x.States) >= len(x.table) {
		x.grow()
	}
	mask := uint64(len(x.table) - 1)
	for h := maphash.Comparable(x.seed, *s) & mask; ; h = (h + 1) & mask {
		switch i := x.table[h]; {
		case i == 0:
			x.States = append(x.States, *s)
			x.table[h] = int32(len(x.States)) // memory ends long before
			return int32(len(x.States)) - 1, true
		case x.States[i-1] == *s:
			return i - 1, false
		}
	}
}

func (x *Space[S]) grow() {
	x.table = make([]int32, 2*len(x.table))
	mask := uint64(len(x.table) - 1)
	for i := range x.States {
		h := maphash.Comparable(x.seed, x.States[i]) & mask
		for x.table[h] != 0 {
			h = (h + 1) & mask
		}
		x.table[h] = int32(i) + 1
	}
}
