package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// report adds up what the machines print. A machine says what it did in lines of a fixed form: "reliability: " and a
// statement.
type report struct {
	steps, sequences     map[string]int // by lane
	faults               map[string]int
	crashTried, crashAll int
	// losses of power, and what they left on the disk
	powerPoints, powerOutcomes int
	histories, operations      int
	inputs                     int
	// inputs of the targets that are through, and of the one under way, whose count grows from line to line
	fuzzed, fuzzing     int
	lost, excess        int
	triggered, finished int
	waits               map[string]int
	unnamed             int
	notes               []string // statements that are shown as they are
	machines            []ranMachine
	protections         []ranMachine
}

type ranMachine struct {
	name   string
	took   time.Duration
	failed []string
}

func newReport() *report {
	return &report{
		steps:     map[string]int{},
		sequences: map[string]int{},
		faults:    map[string]int{},
		waits:     map[string]int{},
	}
}

// statement is a form of line, and what it adds to the report.
type statement struct {
	form *regexp.Regexp
	add  func(r *report, part []string)
}

func number(text string) int {
	n, _ := strconv.Atoi(text) // the form says that it is one
	return n
}

var statements = []statement{
	{regexp.MustCompile(`reliability: lives lane=(\S+) sequences=(\d+) steps=(\d+)`), func(r *report, part []string) {
		r.sequences[part[1]] += number(part[2])
		r.steps[part[1]] += number(part[3])
	}},
	{
		regexp.MustCompile(`reliability: lives lane=\S+ fault (.+)=(\d+)$`),
		func(r *report, part []string) { r.faults[part[1]] += number(part[2]) },
	},
	{
		regexp.MustCompile(`reliability: lives lane=\S+ waits (.*)=(\d+)$`),
		func(r *report, part []string) { r.waiting(part[1], number(part[2])) },
	},
	{
		regexp.MustCompile(`reliability: fault (.+)=(\d+)$`),
		func(r *report, part []string) { r.faults[part[1]] += number(part[2]) },
	},
	{
		regexp.MustCompile(`reliability: waits (.*)=(\d+)$`),
		func(r *report, part []string) { r.waiting(part[1], number(part[2])) },
	},
	{
		regexp.MustCompile(`reliability: crash points tried=(\d+) total=(\d+) lost=(\d+)`),
		func(r *report, part []string) {
			r.crashTried += number(part[1])
			r.crashAll += number(part[2])
			r.lost += number(part[3])
		},
	},
	{
		regexp.MustCompile(`reliability: power loss scenario=\S+ points=(\d+) outcomes=(\d+) .*lost=(\d+)$`),
		func(r *report, part []string) {
			r.powerPoints += number(part[1])
			r.powerOutcomes += number(part[2])
			r.lost += number(part[3])
		},
	},
	{
		regexp.MustCompile(`: seed \d+, (\d+) operations, \d+ of them with unknown outcome: linearizable$`),
		func(r *report, part []string) {
			r.histories++
			r.operations += number(part[1])
		},
	},
	{regexp.MustCompile(` (\d+) inputs tried$`), func(r *report, part []string) { r.inputs += number(part[1]) }},
	{regexp.MustCompile(`^fuzz: Fuzz\w+$`), func(r *report, _ []string) { r.fuzzed += r.fuzzing; r.fuzzing = 0 }},
	{
		regexp.MustCompile(`^fuzz: elapsed: \S+, execs: (\d+) `),
		func(r *report, part []string) { r.fuzzing = number(part[1]) },
	},
	{
		regexp.MustCompile(`reliability: chaos triggered=(\d+) finished=(\d+) waiting=(\d+) lost=(\d+) excess=(\d+)`),
		func(r *report, part []string) {
			r.triggered += number(part[1])
			r.finished += number(part[2])
			r.lost += number(part[4])
			r.excess += number(part[5])
		},
	},
	{
		regexp.MustCompile(`^mutation: without (.+): \d+ fail: ?(.*)$`),
		func(r *report, part []string) {
			r.missed(part[1], strings.Fields(strings.ReplaceAll(part[2], ", ", " ")))
		},
	},
	{
		regexp.MustCompile(`reliability: ((?:chaos|load) .*)$`),
		func(r *report, part []string) { r.notes = append(r.notes, part[1]) },
	},
}

func (r *report) read(line string) {
	for _, s := range statements {
		if part := s.form.FindStringSubmatch(line); part != nil {
			s.add(r, part)
		}
	}
}

func (r *report) waiting(reason string, runs int) {
	if strings.TrimSpace(reason) == "" {
		r.unnamed += runs
	}
	r.waits[reason] += runs
}

func (r *report) ran(name string, took time.Duration, failed []string) {
	r.machines = append(r.machines, ranMachine{name, took, failed})
}

func (r *report) missed(protection string, failed []string) {
	r.protections = append(r.protections, ranMachine{name: protection, failed: failed})
}

func (r *report) print(out io.Writer) {
	line := func(format string, values ...any) { _, _ = fmt.Fprintf(out, format+"\n", values...) }
	counts := func(title string, of map[string]int) {
		line("%s", title)
		for _, name := range slices.Sorted(maps.Keys(of)) {
			line("  %-48s %10d", name, of[name])
		}
	}
	line("machines")
	for _, m := range r.machines {
		result := "ok"
		if len(m.failed) > 0 {
			result = "FAILED: " + strings.Join(m.failed, ", ")
		}
		line("  %-48s %8s  %s", m.name, m.took.Round(time.Second), result)
	}
	counts("steps driven, by lane", r.steps)
	counts("sequences, by lane", r.sequences)
	counts("faults injected", r.faults)
	line("crash points covered, of all                       %10d of %d", r.crashTried, r.crashAll)
	line("losses of power, different files that they left    %10d, %d", r.powerPoints, r.powerOutcomes)
	line("histories checked, operations in them              %10d, %d", r.histories, r.operations)
	line("inputs tried, hostile and by fuzzing               %10d, %d", r.inputs, r.fuzzed+r.fuzzing)
	line("chaos: runs triggered, finished, extra effects     %10d, %d, %d", r.triggered, r.finished, r.excess)
	counts("runs that had not ended, by what they wait for", r.waits)
	for _, note := range r.notes {
		line("%s", note)
	}
	line("runs lost                                          %10d", r.lost)
	if len(r.protections) > 0 {
		line("protections turned off, and the tests that miss them")
	}
	for _, p := range r.protections {
		line("  %-18s %3d fail: %s", p.name, len(p.failed), strings.Join(first(p.failed, 6), ", "))
	}
}

// first names some, and how many more there are.
func first(names []string, n int) []string {
	if len(names) <= n {
		return names
	}
	return append(slices.Clone(names[:n]), fmt.Sprintf("and %d more", len(names)-n))
}

// verdict is an error for everything that must not be. whole: every machine ran.
func (r *report) verdict(whole bool) error {
	var faults []error
	add := func(format string, values ...any) { faults = append(faults, fmt.Errorf(format, values...)) }
	for _, m := range r.machines {
		if len(m.failed) > 0 {
			add("%s: %d failed", m.name, len(m.failed))
		}
	}
	for _, p := range r.protections {
		if len(p.failed) == 0 {
			add("no test misses the protection %q", p.name)
		}
	}
	if r.lost > 0 {
		add("%d runs were lost", r.lost)
	}
	if r.unnamed > 0 {
		add("%d runs wait for nothing that has a name", r.unnamed)
	}
	if r.crashTried != r.crashAll {
		add("%d of %d crash points were tried", r.crashTried, r.crashAll)
	}
	if whole &&
		(len(r.steps) == 0 || r.crashAll == 0 || r.powerPoints == 0 || r.histories == 0 || len(r.faults) == 0 ||
			r.inputs == 0 ||
			r.triggered == 0 || len(r.protections) == 0) {
		add("a machine did not say what it did: a count above is 0")
	}
	return errors.Join(faults...)
}
