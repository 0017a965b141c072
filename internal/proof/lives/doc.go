// Package lives drives the whole runtime through random lives, with an oracle and without. One driver draws both: which
// steps come after each other, calls, outcomes of handlers, habits, how long a life is. It tells, counts and repeats
// them.
//
// Without an oracle (life) anything may go wrong: processes die between two effects, messages are lost, doubled,
// reordered and late, requests to the storage fail, two processes act at once, and time jumps, over DynamoDB as well as
// over memory storage, and by Run over the storage of another module. After every step the storage is checked, each run
// that was touched is compared with its history, and what holds for all runs together is asked for; in the end, with
// nothing going wrong any more, each run has to end or to wait for something with a name.
//
// Runs with programs wait there: for signals, which come early, late, again and to runs that have ended, for times, for
// what they call, and for the other nodes of their flow. The book remembers what their handlers were told, so that each
// attempt is told the same: a step that has returned is not done again, a signal ends one wait, a call has one end, a
// node executes when what it goes after has ended as its condition wants. In the end flows are retried, and finish.
//
// With an oracle (files named model) the exact result of every step is known: a model states the rules a second time,
// on memory storage and in virtual time, and everything that can be observed is compared with it. That needs steps of
// which nothing is unknown: one set for both would compare less.
//
// A failure prints the seed of its life: go test ./internal/proof/lives -run NAME
// -rapid.seed SEED lives it again, up to what happened at the same time. -lives.seed does so with all lives. Lives last
// for hours with -soak DURATION.
package lives
