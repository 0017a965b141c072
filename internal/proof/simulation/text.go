package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// write prints the report for people. Its tables are short; what they mean is in docs/simulation.md.
func (r *report) write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	p := &printer{w}
	p.line(
		"Simulation, seed %d. Simple runs, handler %s. Read docs/simulation.md for what is assumed.",
		r.Seed,
		handlerTime,
	)

	p.title("Three rates, from what template.yaml makes in a new account",
		"runs/s", "carried/s", "turned away", "start p99", "first limit", "carries, alone", "raised by")
	for _, l := range r.Rates {
		for i, step := range l.Rungs {
			rate := ""
			if i == 0 {
				rate = number(l.Rate)
			}
			p.row(
				rate,
				number(step.Carried),
				percent(step.TurnedAway),
				start(step),
				orNone(step.Limit),
				number(step.Ceiling),
				step.Remedy,
			)
		}
	}
	p.line("")
	for _, l := range r.Rates {
		p.line(
			"A mapping that starts from nothing under %s runs/s has caught up after %.0f s.",
			number(l.Rate),
			l.Scaling,
		)
	}

	p.title(
		"What a deployment carries, one limit raised after the other",
		"carries runs/s",
		"next limit",
		"by arithmetic",
		"raised by",
	)
	for _, s := range r.Frontier {
		p.row(number(s.Carries), orNone(s.Limit), number(s.Ceiling), s.Remedy)
	}

	p.title(
		"Shards, each with a separate partition, nothing else limited",
		"shards", "carry runs/s", "limit", "by arithmetic", "start p99 at 1/2", "at 9/10", "idle tick reads",
		"and takes",
	)
	for _, s := range r.Shards {
		p.row(
			fmt.Sprint(s.Shards),
			number(s.Carries),
			s.Limit,
			number(s.Ceiling),
			seconds(s.Half99),
			seconds(s.Most99),
			number(s.Tick),
			seconds(s.Looking),
		)
	}
	p.line("")
	p.line(
		"A new index of %d partitions carries %s to %s runs/s in %d shards, by which shards share a partition; half "+
			"of all ways %s or more.",
		r.Young.Partitions,
		number(r.Young.Least),
		number(r.Young.Most),
		r.Young.Shards,
		number(r.Young.Median),
	)
	p.line("One concurrency key of a bounded queue with room carries %s runs/s.", number(r.OneKey))
	for _, s := range r.Warming {
		p.line(
			"A new table under %s runs/s at once: all is carried after %.0f min with %d partitions; %s triggers "+
				"turned away, %s runs waiting at most.",
			number(s.Rate),
			s.Minutes,
			s.Partitions,
			number(s.TurnedAway),
			number(s.Waiting),
		)
	}

	p.title(
		"One concurrency key that is full all the time", "limit", "handler", "carries runs/s", "held back by",
		"by arithmetic",
		"writes/s", "reads/s", "slots lost/run", "read whole: carries", "held back by", "triggers failed",
	)
	for _, k := range r.FullKeys {
		p.row(
			fmt.Sprint(k.Limit), fmt.Sprintf("%.1f s", k.Handler), number(k.Carries), k.Held, number(k.Ceiling),
			number(k.Writes), number(k.Reads),
			fmt.Sprintf("%.2f", k.Failed), number(k.Before.Carries), k.Before.Held, percent(k.Before.TurnedAway),
		)
	}

	if len(r.Drains) > 0 {
		p.title(
			fmt.Sprintf("A backlog of %s runs", number(r.Drains[0].Backlog)),
			"deployment", "hours", "runs/s", "best minute", "held back by", "refused/run", "units/run",
			"moved by ticks", "dead worker's run goes on after",
		)
	}
	for _, d := range r.Drains {
		p.row(
			d.Name, fmt.Sprintf("%.2f", d.Hours), number(d.Carried), number(d.Best), d.Limit,
			fmt.Sprintf("%.2f", d.Refused),
			fmt.Sprintf("%.1f", d.Units), number(d.Looked), fmt.Sprintf("%.2f h", d.Found),
		)
	}

	p.title("Due rows of a bounded queue without room, before a run of another queue",
		"rows", "it is asked for after", "moved by the first tick", "all moved after")
	for _, s := range r.Full {
		p.row(number(s.Rows), fmt.Sprintf("%.1f s", 60*s.Found), number(s.Moved), fmt.Sprintf("%.0f min", s.Cleared))
	}

	p.title(
		fmt.Sprintf(
			"A retry storm: every attempt fails for %.0f min, up to %d attempts a run",
			stormTime.Minutes(),
			stormAttempts,
		),
		"runs/s", "deployed", "attempts/s", "units/s, calm", "at most", "active at its end", "failed for good",
		"min to normal", "ended/s at most", "held back by",
	)
	for _, s := range r.Storms {
		p.row(
			number(s.Rate), s.Name, number(s.Attempts), number(s.CalmUnits), number(s.PeakUnits), number(s.Waiting),
			percent(s.Failed),
			fmt.Sprintf("%.0f", s.Minutes), number(s.Peak), orNone(s.Limit),
		)
	}
	return w.Flush()
}

type printer struct{ w io.Writer }

func (p *printer) line(format string, args ...any) { fmt.Fprintf(p.w, format+"\n", args...) }

func (p *printer) title(title string, columns ...string) {
	p.line("\n%s", title)
	p.row(columns...)
}

func (p *printer) row(cells ...string) { fmt.Fprintln(p.w, strings.Join(cells, "\t")) }

// number has three digits that count, and commas.
func number(n float64) string {
	if n == 0 {
		return "0"
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(n)))-2)
	digits := fmt.Sprintf("%.0f", math.Round(n/unit)*unit)
	if n < 100 && n != math.Trunc(n) {
		return fmt.Sprintf("%.3g", n)
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func percent(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) }

func seconds(s float64) string { return fmt.Sprintf("%.2f s", s) }

// start is a dash where no run began.
func start(r rung) string {
	if r.Start99 == 0 {
		return "-"
	}
	return seconds(r.Start99)
}

func orNone(limit string) string {
	if limit == "" {
		return "none"
	}
	return limit
}
