// Package core is the runtime: the reducer, a pure function that gives events their meaning, and the engine built on
// it. Programs import it in main; the rest of an application imports only package runlane.
//
// [Open] makes a [Runtime] on a lane. [Runtime.Trigger] makes runs. [Runtime.Work] executes them in a long-lived
// process. [Runtime.ExecuteDelivery] executes one wakeup where something else receives them. [Runtime.Tick] is
// maintenance.
//
// To follow one run through the code, read these files in order: trigger, plan, publish, delivery, attempt, outcome;
// for what waits, suspend, tell and resume. The reducer, in internal/reducer, decides what events mean. Schedules,
// flows, the moving of environments and the claims of clients have packages of their own beside it. Which files of the
// storage and the transport come between is in AGENTS.md.
package core

import _ "time/tzdata" // cron schedules need zones wherever a program runs; the system's data come first
