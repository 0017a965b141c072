package core

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/runlane/runlane-go"
)

const (
	// receiptPrefix begins the names of receipts. No step, wait or call has such a name.
	receiptPrefix = "receipt:"
	// receiptTime limits the write of a receipt, which the outcome waits for.
	receiptTime = 2 * time.Second
)

var _ runlane.ReceiptHost = (*execution)(nil)

// ReportReceipt implements runlane.ReceiptHost.
func (x *execution) ReportReceipt(receipt json.RawMessage) {
	x.outputMu.Lock()
	defer x.outputMu.Unlock()
	if !x.closed {
		x.receipt = receipt
	}
}

// keepReceipt writes the attempt's receipt as a record of the run. It comes before the outcome, so that whoever sees the
// outcome finds the receipt.
func (x *execution) keepReceipt(ctx context.Context) {
	x.outputMu.Lock()
	receipt := x.receipt
	x.receipt = nil
	x.outputMu.Unlock()
	if receipt == nil || x.lost.Load() || !x.rt.storage().Capabilities().SuspendsRuns {
		return
	}
	limited := new(detachedContext).start(ctx, receiptTime)
	defer limited.stop()
	_, err := x.put(limited, &runlane.StepRecord{
		Name:   receiptPrefix + strconv.Itoa(x.started.Counters.Attempts),
		Kind:   runlane.StepKindReceipt,
		At:     x.rt.now(),
		Result: receipt,
	}, true)
	if err != nil {
		attrs := append(runAttrs(x.started), errorAttrs(err)...)
		x.rt.logger.LogAttrs(ctx, slog.LevelWarn, "receipt was not kept", attrs...)
	}
}

func isReceipt(r runlane.StepRecord) bool { return r.Kind == runlane.StepKindReceipt }

// Receipts returns the receipts of a run's attempts in order ([runlane.Attempt.SetReceipt]). Errors as in [Runs.Steps].
func (r *Runs) Receipts(ctx context.Context, id runlane.RunID) ([]runlane.Receipt, error) {
	records, err := r.allRecords(ctx, id)
	return receiptsOf(records), err
}

// Kept is what is kept with a run beside its history.
type Kept struct {
	Steps    []runlane.StepRecord
	Receipts []runlane.Receipt
}

// Kept returns what [Runs.Steps] and [Runs.Receipts] return, by one reading.
func (r *Runs) Kept(ctx context.Context, id runlane.RunID) (*Kept, error) {
	records, err := r.allRecords(ctx, id)
	if err != nil {
		return nil, err
	}
	kept := &Kept{Receipts: receiptsOf(records)}
	kept.Steps = slices.DeleteFunc(records, isReceipt)
	return kept, nil
}

func receiptsOf(records []runlane.StepRecord) (receipts []runlane.Receipt) {
	for i := range records {
		if !isReceipt(records[i]) {
			continue
		}
		receipt, fault := runlane.Receipt{}, records[i].Fault
		if fault == "" && json.Unmarshal(records[i].Result, &receipt) != nil {
			fault = "it is not a receipt that this program knows"
		}
		if fault != "" {
			receipt = runlane.Receipt{EndedAt: records[i].At, Fault: fault}
		}
		receipt.Attempt = records[i].Attempt
		receipts = append(receipts, receipt)
	}
	return receipts
}
