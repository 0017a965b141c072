// Package crashtest kills processes between any two effects of the product, and checks the outcomes of their runs.
//
// An effect is a request that changes something: a write to DynamoDB, a message that is sent, deleted or made visible
// again, and the hand-over to a handler. The product has no markers for them. A child process gets clients whose every
// request passes a middleware of the SDK; it names the request by the product's functions on the stack and kills the
// process, by SIGKILL, before the request is sent or after its answer has arrived. A first child of each scenario
// records the effects; then each of them is a point, tried by a separate child. See
// docs/internals/design.md, Proof.
//
// Where the product has effects is read from its source: every call that leads to one has to be on the stack of some
// recorded effect, or in the table of exceptions with its reason. The list is testdata/points.txt (go test -update).
package crashtest
