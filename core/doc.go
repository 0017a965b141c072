// Package core is the runtime: the pure reducer that gives events their meaning, and the engine built on it. Programs name it in
// main; everything else of an application names package runlane.
//
// [Open] makes a [Runtime] on a lane. [Runtime.Trigger] makes runs, [Runtime.Work] executes them in a long-lived process,
// [Runtime.ExecuteDelivery] executes one wakeup where something else receives them, [Runtime.Tick] is maintenance. One run can be
// followed through the files by name: trigger, create, publish, delivery, judge, claim, attempt, outcome. What events mean is decided by
// the reducer, in internal/reducer.
package core

import _ "time/tzdata" // cron schedules need zones wherever a program runs; the system's data come first
