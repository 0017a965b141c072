package move

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// unread refuses an active run with signals that no wait has read, or that are too large for the record of their wait:
// the file cannot hold them, and the imported run would be stuck. An unreadable answer may belong to a signal that
// stayed behind in an earlier move, so it counts for none.
func (x *exporter) unread(ctx context.Context, run *runlane.Run) error {
	if x.leave || run.Status.Terminal() || !x.m.Host.Storage().Capabilities().SuspendsRuns {
		return nil
	}
	mail, err := x.m.Host.Stored().ReadMail(ctx, &lane.MailQuery{
		RunKey: lane.RunKey{Environment: x.m.Environment, RunID: run.ID}, WithoutBodies: true,
	})
	if err != nil || mail.Count == 0 {
		return err
	}
	var records []runlane.StepRecord // as the program reads them
	err = x.m.eachPage(func(q *lane.PageQuery) (runlane.Cursor, error) {
		page, err := x.m.Host.Storage().ListRecords(ctx, &lane.RecordQuery{
			PageQuery: *q, RunID: run.ID, CreatedAt: run.CreatedAt,
		})
		if err != nil {
			return "", err
		}
		records = append(records, page.Items...)
		return page.Next, nil
	})
	if err != nil {
		return err
	}
	read, sealed := map[readSignal]bool{}, 0
	for i := range records {
		var answer runlane.WaitAnswer
		switch {
		case records[i].Kind != runlane.StepKindWait:
			continue
		case records[i].Fault == "" && x.m.Host.NamesSignals(records[i].Result):
			continue // names signals only; they stay behind
		case records[i].Fault != "" || json.Unmarshal(records[i].Result, &answer) != nil:
			sealed++
			continue
		}
		for _, signal := range answer.Signals {
			read[readSignal{signal.Name, signal.ID}] = true
		}
	}
	here, err := x.stillThere(ctx, run, read)
	if err != nil {
		return err
	}
	left := mail.Count - int64(here)
	if left <= 0 {
		return nil
	}
	e := &runlane.Error{
		Code:    runlane.ErrStorageConflict,
		RunID:   run.ID,
		Message: fmt.Sprintf("run %q has %d signals that it has not read", run.ID, left),
		Hint:    "let it read them, or cancel it; ExportOptions.LeaveSignals (--leave-signals) leaves them behind",
	}
	if sealed > 0 {
		e.Message = fmt.Sprintf("run %q has %d signals, and %d answers that cannot be read here: "+
			"which may have read them", run.ID, left, sealed)
		e.Hint = "export with the codec and the keys of its program; or " + e.Hint
	}
	return e
}

type readSignal struct{ name, id string }

// stillThere counts the answered signals that this storage has: signals stay behind when their run is moved here.
func (x *exporter) stillThere(ctx context.Context, run *runlane.Run, read map[readSignal]bool) (n int, err error) {
	for signal := range read {
		mail, err := x.m.Host.Stored().ReadMail(ctx, &lane.MailQuery{
			RunKey:        lane.RunKey{Environment: x.m.Environment, RunID: run.ID},
			Names:         []string{signal.name},
			ID:            signal.id,
			WithoutBodies: true,
		})
		if err != nil {
			return 0, err
		}
		n += len(mail.Signals)
	}
	return n, nil
}
