package sqlitelane

import (
	"context"
	"fmt"

	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// mostVacuumed bounds the free pages that one call returns to the file system: its caller and other writers wait.
const mostVacuumed = 1024

// PruneRuns implements [lane.Storage] and returns free pages to the file system. One call reads at most
// [embedded.MostExamined] rows.
func (s *Storage) PruneRuns(ctx context.Context, c *lane.PruneCommand) (*lane.PruneProgress, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	request, err := embedded.OpenPrune(c)
	if err != nil {
		return nil, err
	}
	cutoff, now := embedded.At(c.OlderThan), s.clock()
	var progress *lane.PruneProgress
	err = s.write(ctx, func(t *tx) error {
		progress = &lane.PruneProgress{}
		env, err := s.names.find(t.Conn, c.Environment.Name())
		if err != nil || env == 0 {
			return err
		}
		lists, err := s.runsOf(t.Conn, env, choice{}, record.FinishedAs(request.Statuses)...)
		if err != nil {
			return err
		}
		p := embedded.Pruning{Environment: c.Environment, ReleaseOwners: c.ReleaseOwners, Cutoff: cutoff}
		w := newWalk(t.Conn, env, c.Environment, request.After, cutoff-1, false, lists...)
		old, err := embedded.FillPage(w.next, request.Scope, request.Limit, 0,
			func(i item) (*entry, embedded.Verdict, error) {
				if !c.Takes(i.Run.TaskID) {
					return nil, p.Pass(), nil
				}
				needed, err := t.needed(i.entry, &p)
				if err != nil {
					return nil, embedded.Skip, err
				}
				keeps, err := t.keepsKey(i.entry, now)
				if err != nil {
					return nil, embedded.Skip, err
				}
				return i.entry, p.Judge(i.Run.ID, needed, keeps), nil
			})
		if err != nil {
			return err
		}
		for _, e := range old.Items {
			progress.Count(e.Run.TaskID, e.Run.Status)
			if c.DryRun {
				continue
			}
			if err := t.remove(e); err != nil {
				return err
			}
			progress.Removed = append(progress.Removed, lane.RunInstance{RunID: e.Run.ID, CreatedAt: e.Run.CreatedAt})
		}
		progress.Skipped, progress.Next = p.Skipped, old.Next
		if len(progress.Removed) == 0 {
			return nil
		}
		return t.vacuum()
	})
	if err != nil {
		return nil, err
	}
	return progress, nil
}

// keepsKey reports whether pruning the run would free its key too early.
func (t *tx) keepsKey(e *entry, now embedded.Millis) (bool, error) {
	if e.Run.IdempotencyKey == "" || !e.Retains(now) {
		return false, nil
	}
	n, err := t.Number("SELECT count(*) FROM owners WHERE env = ? AND kind = ? AND task = ? AND key = ? AND run = ?",
		e.env, int64(embedded.IdempotencyKey), string(e.Run.TaskID), e.Run.IdempotencyKey, e.n)
	return n > 0, err
}

// remove removes a finished run, and its key unless another run owns it.
func (t *tx) remove(e *entry) error {
	delete(t.s.entries, entryKey{e.env, e.Run.ID})
	if e.Run.IdempotencyKey != "" {
		if err := t.release(e, embedded.IdempotencyKey, e.Run.IdempotencyKey); err != nil {
			return err
		}
	}
	if e.Payload.Apart() || e.Output.Apart() {
		if err := t.Exec("DELETE FROM bulk WHERE k IN (?, ?)", payloadKey(e.n), outputKey(e.n)); err != nil {
			return err
		}
	}
	if e.Chunks > 0 {
		if err := t.Exec("DELETE FROM chunks WHERE k >= ? AND k < ?", e.n<<chunkBits, (e.n+1)<<chunkBits); err != nil {
			return err
		}
	}
	if err := t.Exec("DELETE FROM notes WHERE run = ?", e.n); err != nil {
		return err
	}
	if err := t.Exec("DELETE FROM signals WHERE run = ?", e.n); err != nil {
		return err
	}
	if e.Calls {
		if err := t.Exec("DELETE FROM calls WHERE run = ?", e.n); err != nil {
			return err
		}
	}
	if err := t.Exec("DELETE FROM records WHERE run = ?", e.n); err != nil {
		return err
	}
	return t.Exec("DELETE FROM runs WHERE n = ?", e.n)
}

// vacuum returns free pages after the transaction. The rest follows with the next call.
func (t *tx) vacuum() error {
	return t.Exec(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", mostVacuumed))
}
