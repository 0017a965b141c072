package core

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

const (
	// keepEvery is how often an environment's ticks look for runs to remove; what is left over then follows in the next
	// ticks.
	keepEvery = 6 * time.Hour
	// keepWhole is how often a look that passes over runs begins with the oldest: for those that something held.
	keepWhole = 7 * 24 * time.Hour
	// keepReads bounds the pages that one tick reads for it.
	keepReads = 20
	// keepPut bounds the writing of the record.
	keepPut = 5 * time.Second
	// keepSaid is how long a program's rule holds for programs that say none, and a pass is remembered.
	keepSaid = 30 * 24 * time.Hour
)

func (rt *Runtime) checkKeep() error {
	rule := rt.keep.said
	if err := rule.Validate(); err != nil {
		return namedOption("Options.Keep", err)
	}
	rt.keep.active = rt.storage().Capabilities().PrunesRuns
	if rule != (runlane.Keep{}) && !rt.keep.active {
		return unsupported("the storage does not remove runs (Options.Keep)")
	}
	return nil
}

// keeping is where a runtime's removal of old runs stands.
type keeping struct {
	said   runlane.Keep // Options.Keep
	active bool

	mu   sync.Mutex
	next time.Time // when it looks again
}

// keepPass selects the runs of a status, of some tasks, that are kept for the same time.
type keepPass struct {
	status        runlane.Status
	keeps         time.Duration
	tasks, except []runlane.TaskID
}

// name is another one when the runs are others.
func (p *keepPass) name() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", p.tasks, p.except))
	return fmt.Sprintf("%s %s %s", p.status, runlane.FormatDuration(p.keeps), hex.EncodeToString(sum[:8]))
}

// selects reports whether the pass goes over runs that stay for long.
func (p *keepPass) selects() bool { return len(p.tasks)+len(p.except) > 0 }

// says reports whether the record lacks what this program says.
func (k *keeping) says(record *lane.KeepRecord, now time.Time) bool {
	return k.said != (runlane.Keep{}) && (k.said != record.Rule || now.Sub(record.RuleAt) >= keepSaid/2)
}

// rule is what holds for an environment's runs: this program's, else another's.
func (k *keeping) rule(record *lane.KeepRecord, now time.Time) runlane.Keep {
	rule := k.said
	if rule == (runlane.Keep{}) && now.Sub(record.RuleAt) < keepSaid {
		rule = record.Rule
	}
	return rule.Or(runlane.KeepAll(runlane.DefaultKeep))
}

// ownKeeps returns what tasks say themselves, completed by the rule. Where the catalog and this program differ, as in a
// rollout, the longer time holds.
func (rt *Runtime) ownKeeps(ctx context.Context, rule runlane.Keep) (map[runlane.TaskID]runlane.Keep, error) {
	said := map[runlane.TaskID][]runlane.Keep{}
	if rt.keepsTasks() {
		stored, err := rt.storedTasks(ctx)
		if err != nil {
			return nil, err
		}
		for id, record := range stored {
			said[id] = append(said[id], record.Keep.Or(rule))
		}
	}
	for _, d := range rt.definitions {
		said[d.ID] = append(said[d.ID], d.Keep.Or(rule))
	}
	own := map[runlane.TaskID]runlane.Keep{}
	for id, rules := range said {
		longest := rules[0]
		for _, k := range rules[1:] {
			longest.Succeeded = longer(longest.Succeeded, k.Succeeded)
			longest.Failed = longer(longest.Failed, k.Failed)
			longest.Cancelled = longer(longest.Cancelled, k.Cancelled)
		}
		if longest != rule {
			own[id] = longest
		}
	}
	return own, nil
}

func longer(a, b time.Duration) time.Duration {
	if a == runlane.KeepForever || b == runlane.KeepForever {
		return runlane.KeepForever
	}
	return max(a, b)
}

// keepPasses returns the passes that a rule and what tasks say need.
func keepPasses(rule runlane.Keep, own map[runlane.TaskID]runlane.Keep) (passes []keepPass) {
	for _, status := range terminalStatuses {
		general := keepPass{status: status, keeps: rule.Of(status)}
		byTime := map[time.Duration][]runlane.TaskID{}
		for _, id := range slices.Sorted(maps.Keys(own)) {
			if d := own[id].Of(status); d != general.keeps {
				general.except = append(general.except, id)
				byTime[d] = append(byTime[d], id)
			}
		}
		if general.keeps != runlane.KeepForever {
			passes = append(passes, general)
		}
		for _, d := range slices.Sorted(maps.Keys(byTime)) {
			if d != runlane.KeepForever {
				passes = append(passes, keepPass{status: status, keeps: d, tasks: byTime[d]})
			}
		}
	}
	return passes
}

// looking is one tick's share of a look.
type looking struct {
	*tick
	record *lane.KeepRecord
	now    time.Time
	reads  int
	result StageResult
}

// prune removes runs that nothing keeps any longer. One tick of a runtime does it at a time; other processes may do it
// meanwhile, which is harmless: the record says how far they are.
func (t *tick) prune(ctx context.Context) StageResult {
	k := &t.rt.keep
	l := looking{tick: t, now: t.rt.now()}
	if !k.mu.TryLock() {
		return l.result
	}
	defer k.mu.Unlock()
	if l.now.Before(k.next) {
		return l.result
	}
	if l.result.Err = l.look(ctx); l.result.Err == nil && !l.result.More {
		k.next = l.record.At.Add(keepEvery)
	}
	return l.result
}

func (l *looking) look(ctx context.Context) (err error) {
	if l.record, err = l.rt.storage().GetKeep(ctx, l.rt.environment); err != nil {
		return err
	}
	if !l.rt.keep.says(l.record, l.now) && l.now.Sub(l.record.At).Abs() < keepEvery {
		return nil // another process has looked
	}
	rule := l.rt.keep.rule(l.record, l.now)
	own, err := l.rt.ownKeeps(ctx, rule)
	if err != nil {
		return err
	}
	l.write()
	err = l.passes(ctx, rule, own)
	if err == nil && !l.result.More {
		if err = l.pruneFlows(ctx, rule); err == nil {
			l.record.At = l.now
		}
	}
	put := &lane.PutKeepCommand{Environment: l.rt.environment, Record: *l.record}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepPut) // also out of time: the work stays done
	defer cancel()
	return errors.Join(err, l.rt.storage().PutKeep(ctx, put))
}

func (l *looking) passes(ctx context.Context, rule runlane.Keep, own map[runlane.TaskID]runlane.Keep) error {
	for _, pass := range keepPasses(rule, own) {
		if err := l.pass(ctx, &pass); err != nil || l.result.More {
			return err
		}
	}
	return nil
}

// write writes this program's rule into the record, and forgets passes that nobody makes any more.
func (l *looking) write() {
	l.record.Passes = slices.DeleteFunc(l.record.Passes, func(p lane.KeepPass) bool {
		return l.now.Sub(p.At) > keepSaid && l.now.Sub(p.Whole) > keepSaid
	})
	if said := l.rt.keep.said; said != (runlane.Keep{}) {
		l.record.Rule, l.record.RuleAt = said, l.now
	}
}

// pass goes on with a pass that has not ended, or begins one that is due.
func (l *looking) pass(ctx context.Context, p *keepPass) error {
	at := l.place(p)
	if at.Until.IsZero() {
		if l.now.Sub(at.At).Abs() < keepEvery {
			return nil
		}
		at.Until = nextMilli(l.now.Add(-p.keeps))
		if !p.selects() || l.now.Sub(at.Whole) >= keepWhole {
			at.Whole, at.Since = l.now, time.Time{}
		}
	}
	for {
		if l.result.Done >= l.limit || l.reads >= keepReads {
			l.result.More = true
			return nil
		}
		progress, err := l.rt.storage().PruneRuns(ctx, p.command(l.rt.environment, at, l.limit-l.result.Done))
		if progress != nil {
			l.result.Done += progress.Pruned
		}
		if err != nil {
			if errors.Is(err, runlane.ErrValidationFailed) {
				at.After = "" // of another version of the program
			}
			return err
		}
		l.reads++
		if at.After = progress.Next; at.After == "" {
			at.At, at.Since, at.Until = l.now, at.Until, time.Time{}
			return nil
		}
	}
}

func (p *keepPass) command(e runlane.Environment, at *lane.KeepPass, limit int) *lane.PruneCommand {
	return &lane.PruneCommand{
		PageQuery: lane.PageQuery{Environment: e, Limit: limit, After: at.After},
		Statuses:  []runlane.Status{p.status},
		OlderThan: at.Until,
		Since:     at.Since,
		Tasks:     p.tasks,
		Except:    p.except,
	}
}

func (l *looking) place(p *keepPass) *lane.KeepPass {
	name := p.name()
	i := slices.IndexFunc(l.record.Passes, func(of lane.KeepPass) bool { return of.Name == name })
	if i < 0 {
		i = len(l.record.Passes)
		l.record.Passes = append(l.record.Passes, lane.KeepPass{Name: name})
	}
	return &l.record.Passes[i]
}

// pruneFlows removes the records of flows when the environment's runs of every status have a time: after the longest.
func (t *tick) pruneFlows(ctx context.Context, rule runlane.Keep) error {
	longest := longer(longer(rule.Succeeded, rule.Failed), rule.Cancelled)
	if longest == runlane.KeepForever {
		return nil
	}
	p, err := t.rt.newPruning(&PruneOptions{OlderThan: longest})
	if err != nil {
		return err
	}
	return p.flows(ctx)
}

// Keeping is how long the finished runs of an environment are kept, and what ticks will remove.
type Keeping struct {
	// Rule is the environment's: this program's, else the last one that a program with a rule said.
	Rule runlane.Keep
	// Tasks have other times.
	Tasks map[runlane.TaskID]runlane.Keep
	// LookedAt is when ticks of any program last ended with all runs, zero for never.
	LookedAt time.Time
	// Overdue counts the runs that are past their time, by task and status. More says that there are others.
	Overdue []lane.PruneCount
	More    bool
}

// Keeping returns the rule in force and counts, up to about the limit, the finished runs that ticks remove next. On
// DynamoDB each costs the reading of its item.
//
// A storage that does not remove runs is runlane.ErrCapabilityUnsupported.
func (r *Runs) Keeping(ctx context.Context, limit int) (*Keeping, error) {
	if err := r.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer r.rt.gate.leave()
	if !r.rt.keep.active {
		return nil, unsupported("the storage does not remove runs")
	}
	record, err := r.rt.storage().GetKeep(ctx, r.rt.environment)
	if err != nil {
		return nil, err
	}
	now := r.rt.now()
	state := &Keeping{Rule: r.rt.keep.rule(record, now)}
	if state.Tasks, err = r.rt.ownKeeps(ctx, state.Rule); err != nil {
		return nil, err
	}
	state.LookedAt = record.At
	limit = min(cmp.Or(limit, runlane.DefaultPruneLimit), runlane.MaxPageLimit)
	for _, pass := range keepPasses(state.Rule, state.Tasks) {
		if limit <= 0 {
			state.More = true
			break
		}
		at := *(&looking{record: record}).place(&pass)
		at.Until, at.After = nextMilli(now.Add(-pass.keeps)), ""
		command := pass.command(r.rt.environment, &at, limit)
		command.DryRun = true
		progress, err := r.rt.storage().PruneRuns(ctx, command)
		if err != nil {
			return nil, err
		}
		limit -= progress.Pruned
		state.Overdue = append(state.Overdue, progress.Counts...)
		state.More = state.More || progress.Next != ""
	}
	return state, nil
}
