// Command benchreport makes one table of benchmark results: every target of the project with what was measured, the
// spread over repeated lines, and whether it was reached. It reads Go's benchmark format, from files or stdin.
//
//	go run ./internal/tools/benchreport [-json] [-strict] [FILE...]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
)

func main() {
	asJSON := flag.Bool("json", false, "one JSON object a line")
	strict := flag.Bool("strict", false, "fail when a target falls short or was not measured")
	flag.Parse()
	if err := run(os.Stdout, flag.Args(), *asJSON, *strict); err != nil {
		fmt.Fprintln(os.Stderr, "benchreport:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, files []string, asJSON, strict bool) error {
	measured := figures{}
	if len(files) == 0 {
		if err := measured.read(os.Stdin, "stdin"); err != nil {
			return err
		}
	}
	for _, name := range files {
		file, err := os.Open(name) // the user who starts this names it
		if err != nil {
			return err
		}
		err = measured.read(file, name)
		_ = file.Close() // it was read
		if err != nil {
			return err
		}
	}
	var rows []row
	short := 0
	for _, t := range targets() {
		r := t.judge(measured)
		if r.Verdict != pass {
			short++
		}
		rows = append(rows, r)
	}
	if err := write(out, rows, asJSON); err != nil {
		return err
	}
	if strict && short > 0 {
		return fmt.Errorf("%d targets fall short or were not measured", short)
	}
	return nil
}

// figures are the values of each benchmark, by its name without processors and by unit.
type figures map[string]map[string][]float64

func (f figures) read(in io.Reader, name string) error {
	reader := benchfmt.NewReader(in, name)
	for reader.Scan() {
		result, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue // lines of the configuration, and what is none
		}
		benchmark := withoutProcessors(result.Name.String())
		if f[benchmark] == nil {
			f[benchmark] = map[string][]float64{}
		}
		for _, v := range result.Values {
			value, unit := v.Value, v.Unit
			if v.OrigUnit != "" { // seconds of nanoseconds
				value, unit = v.OrigValue, v.OrigUnit
			}
			f[benchmark][unit] = append(f[benchmark][unit], value)
		}
	}
	return reader.Err()
}

// withoutProcessors cuts the "-2" that go test appends.
func withoutProcessors(name string) string {
	if at := strings.LastIndexByte(name, '-'); at > 0 {
		if _, err := strconv.Atoi(name[at+1:]); err == nil {
			return name[:at]
		}
	}
	return name
}

// The outcome of a target.
const (
	pass       = "pass"
	fallsShort = "falls short"
	unmeasured = "not measured"
)

// row is a target with what was measured.
type row struct {
	What      string  `json:"what"`
	Benchmark string  `json:"benchmark,omitempty"` // the one that is shown
	Unit      string  `json:"unit"`
	Median    float64 `json:"median"`
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	Rounds    int     `json:"rounds"`
	Target    string  `json:"target"`
	Verdict   string  `json:"verdict"`

	excess float64 // how far it is beyond its limit, as a part of it
}

func (t *target) judge(f figures) row {
	worst := row{What: t.what, Unit: t.unit, Target: t.limits(), Verdict: unmeasured, excess: math.Inf(-1)}
	for benchmark, units := range f {
		values := units[t.unit]
		if len(values) == 0 || !matches(t.benchmark, benchmark) {
			continue
		}
		sorted := slices.Sorted(slices.Values(values))
		r := row{
			What:      t.what,
			Benchmark: benchmark,
			Unit:      t.unit,
			Median:    sorted[len(sorted)/2],
			Low:       sorted[0],
			High:      sorted[len(sorted)-1],
			Rounds:    len(sorted),
			Target:    t.limits(),
			Verdict:   pass,
			excess:    math.Inf(-1),
		}
		if !math.IsInf(t.least, 0) {
			r.excess = max(r.excess, (t.least-r.Median)/t.least)
		}
		if !math.IsInf(t.most, 0) {
			r.excess = max(r.excess, (r.Median-t.most)/t.most)
		}
		if r.Median > t.most || r.Median < t.least {
			r.Verdict = fallsShort
		}
		if r.excess > worst.excess {
			worst = r
		}
	}
	return worst
}

// matches compares a name with one that may have a star.
func matches(pattern, name string) bool {
	before, after, star := strings.Cut(pattern, "*")
	if !star {
		return name == pattern
	}
	return len(name) >= len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after)
}

func (t *target) limits() string {
	switch {
	case math.IsInf(t.most, 1):
		return "at least " + number(t.least)
	default:
		return "at most " + number(t.most)
	}
}

func number(v float64) string {
	if v >= 1000 {
		return strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

func write(out io.Writer, rows []row, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(out)
		for _, r := range rows {
			if err := encoder.Encode(r); err != nil {
				return err
			}
		}
		return nil
	}
	if _, err := fmt.Fprintf(
		out,
		"%-50s %14s %-12s %-22s %-18s %s\n",
		"target",
		"median",
		"unit",
		"low to high",
		"limit",
		"verdict",
	); err != nil {
		return err
	}
	for _, r := range rows {
		median, spread := number(r.Median), number(r.Low)+" to "+number(r.High)
		switch {
		case r.Verdict == unmeasured:
			median, spread = "-", "-"
		case r.Rounds == 1:
			spread = "one line"
		}
		if _, err := fmt.Fprintf(
			out,
			"%-50s %14s %-12s %-22s %-18s %s\n",
			r.What,
			median,
			r.Unit,
			spread,
			r.Target,
			r.Verdict,
		); err != nil {
			return err
		}
	}
	return nil
}
