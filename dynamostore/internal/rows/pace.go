package rows

import (
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

// PaceSK is the sort key of a pace. It has a partition key of its own: it is no slot.
const PaceSK = "pace"

// paceKept is how long a pace is kept after it is over. Then TTL removes it.
const paceKept = 24 * time.Hour

// PacePK is the partition key of the pace of a partition of a queue with a rate.
func (p Partition) PacePK() string {
	return p.Environment.Name() + ":rate:" + string(p.Queue) + ":" + p.Hash
}

// PaceOf reads a pace; nil is the zero value.
func PaceOf(it item.Item) lane.Pace {
	return lane.Pace{Next: item.Number(it["nx"]), Line: item.Number(it["li"]), Span: item.Number(it["iv"])}
}

// CountStart is the write that counts a start at that time, for a pace as it was last seen. ok is false if it allows none.
// A busy pace is only added to, so that writers with an old view do not disturb each other.
func (p Partition) CountStart(seen lane.Pace, q runlane.Queue, at time.Time) (u *item.Update, ok bool) {
	now, after := at.UnixMicro(), seen
	if _, ok = after.Start(q, at); !ok {
		return nil, false
	}
	w := p.newPaceWrite(seen, after, q, at)
	switch {
	case w.rescales:
		w.exactly(seen, after)
	case seen.Next <= now:
		w.set("nx", "#nx", "(attribute_not_exists(#nx) OR #nx <= :now)", item.Item{":now": item.Num(now)})
		w.replace("nx", after.Next)
	default:
		w.set("nx", "#nx", "#nx > :now AND #nx <= :most",
			item.Item{":now": item.Num(now), ":most": item.Num(now + lane.RateSlack(q))})
	}
	return w.update(), true
}

// GiveTicket is the same for the next start time until then.
func (p Partition) GiveTicket(seen lane.Pace, q runlane.Queue, at, until time.Time) (u *item.Update, ok bool) {
	now, after := at.UnixMicro(), seen
	if _, ok = after.Ticket(q, at, until); !ok {
		return nil, false
	}
	w := p.newPaceWrite(seen, after, q, at)
	busy := item.Item{":now": item.Num(now), ":most": item.Num(until.UnixMicro() + lane.RateSlack(q))}
	switch {
	case w.rescales:
		w.exactly(seen, after)
	case max(seen.Line, seen.Next) <= now:
		w.set("li", "#li",
			"(attribute_not_exists(#li) OR #li <= :now) AND (attribute_not_exists(#nx) OR #nx <= :now)",
			item.Item{":now": item.Num(now)})
		w.replace("li", after.Line)
	case seen.Line >= seen.Next:
		w.set("li", "#li", "#li > :now AND #li <= :most AND (attribute_not_exists(#nx) OR #nx <= #li)", busy)
	default:
		w.set("li", "#nx", "#nx > :now AND #nx <= :most AND (attribute_not_exists(#li) OR #li < #nx)", busy)
	}
	return w.update(), true
}

// TicketStart is the start time that the ticket gave out, by the pace after it.
func TicketStart(after lane.Pace, q runlane.Queue, at time.Time) time.Time {
	before := lane.Pace{Line: after.Line - lane.RateInterval(q), Span: after.Span}
	start, _ := before.Ticket(q, at, at)
	return start
}

type paceWrite struct {
	item.Update

	rescales bool
	expires  time.Time
	interval int64
	span     int64
}

func (p Partition) newPaceWrite(seen, after lane.Pace, q runlane.Queue, at time.Time) *paceWrite {
	w := &paceWrite{
		rescales: seen.Span != 0 && seen.Span != after.Span,
		expires:  at.Add(time.Duration(after.Span+lane.RateInterval(q))*time.Microsecond + paceKept),
		interval: lane.RateInterval(q),
		span:     after.Span,
	}
	w.Key = item.Key(p.PacePK(), PaceSK)
	w.Values = item.Item{}
	return w
}

// set adds an interval to attribute from, and stores it in to, under the condition.
func (w *paceWrite) set(to, from, condition string, values item.Item) {
	w.Expression, w.Values[":in"] = "SET #"+to+" = "+from+" + :in", item.Num(w.interval)
	w.Condition = item.Condition{
		Text: condition + " AND (attribute_not_exists(#iv) OR #iv = :iv)", Values: values,
	}
}

// replace stores a value instead of adding to one.
func (w *paceWrite) replace(name string, to int64) {
	delete(w.Values, ":in")
	w.Expression, w.Values[":to"] = "SET #"+name+" = :to", item.Num(to)
}

// exactly replaces the pace, which another rate counted.
func (w *paceWrite) exactly(seen, after lane.Pace) {
	w.Expression, w.Values[":nx"], w.Values[":li"] = "SET #nx = :nx, #li = :li", item.Num(after.Next), item.Num(after.Line)
	w.Condition = item.Equal("iv", item.Num(seen.Span))
	for name, was := range map[string]int64{"nx": seen.Next, "li": seen.Line} {
		if was == 0 {
			w.Condition.Text += " AND attribute_not_exists(#" + name + ")"
		} else {
			w.Condition = w.Condition.And(item.Equal(name, item.Num(was)))
		}
	}
}

func (w *paceWrite) update() *item.Update {
	w.Expression += ", #iv = :iv, #xt = :xt"
	w.Values[":iv"], w.Values[":xt"] = item.Num(w.span), item.Num(w.expires.Unix())
	return &w.Update
}
