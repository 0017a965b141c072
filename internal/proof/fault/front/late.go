package front

import (
	"container/heap"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"sync"
	"time"
)

// tableKey names a table: emulators keep those of different access keys apart.
type tableKey struct{ account, name string }

// lateAccount is the access key under which the late state of another one's tables is kept: twelve digits, which
// LocalStack takes for an account.
func lateAccount(account string) string {
	hash := fnv.New64a()
	hash.Write([]byte("late " + account)) // never fails
	return strconv.FormatUint(100_000_000_000+hash.Sum64()%900_000_000_000, 10)
}

// replicas are the tables whose late state is kept.
type replicas struct {
	front  *Front
	mu     sync.Mutex
	tables map[tableKey]*replica
}

// replica is the late state of one table: changes that are on their way to it, and the table that has arrived.
type replica struct {
	front   *Front
	id      tableKey
	keys    []string // the attributes of the key
	request *request // in whose name the front writes

	ready sync.Once
	err   *answer // what kept it from getting ready

	mu       sync.Mutex
	pending  changes
	writes   map[string]int       // by key: the number of its last write
	due      map[string]time.Time // by key: when its last write arrives
	arriving []change             // now
	ended    bool
	wake     chan struct{}
}

// change is an item as it is after a write.
type change struct {
	due    time.Time
	number int // of the change, so that those of one moment keep their order
	id     string
	key    object
	after  object // nil: there is none
}

// changes is a heap of them: the next one to arrive first.
type changes struct {
	list []change
	made int
}

func (c *changes) Len() int      { return len(c.list) }
func (c *changes) Swap(i, j int) { c.list[i], c.list[j] = c.list[j], c.list[i] }
func (c *changes) Push(v any)    { c.list = append(c.list, v.(change)) } // only changes come
func (c *changes) Pop() any {
	last := c.list[len(c.list)-1]
	c.list = c.list[:len(c.list)-1]
	return last
}

func (c *changes) Less(i, j int) bool {
	a, b := &c.list[i], &c.list[j]
	if a.due.Equal(b.due) {
		return a.number < b.number
	}
	return a.due.Before(b.due)
}

// of is a table of the caller's, made known by the first request that names it; nil where there is no such table.
func (r *replicas) of(q *request, name string) *replica {
	id := tableKey{q.account(), name}
	r.mu.Lock()
	t := r.tables[id]
	if t == nil {
		t = &replica{
			front: r.front, id: id, request: &request{ctx: q.ctx, header: q.header.Clone()},
			writes: map[string]int{}, due: map[string]time.Time{}, wake: make(chan struct{}, 1),
		}
		r.tables[id] = t
	}
	r.mu.Unlock()
	t.ready.Do(func() {
		if t.err = t.prepare(); t.err == nil {
			go t.arrive()
		}
	})
	if t.err != nil {
		r.mu.Lock()
		if r.tables[id] == t { // there may be one later
			delete(r.tables, id)
		}
		r.mu.Unlock()
		return nil
	}
	return t
}

// forget drops the late state of a table that is deleted.
func (r *replicas) forget(q *request) {
	fields, err := decode(q.body)
	if err != nil {
		return
	}
	id := tableKey{q.account(), fields.text("TableName")}
	r.mu.Lock()
	t := r.tables[id]
	delete(r.tables, id)
	r.mu.Unlock()
	if t != nil {
		t.end()
	}
}

func (r *replicas) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tables {
		t.end()
	}
	clear(r.tables)
}

// end drops the late state.
func (t *replica) end() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.stir()
	t.late("DeleteTable", object{"TableName": t.id.name})
}

// late asks for something about the late state.
func (t *replica) late(operation string, fields object) *answer {
	return t.front.send(
		t.request.ctx,
		t.front.options.Replica,
		t.request.as(operation, lateAccount(t.id.account)),
		encode(fields),
	)
}

// now asks for something about the table itself.
func (t *replica) now(operation string, fields object) *answer {
	return t.front.send(t.request.ctx, t.front.backend, t.request.as(operation, t.id.account), encode(fields))
}

// prepare makes the late state of a table, with what is in the table.
func (t *replica) prepare() *answer {
	described := t.now("DescribeTable", object{"TableName": t.id.name})
	if !described.ok() {
		return described
	}
	fields, err := decode(described.body)
	if err != nil {
		return failure("InternalServerError", err.Error())
	}
	table := fields.object("Table")
	for _, element := range table.objects("KeySchema") {
		t.keys = append(t.keys, element.text("AttributeName"))
	}
	same := object{
		"TableName":            t.id.name,
		"BillingMode":          "PAY_PER_REQUEST",
		"KeySchema":            table["KeySchema"],
		"AttributeDefinitions": table["AttributeDefinitions"],
	}
	var indexes []any
	for _, index := range table.objects("GlobalSecondaryIndexes") {
		indexes = append(indexes, object{
			"IndexName":  index["IndexName"],
			"KeySchema":  index["KeySchema"],
			"Projection": index["Projection"],
		})
	}
	if indexes != nil {
		same["GlobalSecondaryIndexes"] = indexes
	}
	t.late("DeleteTable", object{"TableName": t.id.name}) // a front that was killed left one, or there is none
	if made := t.late("CreateTable", same); !made.ok() {
		return made
	}
	return t.copyAll()
}

// copyAll brings what is in the table, which is no change.
func (t *replica) copyAll() *answer {
	scan := object{"TableName": t.id.name, "ConsistentRead": true, "Limit": 200}
	for {
		a := t.now("Scan", scan)
		if !a.ok() {
			return a
		}
		page, err := decode(a.body)
		if err != nil {
			return failure("InternalServerError", err.Error())
		}
		var all []change
		for _, item := range page.objects("Items") {
			all = append(all, change{key: t.keyOf(item), after: item})
		}
		t.store(all)
		if page["LastEvaluatedKey"] == nil {
			return nil
		}
		scan["ExclusiveStartKey"] = page["LastEvaluatedKey"]
	}
}

func (t *replica) keyOf(item object) object {
	key := object{}
	for _, name := range t.keys {
		key[name] = item[name]
	}
	return key
}

func (t *replica) item(key object) itemKey { return itemKey{t.id, string(encode(key))} }

// stored is an item as it is now; nil: there is none. Not ok: it could not be read.
func (t *replica) stored(q *request, key object) (item object, ok bool) {
	a := t.front.send(
		q.ctx,
		t.front.backend,
		q.as("GetItem", t.id.account),
		encode(object{"TableName": t.id.name, "Key": key, "ConsistentRead": true}),
	)
	fields, err := decode(a.body)
	if !a.ok() || err != nil {
		return nil, false
	}
	return fields.object("Item"), true
}

// changed sends a change on its way. Changes of one item arrive in their order.
func (t *replica) changed(key, after object) {
	id := string(encode(key))
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.writes[id]
	t.writes[id]++
	due := time.Now().Add(t.front.options.Late.pick(t.front.source("late", id, n).Uint64()))
	if last := t.due[id]; due.Before(last) {
		due = last
	}
	t.due[id] = due
	t.pending.made++
	heap.Push(&t.pending, change{due: due, number: t.pending.made, id: id, key: key, after: after})
	t.stir()
}

func (t *replica) stir() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// behind reports whether any change is on its way.
func (t *replica) behind() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.arriving) > 0 || t.pending.Len() > 0
}

// arrive brings changes when they are due, until the table or the front ends.
func (t *replica) arrive() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		due, wait, ended := t.next()
		if ended {
			return
		}
		if len(due) > 0 {
			t.store(due)
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-t.wake:
		case <-t.front.ended:
			return
		}
	}
}

// next takes what is due, one change an item, or says how long nothing is.
func (t *replica) next() (due []change, wait time.Duration, ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, at := time.Now(), map[string]int{}
	for t.pending.Len() > 0 && !t.pending.list[0].due.After(now) {
		c := heap.Pop(&t.pending).(change) // only changes are there
		if i, again := at[c.id]; again {
			due[i] = c
			continue
		}
		at[c.id] = len(due)
		due = append(due, c)
	}
	t.arriving = due
	wait = time.Hour
	if t.pending.Len() > 0 {
		wait = t.pending.list[0].due.Sub(now)
	}
	return due, wait, t.ended
}

// writesAtOnce is what one BatchWriteItem takes.
const writesAtOnce = 25

// store writes into the late state.
func (t *replica) store(all []change) {
	for part := range slices.Chunk(all, writesAtOnce) {
		var requests []any
		for _, c := range part {
			if c.after == nil {
				requests = append(requests, object{"DeleteRequest": object{"Key": c.key}})
			} else {
				requests = append(requests, object{"PutRequest": object{"Item": c.after}})
			}
		}
		t.late("BatchWriteItem", object{"RequestItems": object{t.id.name: requests}})
	}
}

// Settle waits until indexes and eventual reads show all that was written before. What is written meanwhile does not
// hold it up.
func (f *Front) Settle(ctx context.Context) error {
	f.replicas.mu.Lock()
	waiting := map[*replica]int{}
	for _, t := range f.replicas.tables {
		waiting[t] = t.made()
	}
	f.replicas.mu.Unlock()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for len(waiting) > 0 {
		for t, made := range waiting {
			if t.shows(made) {
				delete(waiting, t)
			}
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("front: what was written is not shown yet: %w", ctx.Err())
		}
	}
	return nil
}

// made is the number of the last change.
func (t *replica) made() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pending.made
}

// shows reports whether the changes up to a number have arrived.
func (t *replica) shows(number int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return true
	}
	before := func(c change) bool { return c.number <= number }
	return !slices.ContainsFunc(t.pending.list, before) && !slices.ContainsFunc(t.arriving, before)
}
