// Command bench measures the deployed functions as processes: the size of their zips, how long a start takes and
// how much longer than that of a function which does nothing, how much memory an idle bridge holds, and what it
// computes for a record. It needs local AWS and what `make build` made. With -strict it fails when a figure falls
// short.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/runlane/runlane-go/functionurl"
)

// The limits.
const (
	maxZip    = 5.0   // MiB
	maxServer = 6.0   // MiB, of the server's zip
	maxStart  = 60.0  // ms, median
	maxRatio  = 1.8   // to hello
	maxServes = 2.2   // the server's start to hello
	maxMemory = 40.0  // MB
	maxRecord = 250.0 // µs
)

// figure is one line of the result.
type figure struct {
	name  string
	value float64
	unit  string
	limit float64
	note  string
}

func (f figure) holds() bool { return f.value <= f.limit }

func (f figure) String() string {
	verdict := "ok"
	if !f.holds() {
		verdict = "FALLS SHORT"
	}
	return fmt.Sprintf("%-32s %8.2f %-4s at most %-6g %-11s  %s", f.name, f.value, f.unit, f.limit, verdict, f.note)
}

// goFormat is the figure as a line of Go's benchmark format, which benchstat and internal/tools/benchreport read.
func (f figure) goFormat() string {
	return fmt.Sprintf(
		"BenchmarkFunctions/%s 1 %g %s",
		strings.ReplaceAll(f.name, " ", "_"),
		f.value,
		cmp.Or(strings.ReplaceAll(f.unit, "µ", "u"), "ratio"),
	)
}

func main() {
	asGo := flag.Bool("go", false, "write Go's benchmark format")
	bin := flag.String("bin", "bin", "the `folder` of make build")
	rounds := flag.Int("rounds", 41, "how many `starts` of each are measured")
	strict := flag.Bool("strict", false, "fail when a figure falls short")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *bin, *rounds, *strict, *asGo); err != nil {
		fmt.Fprintln(os.Stderr, "bench-functions:", err)
		stop()
		os.Exit(1) // stop was called
	}
}

func run(ctx context.Context, bin string, rounds int, strict, asGo bool) error {
	figures, err := zips(bin)
	if err != nil {
		return err
	}
	native := filepath.Join(bin, "native")
	l, err := newLab(ctx, programs{
		bridge: filepath.Join(native, "bridge"),
		hello:  filepath.Join(native, "hello"),
		noop:   filepath.Join(native, "noop"),
		server: filepath.Join(native, "server"),
	})
	if err != nil {
		return err
	}
	defer l.close() // cleaning up outlives an interrupt
	for _, measure := range []func(context.Context) ([]figure, error){
		func(ctx context.Context) ([]figure, error) { return l.starts(ctx, l.bridge, maxRatio, rounds) },
		func(ctx context.Context) ([]figure, error) { return l.starts(ctx, l.server, maxServes, rounds) },
		l.memory, l.records,
	} {
		more, err := measure(ctx)
		if err != nil {
			return err
		}
		figures = append(figures, more...)
	}
	if load, err := loadAverage(); err == nil && load > float64(runtime.NumCPU()) {
		fmt.Fprintf(
			os.Stderr,
			"the machine was busy (load %.1f on %d processors): times are too high\n",
			load,
			runtime.NumCPU(),
		)
	}
	var short []error
	for _, f := range figures {
		if asGo {
			fmt.Println(f.goFormat())
		} else {
			fmt.Println(f)
		}
		if strict && !f.holds() {
			short = append(short, fmt.Errorf("%s: %.2f %s, at most %g", f.name, f.value, f.unit, f.limit))
		}
	}
	return errors.Join(short...)
}

func zips(bin string) ([]figure, error) {
	var figures []figure
	for _, role := range []string{"bridge", "relay", "tick", functionurl.Role} {
		info, err := os.Stat(filepath.Join(bin, role+".zip"))
		if err != nil {
			return nil, fmt.Errorf("%w: run make build first", err)
		}
		name, limit := role+".zip", maxZip
		if role == functionurl.Role {
			name, limit = "server, zip", maxServer
		}
		figures = append(figures, figure{name, float64(info.Size()) / (1 << 20), "MiB", limit, "arm64"})
	}
	return figures, nil
}
