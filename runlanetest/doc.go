// Package runlanetest is for the tests of applications: no lane, no network, no waiting. (Tests of adapters use
// lanetest.)
//
// [Run] is what most tests need: one run of a task, from its trigger to its end, in memory. Delays, retries and
// releases take no time, because the clock is the test's: where nothing is left to do, it jumps to the instant at which
// something is.
//
//	run := runlanetest.Run(t, jobs.Welcome.Handle(app.Welcome), jobs.Welcome.With(jobs.User{ID: "u_1"}))
//	runlanetest.RequireTransitions(t, run, "triggered", "attempt 1 started", "attempt 1 succeeded")
//
// [New] gives several tasks and their schedules one such runtime, [NewAttempt] calls a handler alone, and a [Recorder]
// stands in for the runtime in code that only triggers. [RequireTransitions] and [RequireGolden] hold the history of a
// run against what it is meant to be. docs/testing.md has a test of each kind.
//
// # Time
//
// The clock is driven: it is an instant that the test moves, and attempts are executed one after the other in between.
// Nothing here needs a bubble of testing/synctest, which admits no subtests, no parallel tests and nothing that was
// made outside of it, such as a pool of connections. What the driven clock does not reach is code that asks the time
// package itself: a handler that sleeps really sleeps, and TaskOptions.Timeout is measured on the real clock. Where
// that is what a test is about, let it run in a bubble and say so with [Options.Synctest]: the bubble's clock is used
// then, and every wait takes no time.
//
// Delays have no jitter, and ids are counted: two runs of a test are the same to the millisecond.
//
// # Failures
//
// The functions that take a test end it with Fatalf, so they are for the test's own goroutine. Handlers are executed in
// others: use t.Error in them. Nothing waits for ever: what does not come to an end fails the test and says what it
// waits for.
package runlanetest
