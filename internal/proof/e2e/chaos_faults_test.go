package main

import (
	"maps"
	"math/rand/v2"
	"sync"
)

// Faults decides about what has a rate, and counts what happened. Nothing strikes before On or after Off. Safe for
// concurrent use.
type Faults struct {
	mu       sync.Mutex
	on       bool
	random   *rand.Rand
	happened map[Kind]int
}

// NewFaults are off.
func NewFaults(seed uint64) *Faults {
	return &Faults{random: rand.New(rand.NewPCG(seed, 1)), happened: map[Kind]int{}} // repeatable
}

// Switch turns what has a rate on or off.
func (f *Faults) Switch(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.on = on
}

// Strikes decides whether a kind happens now, as often as rate says, and counts it then.
func (f *Faults) Strikes(kind Kind, rate float64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.on || f.random.Float64() >= rate {
		return false
	}
	f.happened[kind]++
	return true
}

// Note counts what happened otherwise.
func (f *Faults) Note(kind Kind, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.happened[kind] += n
}

// Pick is a random number below n.
func (f *Faults) Pick(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.random.IntN(n)
}

// Happened counts by kind.
func (f *Faults) Happened() map[Kind]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.happened)
}
