package sqlitelane_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/crash"
	"github.com/runlane/runlane-go/sealed"
	"github.com/runlane/runlane-go/sqlitelane"
)

// bodies is a program whose runs have large bodies, sealed, in a file.
type bodies struct {
	t     *testing.T
	path  string
	ahead time.Duration // of its clock
	rt    *core.Runtime
}

// body is a payload: compressible text and noise, so that some bodies are in a run's record and others apart from it.
type body struct {
	Text  string          `json:"text"`
	Noise json.RawMessage `json:"noise"`
}

// secretMark is in each payload, and must not be in the file.
const secretMark = "attack at dawn "

func bodyOf(n int) body {
	return body{Text: strings.Repeat(secretMark, n%7*700), Noise: noise(1 + n%5*9_000)}
}

var bodied = runlane.NewTask[body]("bodied", nil)

func openBodies(t *testing.T, path string, ahead time.Duration) *bodies {
	t.Helper()
	key, err := sealed.KeyOf("k", bytes.Repeat([]byte{7}, 32))
	b := &bodies{t: t, path: path, ahead: ahead}
	b.must(err)
	codec, err := sealed.New([]sealed.Key{key}, &sealed.Options{RefusePlain: true})
	b.must(err)
	l, err := sqlitelane.Open(t.Context(), path, &sqlitelane.Options{Sync: sqlitelane.SyncNormal})
	b.must(err)
	b.rt, err = core.Open(t.Context(), l, &core.Options{
		Logger: slog.New(slog.DiscardHandler),
		World:  &core.World{Now: func() time.Time { return time.Now().Add(ahead) }},
		Codec:  codec,
		Handlers: []runlane.Handler{bodied.Handle(func(ctx context.Context, a *runlane.Attempt, in body) error {
			size, err := runlane.Step(ctx, a, "size", func(context.Context) (int, error) { return len(in.Text), nil })
			if err != nil {
				return err
			}
			return a.SetOutput(fmt.Sprint(size, in.Text, string(in.Noise)))
		})},
	})
	b.must(err)
	return b
}

func (b *bodies) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// close is the size of the file with the whole log in it.
func (b *bodies) close() int64 {
	b.t.Helper()
	b.must(b.rt.Close(context.Background()))
	info, err := os.Stat(b.path)
	b.must(err)
	return info.Size()
}

// fill makes runs and executes them: those of the numbers below n, whose eighth has a key and is kept by it, or only
// what is kept.
func (b *bodies) fill(n int, onlyKept bool) (plain int64) {
	b.t.Helper()
	for i := range n {
		in, options := bodyOf(i), runlane.TriggerOptions{RunID: runlane.RunID(fmt.Sprint("old-", i))}
		switch {
		case i%8 == 0:
			options.RunID, options.IdempotencyKey = runlane.RunID(fmt.Sprint("kept-", i)), fmt.Sprint(i)
		case i%8 == 1:
			options.RunID, options.Delay = runlane.RunID(fmt.Sprint("kept-", i)), 24*time.Hour
		case onlyKept:
			continue
		}
		_, err := b.rt.Trigger(b.t.Context(), bodied.With(in), &options)
		b.must(err)
		plain += int64(len(in.Text) + len(in.Noise))
	}
	b.must(b.rt.Work(b.t.Context(), &core.WorkOptions{Drain: true, NoTick: true}))
	return plain
}

// kept is everything that can be read of the runs that are kept.
func (b *bodies) kept() map[runlane.RunID]string {
	b.t.Helper()
	all := map[runlane.RunID]string{}
	for summary, err := range b.rt.Runs().All(b.t.Context(), nil) {
		b.must(err)
		if !strings.HasPrefix(string(summary.ID), "kept-") {
			continue
		}
		run, err := b.rt.Runs().Get(b.t.Context(), summary.ID)
		b.must(err)
		text, err := json.Marshal(run)
		b.must(err)
		for event, err := range b.rt.Runs().Events(b.t.Context(), summary.ID, nil) {
			b.must(err)
			line, err := json.Marshal(event)
			b.must(err)
			text = append(append(text, '\n'), line...)
		}
		steps, err := b.rt.Runs().Steps(b.t.Context(), summary.ID)
		b.must(err)
		all[summary.ID] = fmt.Sprintf("%s\n%+v", text, steps)
	}
	return all
}

// prune prunes by pages, and counts.
func (b *bodies) prune() (pruned, calls int) {
	b.t.Helper()
	o := &core.PruneOptions{OlderThan: 30 * time.Minute, Limit: 25}
	for {
		progress, err := b.rt.Runs().Prune(b.t.Context(), o)
		b.must(err)
		pruned, calls = pruned+progress.Changed, calls+1
		if o.After = progress.Next; o.After == "" {
			return pruned, calls
		}
	}
}

// Sealed bodies of many sizes, in records and apart from them, are pruned: the file gives back what they took, and what
// was made between them reads as it did, by another process too.
func TestPruning_SealedBodies_ShrinksTheFileAndChangesNothingElse(t *testing.T) {
	t.Parallel()
	const n = 240
	alone := openBodies(t, newPath(t), 0)
	alone.fill(n, true)
	small := alone.close()

	b := openBodies(t, newPath(t), 0)
	plain := b.fill(n, false)
	want := b.kept()
	full := b.close()
	if len(want) != n/4 || full < 3*small || full > 2*plain {
		t.Fatalf("%d runs are kept; %d bytes with them alone, %d with all, whose bodies are twice %d",
			len(want), small, full, plain)
	}
	content, err := os.ReadFile(b.path)
	b.must(err)
	if bytes.Contains(content, []byte(secretMark)) {
		t.Error("the file has what is sealed")
	}

	b = openBodies(t, b.path, time.Hour)
	if pruned, calls := b.prune(); pruned != n-n/4 || calls < 5 {
		t.Errorf("%d runs are pruned by %d calls", pruned, calls)
	}
	if diff := cmp.Diff(want, b.kept()); diff != "" {
		t.Error(diff)
	}
	after := b.close()
	if after > small*5/4 {
		t.Errorf("%d bytes after pruning, %d with the others alone, %d before", after, small, full)
	}
	b = openBodies(t, b.path, time.Hour)
	if diff := cmp.Diff(want, b.kept()); diff != "" {
		t.Errorf("to another process: %s", diff)
	}
	b.fill(16, true) // the keys are owned, and what is given back can be used again
	b.close()
	s := started(t, b.path, 0)
	found, err := crash.Violations(t.Context(), s, runlane.DefaultEnvironment)
	if fault, unsound := s.Sound(); err != nil || unsound != nil || fault != "" || len(found) > 0 {
		t.Errorf("%v %v %s %v", err, unsound, fault, found)
	}
	b.must(s.Close(t.Context()))
	t.Logf("bytes with the kept alone, with all, after pruning: %d %d %d; plain bodies: twice %d",
		small, full, after, plain)
}
