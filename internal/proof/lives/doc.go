// Package lives drives the whole runtime through random lives: calls of every kind, processes that die between two
// effects, messages that are lost, doubled, reordered and late, storages whose requests go wrong, and time that jumps.
// It does so over DynamoDB as well as over memory storage. After every step the storage is checked, each run that was
// touched is compared with its history, and what holds for all runs together is asked for; in the end, with nothing
// going wrong any more, each run has to end or to wait for something with a name.
//
// core has such lives too (its tests named model): in virtual time on memory storage, compared with a model after each
// step. Here the exact result of a step is unknown, because any call may fail half-way; only what must hold whatever
// happens is asked for.
//
// There are tests alone in here. A failure prints the seed of its life: go test ./internal/proof/lives -run NAME
// -rapid.seed SEED lives it again, up to what happened at the same time. -lives.seed does so with all lives. Lives last
// for hours with -soak DURATION.
package lives
