// Package memlane is the lane in the memory of one process, for trials and tests. Nothing outlives the process. It is
// also the reference for other storages: its files follow docs/internals/contract.md rule by rule.
//
// Most programs need [New]. Use [NewStorage] and [NewTransport] for other pairs, such as a memory storage with a
// faulty transport in a test.
package memlane

import "github.com/runlane/runlane-go/lane"

// bodiesAbove is as in the lane in a file.
const bodiesAbove = 1 << 20

// New returns a new lane that receives its own wakeups. Idle workers cost nothing and get wakeups at once.
func New() *lane.Lane {
	l, err := lane.New(NewStorage(nil), NewTransport(nil), &lane.Options{
		Bodies: &lane.Bodies{Store: NewBodyStore(), Above: bodiesAbove}, Name: "memlane",
	})
	if err != nil {
		panic(err) // the pair is valid
	}
	return l
}
