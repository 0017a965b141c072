package ddb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
)

// Transaction commits all writes or none. The first write leads: everything else under its partition key changes only
// together with it, so its condition covers these items too.
type Transaction struct {
	Operation string // for the meter and for errors
	Token     string // unique to the transaction
	Writes    []item.Write
	Beside    []types.TransactWriteItem // the application's, sent behind Writes
	// Version names a growing number of the leading item. Once the stored one exceeds the expected one, no try can
	// succeed. "": no such number.
	Version string
	Proof   item.Proof
}

// attempt is a transaction being sent, with the same bytes each time.
type attempt struct {
	*Transaction

	in      *dynamodb.TransactWriteItemsInput
	encoded encodedOnce
	usage   Usage
	entries float64 // units for index entries; a cancelled transaction costs none

	tries, rounds, unknown int
	unanswered             error // of the last sending with an unknown outcome
}

// Transact commits a transaction. It sends the same request again while the outcome is unknown, or after mere conflicts
// with other transactions. It returns failed conditions.
func (t *Table) Transact(ctx context.Context, transaction *Transaction) ([]item.Lost, error) {
	sent := t.newAttempt(transaction)
	for {
		err := t.write(ctx, func(ctx context.Context) error {
			_, err := t.Client.TransactWriteItems(ctx, sent.in, SentOnce, sent.encoded.option)
			return err
		})
		cancelled, wasCancelled := errors.AsType[*types.TransactionCanceledException](err)
		spent := sent.usage
		if wasCancelled {
			spent.WriteUnits -= sent.entries
		}
		t.Meter.Used(ctx, sent.Operation, spent)
		var pause time.Duration
		var failed []item.Lost
		over := false
		switch {
		case err == nil:
			return nil, nil
		case wasCancelled:
			pause, failed, over, err = t.cancelled(ctx, sent, cancelled)
		case isThrottle(err):
			pause = throttlePause(sent.tries)
			sent.tries++
			over = sent.tries == maxConflictTries
		case refused(err):
			over, err = true, sent.besideAtFault(err)
		default:
			sent.unanswered = err
			sent.unknown++
			over = sent.unknown == MaxUnknownTries
			pause = throttleBackoff/4<<sent.unknown + jitter(throttleBackoff/4)
		}
		if failed != nil {
			return t.settleFailed(ctx, sent, failed)
		}
		if over || ctx.Err() != nil || Sleep(ctx, pause) != nil {
			return t.settle(ctx, sent, err)
		}
	}
}

func (t *Table) newAttempt(transaction *Transaction) *attempt {
	in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: &transaction.Token}
	for i := range transaction.Writes {
		in.TransactItems = append(in.TransactItems, transaction.Writes[i].Part(&t.Name))
	}
	in.TransactItems = append(in.TransactItems, transaction.Beside...)
	out := &attempt{Transaction: transaction, in: in}
	out.usage, out.entries = transactionUsage(t.Indexes, transaction.Writes)
	return out
}

// cancelled handles a cancelled transaction: it returns failed conditions, or a pause before the next try, or over with
// err.
func (t *Table) cancelled(
	ctx context.Context, sent *attempt, cancelled *types.TransactionCanceledException,
) (pause time.Duration, failed []item.Lost, over bool, err error) {
	reasons := cancelled.CancellationReasons
	if sent.unanswered == nil {
		reasons = failYielding(sent.Writes, reasons)
	}
	theirs, refusal := sent.judgeBeside(cancelled)
	ours := slices.Clip(reasons[:min(len(sent.Writes), len(reasons))])
	failed, met, other := judgeReasons(append(ours, theirs...))
	sent.tries++
	switch {
	case refusal != nil && !met && len(failed) == 0 && other == "":
		return 0, nil, true, refusal
	case other != "" && !isThrottleReason(other):
		return 0, nil, true, &runlane.Error{
			Code:    runlane.ErrContractViolation,
			Message: sent.Operation + ": DynamoDB refused a member: " + other,
			Cause:   cancelled,
		}
	case other != "":
		return throttlePause(sent.tries - 1), nil, sent.tries == maxConflictTries, &runlane.Error{
			Code:      runlane.ErrStorageUnavailable,
			Message:   sent.Operation + ": throttled",
			Retryable: true,
			Hint:      throttleHint(ours),
			Cause:     cancelled,
		}
	case len(failed) > 0 && (!met || sent.outdated(failed)):
		return 0, failed, false, nil
	}
	// It conflicts with another transaction, or a failed condition may hold once that transaction ends.
	t.Meter.Conflict()
	if sent.tries%triesBeforeRead == 0 {
		now, readErr := t.readFailing(ctx, sent.Writes)
		if len(now) > 0 {
			return 0, now, false, nil
		}
		if sent.tries == maxConflictTries && readErr == nil && sent.rounds < maxConflictRounds-1 { // no other one succeeded
			sent.tries = 0
			sent.rounds++
		}
	}
	pause = 5*time.Millisecond + jitter(conflictBackoff-5*time.Millisecond)
	return pause, nil, sent.tries == maxConflictTries, &runlane.Error{
		Code:      runlane.ErrStorageUnavailable,
		Message:   sent.Operation + ": met other transactions on the same items too often",
		Retryable: true,
		Hint:      "try again",
		Cause:     cancelled,
	}
}

// readFailing reads the items strongly and returns the writes with conditions that fail now: mere conflicts do not show
// which transaction succeeded. It leaves out other items under the leading item's partition key.
func (t *Table) readFailing(ctx context.Context, writes []item.Write) ([]item.Lost, error) {
	leading := item.TextOf(writes[0].Key()[item.PK])
	apart := func(i int) bool { return i == 0 || item.TextOf(writes[i].Key()[item.PK]) != leading }
	keys := make([]item.Item, 0, len(writes))
	for i := range writes {
		if apart(i) {
			keys = append(keys, writes[i].Key())
		}
	}
	found := map[string]item.Item{}
	err := t.BatchGet(ctx, "settle conflict", keys, func(it item.Item) error {
		found[item.TextOf(it[item.PK])+" "+item.TextOf(it[item.SK])] = it
		return nil
	})
	if err != nil {
		return nil, err
	}
	var failed []item.Lost
	for i := range writes {
		key := writes[i].Key()
		old := found[item.TextOf(key[item.PK])+" "+item.TextOf(key[item.SK])]
		if apart(i) && writes[i].Condition.Fails(old) {
			failed = append(failed, item.Lost{Index: i, Old: old})
		}
	}
	return failed, nil
}

// settleFailed returns the failed conditions, unless they failed because an earlier sending of this transaction
// succeeded.
func (t *Table) settleFailed(ctx context.Context, sent *attempt, failed []item.Lost) ([]item.Lost, error) {
	image := item.OldOf(failed, sent.proofIndex())
	if sent.unanswered == nil && (image == nil || sent.Proof.Shared) {
		return failed, nil
	}
	switch done, err := t.proves(ctx, sent, image); {
	case err != nil:
		return nil, withUnknownOutcome(err)
	case done:
		return nil, nil
	}
	return failed, nil
}

// proofIndex is the index of the write to the proof's item, or -1.
func (t *Transaction) proofIndex() int {
	return slices.IndexFunc(t.Writes, func(w item.Write) bool {
		key := w.Key()
		return t.Proof.Pk != "" && item.TextOf(key[item.PK]) == t.Proof.Pk && item.TextOf(key[item.SK]) == t.Proof.Sk
	})
}

// proves reports whether the transaction was carried out, by the proof's item: image if the answer had it, else read.
func (t *Table) proves(ctx context.Context, sent *attempt, image item.Item) (bool, error) {
	if sent.Proof.Pk == "" {
		return false, nil
	}
	if image == nil {
		var err error
		if image, err = t.Get(ctx, sent.Proof.Operation, sent.Proof.Pk, sent.Proof.Sk); err != nil {
			return false, err
		}
	}
	return sent.Proof.Holds(image), nil
}

// settle ends a transaction that is not tried again. If a sending got no answer, the proof decides whether it was
// carried out, not a later refusal.
func (t *Table) settle(ctx context.Context, sent *attempt, cause error) ([]item.Lost, error) {
	if ctx.Err() != nil {
		cause = ctx.Err()
	}
	err := t.Failure(ctx, sent.Operation, cause)
	if sent.unanswered == nil {
		return nil, withOutcome(err, "not committed")
	}
	if ctx.Err() == nil {
		done, readErr := t.proves(ctx, sent, nil)
		if readErr == nil && done {
			return nil, nil
		}
		if failed, readErr := t.readFailing(ctx, sent.Writes); readErr == nil && len(failed) > 0 && failed[0].Index == 0 {
			return t.settleFailed(ctx, sent, failed) // the leading item's later version excludes the unanswered sending
		}
	}
	return nil, withUnknownOutcome(err)
}

// failYielding turns throttles and conflicts of yielding members into failed conditions, unless another member was
// throttled or conflicted: only that is worth a wait.
func failYielding(members []item.Write, reasons []types.CancellationReason) []types.CancellationReason {
	out := slices.Clone(reasons)
	for i := range out {
		switch code := aws.ToString(out[i].Code); {
		case code == "" || code == "None" || code == "ConditionalCheckFailed":
		case i >= len(members) || !members[i].Yields || code != "TransactionConflict" && !isThrottleReason(code):
			return reasons
		default:
			out[i] = types.CancellationReason{Code: aws.String("ConditionalCheckFailed")}
		}
	}
	return out
}

func isThrottleReason(code string) bool {
	return strings.Contains(code, "Throttling") || strings.Contains(code, "Throughput")
}

// throttleHint names the table of a throttled member: the runs' if one of ours was throttled, else the application's.
func throttleHint(ours []types.CancellationReason) string {
	if _, _, other := judgeReasons(ours); other != "" {
		return "raise the table's throughput, or try again later"
	}
	return "raise the throughput of the tables of TriggerOptions.Writes, or try again later"
}

func judgeReasons(reasons []types.CancellationReason) (failed []item.Lost, met bool, other string) {
	for i, r := range reasons {
		switch code := aws.ToString(r.Code); code {
		case "", "None":
		case "ConditionalCheckFailed":
			failed = append(failed, item.Lost{Index: i, Old: r.Item})
		case "TransactionConflict":
			met = true
		default:
			other = code
		}
	}
	return failed, met, other
}

// outdated reports that the leading item already has a later version, so that no retry can help.
func (t *Transaction) outdated(failed []item.Lost) bool {
	for _, f := range failed {
		if f.Index != 0 || f.Old == nil {
			continue
		}
		if t.Writes[0].Before == nil {
			return true // it exists
		}
		return item.Number(f.Old[t.Version]) > item.Number(t.Writes[0].Before[t.Version])
	}
	return false
}

// encodedOnce sends the same bytes each time. The SDK encodes maps in random order, and DynamoDB refuses a token with
// different parameters.
type encodedOnce struct{ body body }

// body is the SDK's encoded request, in memory.
type body interface {
	io.ReaderAt
	Size() int64
}

func (e *encodedOnce) option(o *dynamodb.Options) { o.APIOptions = append(o.APIOptions, e.register) }

func (e *encodedOnce) register(stack *middleware.Stack) error {
	return stack.Serialize.Add(e, middleware.After)
}

func (*encodedOnce) ID() string { return "runlane:encodedOnce" }

// HandleSerialize implements middleware.SerializeMiddleware, after the encoder.
func (e *encodedOnce) HandleSerialize(
	ctx context.Context, in middleware.SerializeInput, next middleware.SerializeHandler,
) (middleware.SerializeOutput, middleware.Metadata, error) {
	request, ok := in.Request.(*smithyhttp.Request)
	if !ok {
		return next.HandleSerialize(ctx, in)
	}
	if e.body == nil {
		if e.body, ok = request.GetStream().(body); !ok {
			return middleware.SerializeOutput{}, middleware.Metadata{}, fmt.Errorf(
				"the SDK encodes a request as %T",
				request.GetStream(),
			)
		}
		return next.HandleSerialize(ctx, in)
	}
	same, err := request.SetStream(io.NewSectionReader(e.body, 0, e.body.Size()))
	if err != nil {
		return middleware.SerializeOutput{}, middleware.Metadata{}, err
	}
	in.Request = same
	return next.HandleSerialize(ctx, in)
}
