package dynamostore

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// rowRef is where a delivery row is.
type rowRef struct {
	key   lane.RunKey
	first int64
	index int
}

func (r rowRef) path(attribute string) string { return fmt.Sprintf("#dl[%d].#%s", r.index, attribute) }

// claimToken is the row's token with the run's sequence and marker as they are known when the row is claimed: whoever marks the
// row later may move the marker only if both are still so.
func claimToken(token string, r *runItem) string {
	return strings.Join([]string{token, strconv.FormatInt(r.Sequence, 10), strconv.FormatInt(int64(r.DispatchExpiresAt), 10), r.DueP, r.DueA}, ":")
}

type claimedRow struct {
	rowRef
	id       string
	token    string
	sequence int64
	reserved millis // until when the run's slot is; 0 for none
	due      dueKey
}

// parseClaim reads what claimToken wrote. A token that was never ours has no row that could match it.
func parseClaim(e runlane.Environment, ref lane.OutboxRef) (claimedRow, bool) {
	run, first, index, ok := parseOutboxID(ref.ID)
	parts := strings.Split(ref.ClaimToken, ":") // token, sequence, reservation, and the marker's partition (three parts) and moment (two)
	if !ok || len(parts) != 8 || parts[0] == "" {
		return claimedRow{}, false
	}
	sequence, err := strconv.ParseInt(parts[1], 10, 64)
	reserved, err2 := strconv.ParseInt(parts[2], 10, 64)
	return claimedRow{
		rowRef: rowRef{lane.RunKey{Environment: e, RunID: run}, first, index}, id: ref.ID, token: parts[0], sequence: sequence,
		reserved: millis(reserved), due: dueKey{strings.Join(parts[3:6], ":"), strings.Join(parts[6:], ":")},
	}, err == nil && err2 == nil
}

// held is the condition that the row is still under the claim.
func (r claimedRow) held() condition {
	return condition{text: r.path("ct") + " = :held", values: item{":held": text(r.token)}}
}

// of is the row in its log item; nil when it is not there.
func (r rowRef) of(raw item) (*delivery, error) {
	log := &logItem{}
	if err := unmarshalItem(raw, log); err != nil {
		return nil, err
	}
	if r.index >= len(log.Deliveries) {
		return nil, nil
	}
	return &log.Deliveries[r.index], nil
}

// update changes the row. wrote tells whether the row as it is now is what this makes of it, should the answer get lost.
func (r rowRef) update(expression string, values item, c condition, wrote func(now *delivery) bool) *update {
	return &update{
		key: itemKey(runPK(r.key), logSK(r.first)), expression: expression, values: values, condition: c,
		wrote: func(now item) bool {
			row, err := r.of(now)
			return err == nil && row != nil && wrote(row)
		},
	}
}

// claim takes the row for a publisher, if it is as it was read.
func (r rowRef) claim(row *delivery, token string, until millis) *update {
	unchanged := condition{
		text: r.path("st") + " = :was", values: item{":was": text(row.Status)},
	}
	if row.Token != "" {
		unchanged.text += " AND " + r.path("ct") + " = :held"
		unchanged.values[":held"] = text(row.Token)
	}
	if row.NextAt != 0 { // it may have been claimed and have failed again meanwhile
		unchanged.text += " AND " + r.path("nx") + " = :next"
		unchanged.values[":next"] = num(int64(row.NextAt))
	}
	return r.update("SET "+r.path("st")+" = :st, "+r.path("ct")+" = :ct, "+r.path("cu")+" = :cu",
		item{":st": text(string(lane.OutboxClaimed)), ":ct": text(token), ":cu": num(int64(until))},
		unchanged, func(now *delivery) bool { return now.Token == token })
}

// published ends the claim: the wakeup was handed over.
func (r claimedRow) published(at millis) *update {
	return r.update("SET "+r.path("st")+" = :st, "+r.path("pa")+" = :at, "+r.path("pf")+" = if_not_exists("+r.path("pf")+", :at)"+
		" REMOVE "+r.path("ct")+", "+r.path("cu"),
		item{":st": text(string(lane.OutboxPublished)), ":at": num(int64(at))},
		r.held(), func(now *delivery) bool {
			return now.status() == lane.OutboxPublished && now.Token == "" && now.Published == at
		})
}

// failed ends the claim: the wakeup was not handed over. It is tried again at an instant, or, dead-lettered since then, not any more.
func (r claimedRow) failed(status lane.OutboxStatus, f *lane.OutboxFailure, at millis) (*update, error) {
	meta, err := encodeTexts(f.Failure.Meta)
	if err != nil {
		return nil, &runlane.Error{Code: runlane.ErrInternal, Message: "failure does not marshal", Cause: err}
	}
	timed, due := "nx", func(d *delivery) millis { return d.NextAt }
	if status == lane.OutboxDeadLettered {
		timed, due = "dd", func(d *delivery) millis { return d.DeadAt }
	}
	return r.update("SET "+r.path("st")+" = :st, "+r.path("at")+" = :at, "+r.path("fc")+" = :fc, "+r.path("fm")+" = :fm, "+
		r.path("fx")+" = :fx, "+r.path(timed)+" = :due REMOVE "+r.path("ct")+", "+r.path("cu"),
		item{
			":st": text(string(status)), ":at": num(int64(f.Attempts)), ":fc": text(string(f.Failure.Code)), ":fm": text(f.Failure.Message),
			":fx": meta, ":due": num(int64(at)),
		},
		r.held(), func(now *delivery) bool {
			return now.status() == status && now.Token == "" && now.Attempts == f.Attempts && due(now) == at
		}), nil
}

// requeue makes a dead-lettered row pending again. By the token a repeated requeue knows itself.
func (r rowRef) requeue(token string, at millis) *update {
	dead := condition{text: r.path("st") + " = :dead", values: item{":dead": text(string(lane.OutboxDeadLettered))}}
	return r.update("SET "+r.path("st")+" = :st, "+r.path("nx")+" = :due, "+r.path("rd")+" = :rd REMOVE "+r.path("at")+", "+r.path("dd"),
		item{":st": text(string(lane.OutboxPending)), ":due": num(int64(at)), ":rd": text(token)},
		dead, func(now *delivery) bool { return now.Requeued == token })
}
