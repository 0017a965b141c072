package rows

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

type DeliveryRef struct {
	Key   lane.RunKey
	First int64
	Index int
}

func (r DeliveryRef) path(attribute string) string {
	return fmt.Sprintf("#dl[%d].#%s", r.Index, attribute)
}

// TokenOf returns the claim token with the run's sequence, reservation and marker. A publisher may later move the
// marker only if these are unchanged.
func TokenOf(token string, r *Run) string {
	return strings.Join(
		[]string{
			token,
			strconv.FormatInt(r.Sequence, 10),
			strconv.FormatInt(int64(r.DispatchExpiresAt), 10),
			r.DueP,
			r.DueA,
		},
		":",
	)
}

type ClaimedDelivery struct {
	DeliveryRef
	ID       string
	token    string
	Sequence int64
	Reserved Millis // end of the run's reservation; 0 for none
	Due      DueKey
}

// ParseClaim decodes what TokenOf returned. Any other token matches no row.
func ParseClaim(e runlane.Environment, ref lane.OutboxRef) (ClaimedDelivery, bool) {
	run, first, index, ok := ParseOutboxID(ref.ID)
	parts := strings.Split(ref.ClaimToken, ":") // token, sequence, reservation, marker's partition (3) and time (2)
	if !ok || len(parts) != 8 || parts[0] == "" {
		return ClaimedDelivery{}, false
	}
	sequence, err := strconv.ParseInt(parts[1], 10, 64)
	reserved, err2 := strconv.ParseInt(parts[2], 10, 64)
	return ClaimedDelivery{
		DeliveryRef: DeliveryRef{lane.RunKey{Environment: e, RunID: run}, first, index},
		ID:          ref.ID,
		token:       parts[0],
		Sequence:    sequence,
		Reserved:    Millis(reserved),
		Due:         DueKey{strings.Join(parts[3:6], ":"), strings.Join(parts[6:], ":")},
	}, err == nil && err2 == nil
}

func (r ClaimedDelivery) held() item.Condition {
	return item.Condition{Text: r.path("ct") + " = :held", Values: item.Item{":held": item.Text(r.token)}}
}

func (r DeliveryRef) Of(raw item.Item) (*Delivery, error) {
	log := &Log{}
	if err := Unmarshal(raw, log); err != nil {
		return nil, err
	}
	if r.Index >= len(log.Deliveries) {
		return nil, nil
	}
	return &log.Deliveries[r.Index], nil
}

// update changes the row. wrote decides from the current row whether an update without an answer was carried out.
func (r DeliveryRef) update(
	expression string, values item.Item, c item.Condition, wrote func(now *Delivery) bool,
) *item.Update {
	return &item.Update{
		Key:        item.Key(RunPK(r.Key), LogSK(r.First)),
		Expression: expression,
		Values:     values,
		Condition:  c,
		Wrote: func(now item.Item) bool {
			row, err := r.Of(now)
			return err == nil && row != nil && wrote(row)
		},
	}
}

// Claim claims the row for a publisher, if it is as read.
func (r DeliveryRef) Claim(row *Delivery, token string, until Millis) *item.Update {
	unchanged := item.Condition{
		Text: r.path("st") + " = :was", Values: item.Item{":was": item.Text(row.Status)},
	}
	if row.Token != "" {
		unchanged.Text += " AND " + r.path("ct") + " = :held"
		unchanged.Values[":held"] = item.Text(row.Token)
	}
	if row.NextAt != 0 { // it may have been claimed and failed again meanwhile
		unchanged.Text += " AND " + r.path("nx") + " = :next"
		unchanged.Values[":next"] = item.Num(int64(row.NextAt))
	}
	return r.update("SET "+r.path("st")+" = :st, "+r.path("ct")+" = :ct, "+r.path("cu")+" = :cu",
		item.Item{":st": item.Text(string(lane.OutboxClaimed)), ":ct": item.Text(token), ":cu": item.Num(int64(until))},
		unchanged, func(now *Delivery) bool { return now.Token == token })
}

func (r ClaimedDelivery) MarkPublished(at Millis) *item.Update {
	return r.update(
		"SET "+r.path("st")+" = :st, "+r.path("pa")+" = :at, "+r.path("pf")+" = if_not_exists("+r.path("pf")+", :at)"+
			" REMOVE "+r.path("ct")+", "+r.path("cu"),
		item.Item{":st": item.Text(string(lane.OutboxPublished)), ":at": item.Num(int64(at))},
		r.held(),
		func(now *Delivery) bool {
			return now.State() == lane.OutboxPublished && now.Token == "" && now.Published == at
		},
	)
}

// MarkFailed ends the claim after a failure. at is the time of the next try, or of the dead letter.
func (r ClaimedDelivery) MarkFailed(status lane.OutboxStatus, f *lane.OutboxFailure, at Millis) (*item.Update, error) {
	meta, err := encodeTexts(f.Failure.Meta)
	if err != nil {
		return nil, &runlane.Error{Code: runlane.ErrInternal, Message: "failure does not marshal", Cause: err}
	}
	timed, due := "nx", func(d *Delivery) Millis { return d.NextAt }
	if status == lane.OutboxDeadLettered {
		timed, due = "dd", func(d *Delivery) Millis { return d.DeadAt }
	}
	return r.update(
		"SET "+r.path("st")+" = :st, "+r.path("at")+" = :at, "+r.path("fc")+" = :fc, "+r.path("fm")+" = :fm, "+
			r.path("fx")+" = :fx, "+r.path(timed)+" = :due REMOVE "+r.path("ct")+", "+r.path("cu"),
		item.Item{
			":st":  item.Text(string(status)),
			":at":  item.Num(int64(f.Attempts)),
			":fc":  item.Text(string(f.Failure.Code)),
			":fm":  item.Text(f.Failure.Message),
			":fx":  meta,
			":due": item.Num(int64(at)),
		},
		r.held(),
		func(now *Delivery) bool {
			return now.State() == status && now.Token == "" && now.Attempts == f.Attempts && due(now) == at
		},
	), nil
}

// Requeue makes a dead letter pending again. A repeated requeue recognizes its own write by the token.
func (r DeliveryRef) Requeue(token string, at Millis) *item.Update {
	dead := item.Condition{
		Text:   r.path("st") + " = :dead",
		Values: item.Item{":dead": item.Text(string(lane.OutboxDeadLettered))},
	}
	return r.update(
		"SET "+r.path("st")+" = :st, "+r.path("nx")+" = :due, "+r.path("rd")+" = :rd REMOVE "+r.path("at")+", "+
			r.path("dd"),
		item.Item{":st": item.Text(string(lane.OutboxPending)), ":due": item.Num(int64(at)), ":rd": item.Text(token)},
		dead,
		func(now *Delivery) bool { return now.Requeued == token },
	)
}
