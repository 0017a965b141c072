package main

import "time"

// message is a wakeup in the queue.
type message struct {
	cohort   *cohort
	receives int
	since    time.Duration // it is visible
}

// queue is the work queue: SQS carries any rate, so all that limits it is how many messages may be in flight.
type queue struct {
	world    *world
	waiting  []message // visible, the oldest first, from head on
	head     int
	visible  float64 // runs
	inFlight float64 // received and not deleted, those that were handed back too
	delayed  float64
	dead     float64
	sent     float64
}

// send puts a wakeup into the queue, now or later.
func (q *queue) send(c *cohort, delay time.Duration) {
	q.sent += c.weight
	if delay <= 0 {
		q.show(message{cohort: c})
		return
	}
	q.delayed += c.weight
	seconds := (delay + time.Second - 1).Truncate(time.Second) // SQS knows whole ones
	q.world.after(seconds, func() {
		q.delayed -= c.weight
		q.show(message{cohort: c})
	})
}

func (q *queue) show(m message) {
	m.since = q.world.now
	q.waiting = append(q.waiting, m)
	q.visible += m.cohort.weight
	q.world.outcome.visible = max(q.world.outcome.visible, q.visible)
	q.world.bridge.look()
}

// receive takes the oldest messages, for so many runs or more where a cohort is larger.
func (q *queue) receive(most float64) (batch []message, weight float64) {
	for q.head < len(q.waiting) && (weight == 0 || weight+q.waiting[q.head].cohort.weight <= most) {
		m := q.waiting[q.head]
		if q.inFlight+m.cohort.weight > mostInFlight*float64(q.world.Mappings) {
			q.world.outcome.refuse(q.world.now, limitInFlight, m.cohort.weight)
			break
		}
		q.waiting[q.head] = message{}
		q.head++
		m.receives++
		q.visible -= m.cohort.weight
		q.inFlight += m.cohort.weight
		batch = append(batch, m)
		weight += m.cohort.weight
	}
	if q.head > 1024 && q.head > len(q.waiting)/2 {
		q.waiting = append(q.waiting[:0:0], q.waiting[q.head:]...)
		q.head = 0
	}
	return batch, weight
}

func (q *queue) delete(m message) { q.inFlight -= m.cohort.weight }

// handBack lets a message come again after a while. One that was received too often goes to the dead-letter queue
// instead, when it would be received the next time.
func (q *queue) handBack(m message, after time.Duration) {
	q.world.after(after, func() {
		q.inFlight -= m.cohort.weight
		if m.receives >= maxReceiveCount {
			q.dead += m.cohort.weight
			return
		}
		q.show(m)
	})
}

// oldest is how long the first visible message has waited.
func (q *queue) oldest() time.Duration {
	if q.head == len(q.waiting) {
		return 0
	}
	return q.world.now - q.waiting[q.head].since
}
