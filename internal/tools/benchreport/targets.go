package main

import "math"

// target is what a figure has to reach. A star in the name of the benchmark stands for anything; where several
// benchmarks match, the one that is furthest from its limit in the wrong direction is shown.
type target struct {
	what            string
	benchmark, unit string
	least, most     float64
}

func atLeast(limit float64) (least, most float64) { return limit, math.Inf(1) }
func atMost(limit float64) (least, most float64)  { return math.Inf(-1), limit }

func newTarget(what, benchmark, unit string, least, most float64) target {
	return target{what, benchmark, unit, least, most}
}

// targets are those that the project promises, in the order in which they are shown.
func targets() []target {
	var all []target
	add := func(what, benchmark, unit string, limits func(float64) (float64, float64), limit float64) {
		least, most := limits(limit)
		all = append(all, newTarget(what, benchmark, unit, least, most))
	}
	add("embedded: runs, trigger to success, history kept", "EmbeddedRuns/steady", "runs/s", atLeast, 100_000)
	add("embedded: allocations a run", "EmbeddedRuns/steady", "allocs/run", atMost, 40)
	add("embedded: trigger to start at 1,000 runs/s", "TriggerToStart", "µs/start-p99", atMost, 1000)
	add("embedded: signal to start, p99", "SignalToStart/memory", "p99-ms", atMost, 5)
	add("embedded: memory of 1,000,000 kept runs", "KeptRuns", "MB-peak", atMost, 1200)
	add("embedded: tick with nothing due among them", "KeptRuns", "ms/tick-p50", atMost, 5)
	add("DynamoDB: write units of a simple run", "Costs/simple_run", "write-units", atMost, 16)
	add("DynamoDB: of a bounded run with room", "Costs/bounded_queue_with_room", "write-units", atMost, 22)
	add("DynamoDB: of a bounded run, saturated", "Costs/bounded_queue,_saturated,_each_run", "write-units", atMost, 28)
	add("AWS: a million simple runs, nothing shared", "Costs/simple_run", "$/million", atMost, 12.5)
	add("AWS: runs/s beside bare requests, 1 at once", "RunBesideBareRequests/concurrency=1", "ratio", atLeast, 0.9)
	add("AWS: runs/s beside bare requests, 8 at once", "RunBesideBareRequests/concurrency=8", "ratio", atLeast, 0.9)
	add("AWS: runs/s beside bare requests, 32 at once", "RunBesideBareRequests/concurrency=32", "ratio", atLeast, 0.9)
	for _, operation := range []string{"tick", "list", "deliver", "trigger", "explain"} {
		add("embedded, growth: median time of "+operation, "Growth/*/"+operation, "p50-ratio", atMost, 1.1)
	}
	add("DynamoDB, growth: requests of an operation", "GrowthDynamoDB/*", "requests-ratio", atMost, 1)
	add("DynamoDB, growth: dollars of an operation", "GrowthDynamoDB/*", "dollars-ratio", atMost, 1.1)
	add("file: inserts of one caller beside a bare table's", "Insert", "lane-1-of-bare-1", atLeast, 0.8)
	add("file: of 16 callers beside one of a bare table", "Insert", "lane-16-of-bare-1", atLeast, 1.5)
	add("file: processor time of a commit beside a bare grouped one", "Insert", "cpu-of-grouped", atMost, 1.4)
	add("file: runs, trigger to success, 16 at once", "Runs/full", "runs/s", atLeast, 4000)
	add("file: bytes of a finished simple run", "Runs/full", "B/run", atMost, 1229)
	add("file: runs with syncs of a millisecond more, 64 at once", "RunsOnANetworkVolume", "runs/s", atLeast, 2000)
	add("file: wakeup of another process, p99", "Wakeup", "p99-ms", atMost, 20)
	add("file: signal to start, p99", "SignalToStart/file", "p99-ms", atMost, 5)
	add("file: an idle worker, of one processor", "Wakeup", "idle-%", atMost, 0.2)
	add("file, growth: median time of the slowest call", "GrowthOfAFile", "slowest-x", atMost, 1.15)
	add("server: what HTTP over loopback adds to a trigger, p50", "Overhead", "µs/loopback-p50", atMost, 60)
	add("server: triggers over loopback, 16 at once", "OverLoopback/single", "runs/s", atLeast, 5000)
	add("server: runs in batches of a thousand", "OverLoopback/batch", "runs/s", atLeast, 30_000)
	add("server: trigger to the answer of a waiting claim, p99", "Claim", "p99-ms", atMost, 10)
	add("functions: a zip", "Functions/*.zip", "MiB", atMost, 5)
	add("functions: start to first next", "Functions/start_to_first_next,_median", "ms", atMost, 60)
	add("functions: start beside a bare function's", "Functions/ratio_to_a_bare_function", "ratio", atMost, 1.8)
	add("function server: its zip", "Functions/server,_zip", "MiB", atMost, 6)
	add("function server: start to first next", "Functions/server,_start_to_first_next,_median", "ms", atMost, 60)
	add("function server: start beside a bare one", "Functions/server,_ratio_to_a_bare_function", "ratio", atMost, 2.2)
	add("functions: memory of an idle bridge", "Functions/idle_bridge,_resident", "MB", atMost, 40)
	add("functions: own processor time of a record", "Functions/bridge,_processor_time_a_record", "us", atMost, 250)
	add("command line: a process of version", "Binary_Version", "ns/op", atMost, 20e6)
	add("command line: size of the program", "Binary_Version", "MB", atMost, 25)
	return all
}
