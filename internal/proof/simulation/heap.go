package main

// heap keeps the first of its items at hand.
type heap[T any, P interface {
	*T
	before(*T) bool
}] struct{ items []T }

func (h *heap[T, P]) less(i, j int) bool { return P(&h.items[i]).before(&h.items[j]) }

func (h *heap[T, P]) push(item T) {
	h.items = append(h.items, item)
	for i := len(h.items) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			return
		}
		h.items[i], h.items[parent] = h.items[parent], h.items[i]
		i = parent
	}
}

// pop takes the first item; there is one.
func (h *heap[T, P]) pop() T {
	var none T
	first, last := h.items[0], len(h.items)-1
	h.items[0], h.items[last] = h.items[last], none
	h.items = h.items[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return first
		}
		if child+1 < last && h.less(child+1, child) {
			child++
		}
		if !h.less(child, i) {
			return first
		}
		h.items[i], h.items[child] = h.items[child], h.items[i]
		i = child
	}
}
