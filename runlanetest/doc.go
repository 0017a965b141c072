// Package runlanetest is for tests of applications: no lane, no network, no waiting. (Tests of adapters use lanetest.)
//
// [Run] is enough for most tests: one run of a task, from its trigger to its end, in memory. Delays, retries and
// releases take no time: when everything due is done, the test's clock jumps to the next due time.
//
//	run := runlanetest.Run(t, jobs.Welcome.Handle(app.Welcome), jobs.Welcome.With(jobs.User{ID: "u_1"}))
//	runlanetest.RequireTransitions(t, run, "triggered", "attempt 1 started", "attempt 1 succeeded")
//
// [New] makes such a runtime for several tasks and schedules, [NewAttempt] calls a handler alone, and a [Recorder]
// replaces the runtime in code that only triggers. [RequireTransitions] and [RequireGolden] check the history of a run.
// docs/testing.md has a test of each kind.
//
// # Time
//
// The test moves the clock, and attempts execute one after the other in between. No testing/synctest bubble is needed,
// which would allow no subtests, no parallel tests and no objects from outside, such as a connection pool. The clock
// does not affect code that uses package time: a handler's time.Sleep really sleeps, and TaskOptions.Timeout uses the
// real clock. To test such code, run in a bubble with [Options.Synctest]: the runtime then uses the bubble's clock, and
// every wait takes no time.
//
// Delays have no jitter, and IDs are counted: repeated tests give equal runs, to the millisecond.
//
// # Failures
//
// Functions that take a test end it with Fatalf, so call them from the test's own goroutine. Handlers execute in other
// goroutines: use t.Error there. There are no endless waits: a run that does not end fails the test, with the reason.
package runlanetest
