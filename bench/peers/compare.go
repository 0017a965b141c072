package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"time"
)

// The kinds of what has no rows.
const (
	kindSkipped = "skipped"
	kindFailed  = "failed"
)

// source makes subjects; release, where it is not nil, ends what they run on. What cannot be had is an
// unavailableError.
type source struct {
	name string
	// makes are the subjects, as -only knows them.
	makes []string
	open  func(context.Context, *place) (subjects []*subject, release func() error, err error)
}

var sources = []source{
	{"channel", []string{"memory/channel"}, channelSubjects},
	{memlaneName, []string{"memory/" + memlaneName}, memlaneSubjects},
	{fileName, []string{"process/" + fileName, "machine/" + fileName}, fileSubjects},
	{"sqlite table", []string{"memory/sqlite table", "process/sqlite table", "machine/sqlite table"}, sqliteSubjects},
	{"asynq", []string{"process/asynq", "process/asynq tuned", "machine/asynq", "machine/asynq tuned"}, asynqSubjects},
	{"river", []string{"process/river", "process/river tuned", "machine/river", "machine/river tuned"}, riverSubjects},
	{awsName, []string{"emulated/" + awsName}, awsSubjects},
}

// openAll opens what is wanted and can be had, and says what cannot. release ends everything.
func openAll(
	ctx context.Context, p *place, only *regexp.Regexp,
) (subjects []*subject, without []skipped, release func() error) {
	var releases []func() error
	for _, source := range sources {
		if !slices.ContainsFunc(source.makes, only.MatchString) {
			continue
		}
		opened, end, err := source.open(ctx, p)
		if missing, ok := errors.AsType[*unavailableError](err); ok {
			without = append(without, skipped{Kind: kindSkipped, Name: source.name, Reason: missing.reason})
			continue
		}
		if err != nil {
			without = append(without, skipped{Kind: kindFailed, Name: source.name, Reason: err.Error()})
			continue
		}
		for _, s := range opened {
			if only.MatchString(s.key()) {
				subjects = append(subjects, s)
			}
		}
		if end != nil {
			releases = append(releases, end)
		}
	}
	return subjects, without, func() error {
		var faults []error
		for _, end := range releases {
			faults = append(faults, end())
		}
		return errors.Join(faults...)
	}
}

// compareAll measures all subjects in interleaved rounds, each round in a separate order, so that whatever else the
// machine does hits everybody. A subject that fails once is left out from there on. On a machine that is too slow for
// all rounds within the limit there are fewer, but at least one.
func compareAll(ctx context.Context, o *options, p *place, tell func(string)) (r *result, err error) {
	subjects, without, release := openAll(ctx, p, o.only)
	defer func() { err = errors.Join(err, release()) }()
	if len(subjects)+len(without) == 0 {
		return nil, errors.New("no subject matches -only")
	}
	r = &result{skipped: without}
	var benches []*bench
	for _, s := range subjects {
		if o.quick && s.slow != "" {
			r.skipped = append(r.skipped, skipped{
				Kind:   kindSkipped,
				Name:   s.key(),
				Reason: "left out by -quick: " + s.slow,
			})
			continue
		}
		r.subjects = append(r.subjects, s)
		benches = append(benches, newBench(s, o))
	}
	began := time.Now()
	order := rand.New(rand.NewPCG(o.seed, 2)) // nothing secret
	figures := map[*subject][]map[metric]float64{}
	for round := range o.rounds + 1 {
		if passed := time.Since(began); round > 1 && passed+passed/time.Duration(round) > o.limit {
			tell(fmt.Sprintf("another round would take longer than %s together: that was the last", o.limit))
			break
		}
		tell(fmt.Sprintf("round %d of %d", round, o.rounds))
		order.Shuffle(len(benches), func(i, k int) { benches[i], benches[k] = benches[k], benches[i] })
		for _, b := range slices.Clone(benches) {
			samples := o.samples
			if round == 0 { // to warm up, and to find out how many jobs fill a window
				samples = 0
			}
			measured, err := b.round(ctx, samples)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err != nil {
				r.skipped = append(r.skipped, skipped{Kind: kindFailed, Name: b.subject.key(), Reason: err.Error()})
				benches = slices.DeleteFunc(benches, func(other *bench) bool { return other == b })
				continue
			}
			if round > 0 {
				r.rounds = round
				figures[b.subject] = append(figures[b.subject], measured)
			}
		}
	}
	r.rows = summarize(r.subjects, figures)
	return r, nil
}
