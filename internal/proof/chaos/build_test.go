package chaos_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var (
	duration = flag.Duration("chaos", usualDuration(), "how long faults happen; below 10m clocks are put forward afterwards")
	seed     = flag.Uint64("seed", 0, "of the plan; 0 draws one")
)

// durationVariable names another duration than the usual one, for callers that cannot give flags: .ci/run.
const durationVariable = "CHAOS"

func usualDuration() time.Duration {
	d, err := time.ParseDuration(cmp.Or(os.Getenv(durationVariable), "30s"))
	if err != nil {
		panic(durationVariable + ": " + err.Error())
	}
	return d
}

// What TestMain prepares, once.
var bootstrap, java, emulatorFolder string

func TestMain(m *testing.M) {
	flag.Parse()
	folder, err := os.MkdirTemp("", "chaos")
	if err == nil && !testing.Short() {
		err = prepare(folder)
	}
	code := 1
	if err == nil {
		code = m.Run()
		// Idle connections belong to the SDK's HTTP client, which lives as long as the process.
		err = goleak.Find(goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
			goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
	}
	_ = os.RemoveAll(folder)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// prepare builds the program and finds DynamoDB Local.
func prepare(folder string) error {
	bootstrap = filepath.Join(folder, "bootstrap")
	build := exec.Command("go", "build", "-tags", "lambda.norpc", "-o", bootstrap, "./testdata/program")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	find := exec.Command("../../../scripts/chaos.sh", "--emulator")
	find.Stderr = os.Stderr
	out, err := find.Output()
	if err != nil {
		return fmt.Errorf("there is no DynamoDB Local to kill: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 2 {
		return fmt.Errorf("chaos.sh --emulator said %q", out)
	}
	java, emulatorFolder = lines[0], lines[1]
	return nil
}
