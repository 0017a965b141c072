package main

import (
	"flag"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var (
	chaosFor  = flag.Duration("chaos", 30*time.Second, "how long faults happen; below 10m clocks are put forward afterwards")
	chaosSeed = flag.Uint64("seed", 0, "of chaos's plan; 0 draws one")
	fullLoad  = flag.Bool("full", false, "as much load on every lane as the cases are named after, which takes ten minutes")
)

// Idle connections belong to the SDK's HTTP client, which lives as long as the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}
