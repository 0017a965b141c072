package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// environment is what a reader has to know of a result.
type environment struct {
	Kind     string            `json:"kind"` // "environment"
	Time     time.Time         `json:"time"`
	Go       string            `json:"go"`
	OS       string            `json:"os"`
	Arch     string            `json:"arch"`
	CPUs     int               `json:"cpus"`
	Workers  int               `json:"workers"`
	Rounds   int               `json:"rounds"`
	Window   float64           `json:"window_seconds"`
	Payload  int               `json:"payload_bytes"`
	Seed     uint64            `json:"seed"`
	Fsync    float64           `json:"fsync_microseconds"`
	InMemory bool              `json:"folder_in_memory"`
	Modules  map[string]string `json:"modules"`
}

// described is a subject in the result.
type described struct {
	Kind  string `json:"kind"` // "subject"
	Name  string `json:"name"`
	Group group  `json:"group"`
	Setup string `json:"setup"`
}

// skipped is what could not be had, and failed what could but did not work.
type skipped struct {
	Kind   string `json:"kind"` // "skipped" or "failed"
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// result is everything that is reported.
type result struct {
	environment environment
	rounds      int // measured
	subjects    []*subject
	rows        []row
	skipped     []skipped
}

// fault is what failed; what cannot be had on a machine is none.
func (r *result) fault() error {
	var faults []error
	for _, s := range r.skipped {
		if s.Kind == kindFailed {
			faults = append(faults, fmt.Errorf("%s: %s", s.Name, s.Reason))
		}
	}
	return errors.Join(faults...)
}

// comparedModules are the ones whose versions are part of a result.
var comparedModules = []string{
	"github.com/hibiken/asynq", "github.com/jackc/pgx/v5", "github.com/redis/go-redis/v9",
	"github.com/riverqueue/river", "modernc.org/sqlite",
}

func describeEnvironment(o *options, rounds int, fsync time.Duration, folderInMemory bool) environment {
	e := environment{
		Kind:     "environment",
		Time:     time.Now().UTC().Truncate(time.Second),
		Go:       runtime.Version(),
		OS:       runtime.GOOS,
		Arch:     runtime.GOARCH,
		CPUs:     runtime.GOMAXPROCS(0),
		Workers:  o.workers,
		Rounds:   rounds,
		Window:   o.window.Seconds(),
		Payload:  payloadBytes,
		Seed:     o.seed,
		Fsync:    float64(fsync.Microseconds()),
		InMemory: folderInMemory,
		Modules:  map[string]string{},
	}
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, module := range build.Deps {
			if slices.Contains(comparedModules, module.Path) {
				e.Modules[module.Path] = module.Version
			}
		}
	}
	return e
}

// writeJSON writes one line for each row, and before them one for the environment, each subject and each thing left
// out.
func writeJSON(w io.Writer, r *result) error {
	lines := []any{r.environment}
	for _, s := range r.subjects {
		lines = append(lines, described{Kind: "subject", Name: s.name, Group: s.group, Setup: s.setup})
	}
	for _, s := range r.skipped {
		lines = append(lines, s)
	}
	for _, row := range r.rows {
		lines = append(lines, row)
	}
	encoder := json.NewEncoder(w)
	for _, line := range lines {
		if err := encoder.Encode(line); err != nil {
			return err
		}
	}
	return nil
}

// writeTable writes the same for people.
func writeTable(w io.Writer, r *result) error {
	e := &r.environment
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	// A writer that fails once fails for good: Flush says so.
	line := func(format string, arguments ...any) { _, _ = fmt.Fprintf(t, format+"\n", arguments...) }

	line("%s %s/%s, %d processors, %d workers, jobs of %d bytes, medians of %d rounds (low, high), seed %d",
		e.Go, e.OS, e.Arch, e.CPUs, e.Workers, e.Payload, e.Rounds, e.Seed)
	for _, path := range comparedModules {
		if version, ok := e.Modules[path]; ok {
			line("%s %s", path, version)
		}
	}
	line("fsync of 4 KiB: %.0f µs", e.Fsync)
	if e.InMemory {
		line(
			"The data is in a folder in memory, where fsync does nothing: the group %q proves nothing. Name another "+
				"with -dir.",
			machine,
		)
	}
	for _, s := range r.skipped {
		line("%s: %s: %s", s.Kind, s.Name, s.Reason)
	}
	for _, g := range groups {
		if !slices.ContainsFunc(r.rows, func(r row) bool { return r.Group == g.group }) {
			continue
		}
		line("\n%s: %s\n", strings.ToUpper(string(g.group)), g.meaning)
		for _, s := range r.subjects {
			if s.group == g.group {
				line("  %s: %s", s.name, s.setup)
			}
		}
		for _, m := range metrics {
			rows := slices.DeleteFunc(slices.Clone(r.rows), func(r row) bool {
				return r.Group != g.group || r.Metric != m.metric
			})
			if len(rows) == 0 {
				continue
			}
			line("\n  %s (%s): %s", m.metric, m.unit, m.meaning)
			for _, row := range rows {
				line(
					"    %s\t%s\t%s\t%s\t%s of the best",
					row.Name,
					number(row.Median),
					number(row.Low),
					number(row.High),
					percent(row.OfBest),
				)
			}
		}
	}
	if said := verdicts(r.rows); len(said) > 0 {
		line("\nWHO WINS\n")
		for _, verdict := range said {
			line("  %s", verdict)
		}
	}
	return t.Flush()
}

// number has three digits that mean something, and spaces between thousands.
func number(value float64) string {
	if value < 100 {
		return fmt.Sprintf("%.3g", value)
	}
	unit := math.Pow(10, math.Floor(math.Log10(value))-2)
	digits := fmt.Sprintf("%.0f", math.Round(value/unit)*unit)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + " " + digits[i:]
	}
	return digits
}

func percent(fraction float64) string {
	if fraction >= 0.1 {
		return fmt.Sprintf("%.0f %%", 100*fraction)
	}
	return fmt.Sprintf("%.2g %%", 100*fraction)
}
