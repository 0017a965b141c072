package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
)

// step is what happens next, with what is printed of it.
type step struct {
	name string
	do   func(context.Context) error
}

// walk goes forward, back, and forward again.
func (w *world) walk(ctx context.Context) error {
	began := time.Now()
	steps := []step{
		{"build the old program and today's", w.buildBoth},
		{"deploy the old program", func(ctx context.Context) error { return w.deploy(ctx, w.old) }},
		{"the old program gets runs in every status", w.loaded(&w.old, "a")},
		{"deploy today's", w.updated(&w.today, "a")},
		{"today's gets runs in every status", w.loaded(&w.today, "b")},
		{"go back to the old one", w.updated(&w.old, "b")},
		{"the old one gets runs that cross", w.crossing(&w.old, "c")},
		{"deploy today's again", w.updated(&w.today, "c")},
		{"everything ends", w.settle},
		{"both read what was promised", w.judged},
		{"doctor finds nothing", w.sound},
	}
	for _, s := range steps {
		began := time.Now()
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Fprintf(w.out, "%-50s %6.1f s\n", s.name, time.Since(began).Seconds())
	}
	fmt.Fprintf(w.out, "%-50s %6.1f s\n", "together", time.Since(began).Seconds())
	return nil
}

func (w *world) buildBoth(ctx context.Context) error {
	sources := filepath.Join(w.place, "sources")
	err := extract(w.root, sources)
	if err == nil {
		w.old, err = w.build(ctx, old, sources)
	}
	if err == nil {
		w.today, err = w.build(ctx, today, w.root)
	}
	return err
}

// loaded gives the version that serves runs in every status.
func (w *world) loaded(by **version, p string) func(context.Context) error {
	return func(ctx context.Context) error {
		v := *by
		if err := w.load(ctx, v, dying(p)); err != nil {
			return err
		}
		if err := w.until(ctx, true, func() (string, error) { return w.noted(p + "-dies") }); err != nil {
			return err
		}
		if err := w.load(ctx, v, quick(p)...); err != nil {
			return err
		}
		if _, err := w.call(ctx, v, nil, "runs", "cancel", w.id(p+"-cancelled")); err != nil {
			return err
		}
		if err := w.until(ctx, true, func() (string, error) { return w.ended(ctx, v, quick(p)) }); err != nil {
			return err
		}
		return w.crossing(by, p)(ctx)
	}
}

// crossing gives the version that serves runs that the next one ends. The relay is off: what it would send, the next
// version finds unsent.
func (w *world) crossing(by **version, p string) func(context.Context) error {
	return func(ctx context.Context) error {
		v := *by
		if err := w.serving.stack.EnableMappings(ctx, "RelayFunction", false); err != nil {
			return err
		}
		if err := w.load(ctx, v, slices.Concat(unsent(p), acrossUpdate(p))...); err != nil {
			return err
		}
		if err := w.until(ctx, false, func() (string, error) { return w.noted(p + "-asked") }); err != nil {
			return err
		}
		if _, err := w.call(ctx, v, nil, "runs", "cancel", w.id(p+"-asked")); err != nil {
			return err
		}
		return w.until(ctx, false, func() (string, error) { return w.everyStatus(ctx, v) })
	}
}

// updated deploys a version over the one that serves, with triggers by both all the time, and opens the gate then.
func (w *world) updated(to **version, p string) func(context.Context) error {
	return func(ctx context.Context) error {
		executing, err := w.notes()
		if err != nil {
			return err
		}
		update := make(chan error, 1)
		from, next := w.serving, *to
		go func() { update <- next.stack.Update(ctx, parameters) }()
		for n := 0; ; n++ {
			if err := w.load(ctx, []*version{from, next}[n%2], passing(p, n)...); err != nil {
				return errors.Join(err, <-update)
			}
			select {
			case err := <-update:
				if err != nil {
					return err
				}
				w.serving = next
				return w.taken(ctx, p, len(executing))
			default:
			}
		}
	}
}

// taken opens the gate, and wants the version that serves now to end what the one before left.
func (w *world) taken(ctx context.Context, p string, before int) error {
	notes, err := w.notes()
	if err != nil {
		return err
	}
	fmt.Fprintf(w.out, "  %d notes of handlers during the update\n", len(notes)-before)
	if err := w.pass(p); err != nil {
		return err
	}
	if err := w.serving.stack.EnableMappings(ctx, "RelayFunction", true); err != nil {
		return err
	}
	orders := slices.Concat(acrossUpdate(p), unsent(p))
	orders = slices.DeleteFunc(orders, func(o order) bool { return o.Sends == "refused" })
	if err := w.until(ctx, true, func() (string, error) { return w.ended(ctx, w.serving, orders) }); err != nil {
		return err
	}
	// Again and again, for runs go on, and a list may miss a run that changes while it is read.
	return w.until(ctx, true, func() (string, error) {
		runs, err := w.look(ctx, w.serving)
		if err != nil {
			return "", err
		}
		found := &verdict{}
		w.ledger.compare(found, runs)
		return found.String(), nil
	})
}

func (w *world) id(name string) string { return string(w.ledger.byName[name]) }

// noted says whether a run has been begun.
func (w *world) noted(name string) (string, error) {
	notes, err := w.notes()
	if err != nil || slices.ContainsFunc(notes, func(n note) bool { return n.Name == name }) {
		return "", err
	}
	return name + " has not started", nil
}

// ended names those of the orders that a version does not see at their ends.
func (w *world) ended(ctx context.Context, v *version, orders []order) (string, error) {
	status, err := w.statuses(ctx, v)
	if err != nil {
		return "", err
	}
	var amiss []string
	for i := range orders {
		if got := status[w.ledger.byName[orders[i].Name]]; got != orders[i].ends {
			amiss = append(amiss, fmt.Sprintf("%s is %s, want %s", orders[i].Name, got, orders[i].ends))
		}
	}
	return strings.Join(amiss, "\n"), nil
}

// everyStatus names the statuses that no run has.
func (w *world) everyStatus(ctx context.Context, v *version) (string, error) {
	all, err := w.statuses(ctx, v)
	if err != nil {
		return "", err
	}
	count := map[runlane.Status]int{}
	for _, status := range all {
		count[status]++
	}
	for _, status := range runlane.Statuses() {
		if count[status] == 0 {
			return fmt.Sprintf("no run is %s: %v", status, count), nil
		}
	}
	fmt.Fprintf(w.out, "  %v\n", count)
	return "", nil
}

// settle brings everything to its end: what was given up is asked for again, schedules are paused.
func (w *world) settle(ctx context.Context) error {
	if err := w.pass("last"); err != nil {
		return err
	}
	for _, schedule := range []string{"beat", "busy", "rare"} {
		if _, err := w.call(ctx, w.today, nil, "schedules", "pause", schedule); err != nil {
			return err
		}
	}
	if err := w.letters(ctx, "a-refused", "b-refused", "c-refused"); err != nil {
		return err
	}
	if _, err := w.call(ctx, w.today, nil, "deadletters", "requeue", "--all", "--yes"); err != nil {
		return err
	}
	return w.until(ctx, true, func() (string, error) {
		status, err := w.statuses(ctx, w.today)
		if err != nil {
			return "", err
		}
		return strings.Join(w.ledger.unfinished(status), "\n"), nil
	})
}

// letters wants these runs, and no others, among the dead letters.
func (w *world) letters(ctx context.Context, names ...string) error {
	out, err := w.call(ctx, w.today, nil, "deadletters", "list", "--json")
	if err != nil {
		return err
	}
	got := bytes.Count(out, []byte(`"runId"`))
	for _, name := range names {
		if !bytes.Contains(out, []byte(w.id(name))) {
			return fmt.Errorf("%s is no dead letter:\n%s", name, out)
		}
	}
	if got != len(names) {
		return fmt.Errorf("there are %d dead letters, want %d:\n%s", got, len(names), out)
	}
	return nil
}

func (w *world) verdict(ctx context.Context, v *version) (*verdict, error) {
	runs, err := w.look(ctx, v)
	if err != nil {
		return nil, err
	}
	notes, err := w.notes()
	return w.ledger.judge(runs, notes), err
}

// judged compares what both programs read with what was promised.
func (w *world) judged(ctx context.Context) error {
	for _, v := range []*version{w.today, w.old} {
		found, err := w.verdict(ctx, v)
		if err != nil {
			return err
		}
		if text := found.String(); text != "" {
			return fmt.Errorf(
				"the %s program sees: %d lost, %d stuck\n%s", v.name, len(found.lost), len(found.stuck), text,
			)
		}
	}
	ends := map[runlane.Status]int{}
	for _, o := range w.ledger.promised {
		ends[o.ends]++
	}
	notes, err := w.notes()
	by := map[string]int{}
	for _, n := range notes {
		if n.What == "started" {
			by[n.By]++
		}
	}
	fmt.Fprintf(
		w.out,
		"%d runs promised (and those of schedules), %d statuses at the updates, ends: %v; attempts by: %v; "+
			"lost 0, stuck 0\n",
		len(w.ledger.promised), len(runlane.Statuses()), ends, by,
	)
	return err
}

// sound wants doctor to find nothing, and runs of each version to be shown by the commands of both.
func (w *world) sound(ctx context.Context) error {
	if err := w.letters(ctx); err != nil {
		return err
	}
	out, err := w.call(ctx, w.today, nil, "doctor", "--all", "--json")
	if err != nil {
		return err
	}
	findings, err := decode[struct{ Check, Status, Detail string }](out)
	if err != nil {
		return err
	}
	if len(findings) == 0 {
		return errors.New("doctor checked nothing")
	}
	for _, f := range findings {
		if f.Status != "ok" {
			return fmt.Errorf("doctor: %s is %s: %s", f.Check, f.Status, f.Detail)
		}
	}
	for _, v := range []*version{w.old, w.today} {
		for _, by := range []string{"a", "b"} {
			for _, name := range []string{"-dense-sealed", "-fails", "-asked", "-retries-far"} {
				if _, err := w.call(ctx, v, nil, "runs", "get", w.id(by+name)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
