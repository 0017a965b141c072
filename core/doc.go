// Package core is the runtime: the reducer, a pure function that gives events their meaning, and the engine built on
// it. Programs import it in main; the rest of an application imports only package runlane.
//
// [Open] makes a [Runtime] on a lane. [Runtime.Trigger] makes runs. [Runtime.Work] executes them in a long-lived
// process. [Runtime.ExecuteDelivery] executes one wakeup received elsewhere. [Runtime.Tick] is maintenance.
//
// To follow one run through the code, read these files in order: trigger, plan, publish, delivery, attempt, outcome;
// for waits, suspend, tell and resume. The reducer is in internal/reducer, next to packages for schedules, flows,
// moving environments and clients' claims. AGENTS.md names the files of storage and transport in between.
package core

import _ "time/tzdata" // cron schedules need zones wherever a program runs; the system's data come first
