// Package memlane is the embedded lane: storage and transport in the memory of one process. It is for trying the module
// and for tests, and is the reference model that other storages are compared with: its files are written to be read,
// one rule of docs/internals/contract.md after the other. Nothing outlives the process.
//
// Most programs need [New]. [NewStorage] and [NewTransport] are for other pairs, for example a memory storage with a
// faulty transport in a test.
package memlane

import "github.com/runlane/runlane-go/lane"

// New returns a fresh lane that lives in this process and receives its own wakeups: idle workers cost nothing, a wakeup
// reaches them at once.
func New() *lane.Lane {
	l, err := lane.New(NewStorage(nil), NewTransport(nil), &lane.Options{Name: "memlane"})
	if err != nil {
		panic(err) // the pair is valid: only a bug of this package can cause this
	}
	return l
}
