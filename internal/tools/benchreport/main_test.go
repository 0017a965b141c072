package main

import (
	"strings"
	"testing"
)

func judged(t *testing.T, what, text string) row {
	t.Helper()
	f := figures{}
	if err := f.read(strings.NewReader(text), "test"); err != nil {
		t.Fatal(err)
	}
	for _, target := range targets() {
		if target.what == what {
			return target.judge(f)
		}
	}
	t.Fatalf("no target %q", what)
	return row{}
}

func TestJudge_MedianOfRepeatedLinesAgainstTheLimit(t *testing.T) {
	t.Parallel()
	const what = "embedded: runs, trigger to success, history kept"
	for name, c := range map[string]struct {
		text    string
		verdict string
		median  float64
	}{
		"reached": {"BenchmarkEmbeddedRuns/steady-2 10 1 ns/op 90000 runs/s\nBenchmarkEmbeddedRuns/steady-2 10 1 ns/op 110000 runs/s\n" +
			"BenchmarkEmbeddedRuns/steady-2 10 1 ns/op 120000 runs/s\n", pass, 110000},
		"short":           {"BenchmarkEmbeddedRuns/steady-2 10 1 ns/op 99999 runs/s\n", fallsShort, 99999},
		"another unit":    {"BenchmarkEmbeddedRuns/steady-2 10 1 ns/op\n", unmeasured, 0},
		"another of them": {"BenchmarkEmbeddedRuns/backlog-2 10 1 ns/op 120000 runs/s\n", unmeasured, 0},
	} {
		if r := judged(t, what, c.text); r.Verdict != c.verdict || r.Median != c.median {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestJudge_OfSeveralBenchmarksTheWorstIsShown(t *testing.T) {
	t.Parallel()
	r := judged(t, "DynamoDB: a method beside its bare requests",
		"BenchmarkMethods/GetRun-2 1 0.97 ratio\nBenchmarkMethods/AppendRunEvents/created_with_both_keys-2 1 0.84 ratio\nBenchmarkMethods/GetRuns-2 1 0.9 ratio\n")
	if r.Verdict != fallsShort || r.Benchmark != "Methods/AppendRunEvents/created_with_both_keys" {
		t.Errorf("%+v", r)
	}
	r = judged(t, "embedded, growth: median time of tick", "BenchmarkGrowth/a/tick 1 1.15 p50-ratio\nBenchmarkGrowth/b/tick 1 0.85 p50-ratio\n")
	if r.Verdict != fallsShort || r.Median != 1.15 {
		t.Errorf("%+v", r)
	}
}

func TestRun_PrintsEveryTarget(t *testing.T) {
	t.Parallel()
	var table, lines strings.Builder
	for out, asJSON := range map[*strings.Builder]bool{&table: false, &lines: true} {
		if err := run(out, []string{"/dev/null"}, asJSON, false); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(table.String(), unmeasured); n != len(targets()) || strings.Count(lines.String(), "\n") != n {
		t.Errorf("%d rows of %d:\n%s%s", n, len(targets()), table.String(), lines.String())
	}
	if err := run(&table, []string{"/dev/null"}, false, true); err == nil {
		t.Error("what was not measured is no failure")
	}
}
