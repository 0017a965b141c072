package cli

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/shown"
)

// parseFlags sets flags anywhere among the arguments, up to "--", and returns the other arguments. flag.FlagSet.Parse
// stops at the first argument and cannot suggest corrections.
func parseFlags(set *flag.FlagSet, args []string) (positional []string, err error) {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			return append(positional, args...), nil
		}
		if len(arg) < 2 || arg[0] != '-' {
			positional = append(positional, arg)
			continue
		}
		name, value, inline := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if name == "h" {
			name = "help"
		}
		known := set.Lookup(name)
		if known == nil {
			return nil, usagef(flagSuggestion(set, name), "there is no flag %s here", quoted(arg))
		}
		if isBool(known) && !inline {
			value = "true"
		} else if !inline {
			if len(args) == 0 {
				return nil, usagef("", "--%s needs a value", name)
			}
			value, args = args[0], args[1:]
		}
		if err := set.Set(name, value); err != nil {
			return nil, flagFault(name, value, err)
		}
	}
	return positional, nil
}

func flagSuggestion(set *flag.FlagSet, typed string) string {
	var names []string
	set.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	if name, ok := nearest(typed, names); ok {
		return "did you mean --" + name + "? "
	}
	return ""
}

func flagFault(name, value string, err error) error {
	if e, ok := errors.AsType[*usageError](err); ok {
		return &usageError{message: "--" + name + ": " + e.message, next: e.next}
	}
	if e, ok := errors.AsType[*runlane.Error](err); ok {
		return &usageError{message: "--" + name + ": " + e.Message, next: sentence(e.Hint)}
	}
	return usagef("", "--%s does not take %s", name, quoted(value))
}

// sentence ends a hint so that another one may follow.
func sentence(hint string) string {
	if hint == "" {
		return ""
	}
	return strings.TrimSuffix(hint, ".") + "; "
}

func isBool(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

type parsed[T any] struct {
	into *T
	read func(text string) (T, error)
	show func(T) string
}

func (p parsed[T]) Set(text string) (err error) {
	value, err := p.read(text)
	if err == nil {
		*p.into = value
	}
	return err
}

func (p parsed[T]) String() string {
	if p.into == nil || p.show == nil {
		return ""
	}
	return p.show(*p.into)
}

func durationFlag(set *flag.FlagSet, into *time.Duration, name, usage string) {
	set.Var(parsed[time.Duration]{into: into, read: runlane.ParseDuration}, name, usage)
}

// timeoutFlag adds a duration flag that must be more than 0.
func timeoutFlag(set *flag.FlagSet, into *time.Duration, name, usage string) {
	set.Var(parsed[time.Duration]{into: into, read: readTimeout}, name, usage)
}

func readTimeout(text string) (time.Duration, error) {
	d, err := runlane.ParseDuration(text)
	if err == nil && d <= 0 {
		err = usagef("give more than 0, or leave it out; ", "%s is not a time", quoted(text))
	}
	return d, err
}

// graceFlag adds a duration flag; 0 means no wait.
func graceFlag(set *flag.FlagSet, into *time.Duration, name, usage string) {
	set.Var(parsed[time.Duration]{into: into, read: func(text string) (time.Duration, error) {
		d, err := runlane.ParseDuration(text)
		switch {
		case err == nil && d < 0:
			err = usagef("give 0 or more; ", "%s is not a time", quoted(text))
		case d == 0:
			d = runlane.NoWait
		}
		return d, err
	}}, name, usage)
}

func timeFlag(set *flag.FlagSet, into *time.Time, name, usage string) {
	set.Var(parsed[time.Time]{into: into, read: readTime}, name, usage)
}

// moment is a time, or an age.
type moment struct {
	at  time.Time
	age time.Duration
}

func (m moment) time(now time.Time) time.Time {
	if m.age > 0 {
		return now.Add(-m.age)
	}
	return m.at
}

func momentFlag(set *flag.FlagSet, into *moment, name, usage string) {
	set.Var(parsed[moment]{into: into, read: func(text string) (m moment, err error) {
		if age, err := runlane.ParseDuration(text); err == nil && age > 0 {
			return moment{age: age}, nil
		}
		if m.at, err = readTime(text); err != nil {
			err = usagef("write it like 2026-03-01T12:00:00Z, or an age like 2h; ", "%s is not a time", quoted(text))
		}
		return m, err
	}}, name, usage)
}

// readTime reads an RFC 3339 time; without a zone it is UTC.
func readTime(text string) (time.Time, error) {
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04",
	} {
		if at, err := time.Parse(layout, strings.TrimSuffix(text, " UTC")); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, usagef("write it like 2026-03-01T12:00:00Z; ", "%s is not a time", quoted(text))
}

// pairs is a repeatable flag key=value.
type pairs map[string]string

func (p *pairs) Set(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return usagef("write it like key=value; ", "%s is not key=value", quoted(text))
	}
	if *p == nil {
		*p = pairs{}
	}
	(*p)[key] = value
	return nil
}

func (p *pairs) String() string { return "" }

// words is a repeatable flag of values separated by commas.
type words[T ~string] []T

func (w *words[T]) Set(text string) error {
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			*w = append(*w, T(word))
		}
	}
	return nil
}

func (w *words[T]) String() string { return "" }

// statuses is a flag of run statuses. "active" and "finished" stand for several.
type statuses []runlane.Status

// statusMeant maps words that people use to the intended status, where another status looks more similar.
var statusMeant = map[string]string{
	"cancelling": string(runlane.StatusCancellationRequested), "canceling": string(runlane.StatusCancellationRequested),
}

func (st *statuses) Set(text string) error {
	found, unknown := shown.Statuses(text)
	if unknown != nil {
		next := didYouMean(cmp.Or(statusMeant[*unknown], *unknown), shown.StatusWords())
		return usagef(
			fmt.Sprintf("%sstatuses are %s; ", next, strings.Join(shown.StatusWords(), ", ")),
			"there is no status %s",
			quoted(*unknown),
		)
	}
	for _, status := range found {
		if !slices.Contains(*st, status) {
			*st = append(*st, status)
		}
	}
	return nil
}

func (st *statuses) String() string { return "" }

type waitingKind runlane.WaitingFor

func waitingWords() []string {
	var known []string
	for _, kind := range runlane.WaitingKinds() {
		known = append(known, string(kind))
	}
	return known
}

func (k *waitingKind) Set(text string) error {
	if !slices.Contains(waitingWords(), text) {
		return usagef(
			fmt.Sprintf("%skinds are %s; ", didYouMean(text, waitingWords()), strings.Join(waitingWords(), ", ")),
			"no run waits for %s",
			quoted(text),
		)
	}
	*k = waitingKind(text)
	return nil
}

func (k *waitingKind) String() string { return "" }
