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

// Transaction commits all writes or none. The first write leads: everything else under its partition key changes
// together with it, so its condition speaks for all of them.
type Transaction struct {
	Operation string // for the meter and for errors
	Token     string // each transaction has another one
	Writes    []item.Write
	// Version names a number of the leading item that only grows. An item beyond the version that the leading write
	// expects ends all tries. "": no such number; the leading item may exist or not.
	Version string
	Proof   item.Proof
}

// attempt is a transaction that is being sent: the same bytes every time.
type attempt struct {
	*Transaction

	in      *dynamodb.TransactWriteItemsInput
	encoded encodedOnce
	usage   Usage
	entries float64 // units for index entries, which a cancelled transaction does not put

	tries, rounds, unknown int
	unanswered             error // of the last sending whose outcome is unknown
}

// Transact commits a transaction. It sends the same request again while its outcome is unknown, and repeats it here
// while it only collides with other transactions. Failed conditions are returned to the caller.
func (t *Table) Transact(ctx context.Context, transaction *Transaction) ([]item.Lost, error) {
	sent := t.attempt(transaction)
	for {
		err := t.send(ctx, func(ctx context.Context) error {
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
			pause = throttled(sent.tries)
			sent.tries++
			over = sent.tries == maxConflictTries
		case refused(err):
			over = true
		default:
			sent.unanswered = err
			sent.unknown++
			over = sent.unknown == MaxUnknownTries
			pause = throttleBackoff/4<<sent.unknown + jitter(throttleBackoff/4)
		}
		if failed != nil {
			return t.lostTo(ctx, sent, failed)
		}
		if over || ctx.Err() != nil || Sleep(ctx, pause) != nil {
			return t.settle(ctx, sent, err)
		}
	}
}

func (t *Table) attempt(transaction *Transaction) *attempt {
	in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: &transaction.Token}
	for i := range transaction.Writes {
		in.TransactItems = append(in.TransactItems, transaction.Writes[i].Part(&t.Name))
	}
	out := &attempt{Transaction: transaction, in: in}
	out.usage, out.entries = transactionUsage(t.Indexes, transaction.Writes)
	return out
}

// cancelled handles a cancelled transaction. It returns the failed conditions, or pauses before another try, or ends
// with err.
func (t *Table) cancelled(
	ctx context.Context, sent *attempt, cancelled *types.TransactionCanceledException,
) (pause time.Duration, failed []item.Lost, over bool, err error) {
	reasons := cancelled.CancellationReasons
	if sent.unanswered == nil {
		reasons = yielding(sent.Writes, reasons)
	}
	failed, met, other := judgeReasons(reasons)
	sent.tries++
	switch {
	case other != "" && !isRate(other):
		return 0, nil, true, &runlane.Error{
			Code:    runlane.ErrContractViolation,
			Message: sent.Operation + ": DynamoDB refused a member: " + other,
			Cause:   cancelled,
		}
	case other != "":
		return throttled(sent.tries - 1), nil, sent.tries == maxConflictTries, &runlane.Error{
			Code:      runlane.ErrStorageUnavailable,
			Message:   sent.Operation + ": throttled",
			Retryable: true,
			Hint:      "raise the table's throughput, or try again later",
			Cause:     cancelled,
		}
	case len(failed) > 0 && (!met || sent.final(failed)):
		return 0, failed, false, nil
	}
	// It collided with another transaction, or one reports a condition that may hold once the other ends.
	t.Meter.Conflict()
	if sent.tries%triesBeforeRead == 0 {
		now, readErr := t.failing(ctx, sent.Writes)
		if len(now) > 0 {
			return 0, now, false, nil
		}
		if sent.tries == maxConflictTries && readErr == nil && sent.rounds < maxConflictRounds-1 { // none succeeded
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

// failing reads the items strongly and returns the writes whose condition no longer holds: while transactions only
// collide, no answer says which one succeeded. Other items under the leading item's partition key are left out.
func (t *Table) failing(ctx context.Context, writes []item.Write) ([]item.Lost, error) {
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

// lostTo returns the failed conditions, unless they failed because an earlier sending of this very transaction
// succeeded.
func (t *Table) lostTo(ctx context.Context, sent *attempt, failed []item.Lost) ([]item.Lost, error) {
	image := item.OldOf(failed, sent.proofIndex())
	if sent.unanswered == nil && (image == nil || sent.Proof.Shared) {
		return failed, nil
	}
	switch done, err := t.proves(ctx, sent, image); {
	case err != nil:
		return nil, unsettled(err)
	case done:
		return nil, nil
	}
	return failed, nil
}

// proofIndex is the write whose item is the proof; -1 without one.
func (t *Transaction) proofIndex() int {
	return slices.IndexFunc(t.Writes, func(w item.Write) bool {
		key := w.Key()
		return t.Proof.Pk != "" && item.TextOf(key[item.PK]) == t.Proof.Pk && item.TextOf(key[item.SK]) == t.Proof.Sk
	})
}

// proves tells whether the transaction was carried out, from the image of the proof that came with an answer, or by
// reading it.
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

// settle ends a transaction that is not tried again. If a sending got no answer, its proof tells whether it was carried
// out, however late it is read; a later refusal does not tell.
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
		if failed, readErr := t.failing(ctx, sent.Writes); readErr == nil && len(failed) > 0 && failed[0].Index == 0 {
			return t.lostTo(ctx, sent, failed) // a later version of the leading item excludes the unanswered sending
		}
	}
	return nil, unsettled(err)
}

// yielding are the reasons of a cancelled transaction, with those of yielding members as failed conditions. If no other
// member was throttled or collided with another transaction, there is nothing to wait for.
func yielding(members []item.Write, reasons []types.CancellationReason) []types.CancellationReason {
	out := slices.Clone(reasons)
	for i := range out {
		switch code := aws.ToString(out[i].Code); {
		case code == "" || code == "None" || code == "ConditionalCheckFailed":
		case i >= len(members) || !members[i].Yields || code != "TransactionConflict" && !isRate(code):
			return reasons
		default:
			out[i] = types.CancellationReason{Code: aws.String("ConditionalCheckFailed")}
		}
	}
	return out
}

// isRate reports that a member was throttled.
func isRate(code string) bool {
	return strings.Contains(code, "Throttling") || strings.Contains(code, "Throughput")
}

// judgeReasons sorts the positional reasons of a cancelled transaction.
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

// final reports that the leading item already has a later version: no retry can help, even if another item reports a
// conflict.
func (t *Transaction) final(failed []item.Lost) bool {
	for _, f := range failed {
		if f.Index != 0 || f.Old == nil {
			continue
		}
		if t.Writes[0].Before == nil {
			return true // it is there
		}
		return item.Number(f.Old[t.Version]) > item.Number(t.Writes[0].Before[t.Version])
	}
	return false
}

// encodedOnce makes a repeated request carry the bytes of its first sending. The SDK encodes maps in Go's random order,
// and DynamoDB recognizes a transaction by its token only if its parameters are the same.
type encodedOnce struct{ body body }

// body is the result of the SDK's encoder: all of it in memory, readable at any place without moving other readers.
type body interface {
	io.ReaderAt
	Size() int64
}

// option is for one call of a client.
func (e *encodedOnce) option(o *dynamodb.Options) { o.APIOptions = append(o.APIOptions, e.register) }

func (e *encodedOnce) register(stack *middleware.Stack) error {
	return stack.Serialize.Add(e, middleware.After)
}

// ID implements middleware.SerializeMiddleware.
func (*encodedOnce) ID() string { return "runlane:encodedOnce" }

// HandleSerialize implements middleware.SerializeMiddleware, behind the encoder.
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
