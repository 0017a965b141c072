package lambdatest_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"go.uber.org/goleak"
)

// bin is where TestMain builds all programs, once: the deployed ones by the very targets that the deployment calls.
var bin string

func TestMain(m *testing.M) {
	flag.Parse()
	// These tests wait for processes, leases and messages, and compute nothing: more of them at once than there are processors.
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	code := 0
	if err := build(testing.Short()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(bin)
	var kept []goleak.Option // idle connections of the SDK's HTTP client, which lives as long as the process
	if !testing.Short() {
		kept = append(kept, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
			goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
	}
	if err := goleak.Find(kept...); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// build makes the program of the tests, and those of the product.
func build(short bool) (err error) {
	if bin, err = os.MkdirTemp("", "functions"); err != nil {
		return err
	}
	if short {
		return nil
	}
	if err := run("go", "build", "-tags", "lambda.norpc", "-o", filepath.Join(bin, "program", "bootstrap"), "./testdata/program"); err != nil {
		return err
	}
	for target, folder := range map[string]string{
		"build-Bridge": "bridge", "build-Relay": "relay", "build-Tick": "tick", "build-EventSender": "events",
	} {
		if err := run("make", "-C", "../../../..", "-f", "build.mk", target, "ARTIFACTS_DIR="+filepath.Join(bin, folder), "LAMBDA_ARCH="+runtime.GOARCH); err != nil {
			return err
		}
	}
	return nil
}

func run(name string, arguments ...string) error {
	command := exec.Command(name, arguments...)
	command.Env = append(os.Environ(), "MAKEFLAGS=")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w: %s", name, arguments, err, out)
	}
	return nil
}
