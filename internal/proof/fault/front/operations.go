package front

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// handlers are the operations on data.
func (f *Front) handlers() map[string]func(*request) *answer {
	return map[string]func(*request) *answer{
		"BatchGetItem":       f.batchGet,
		"GetItem":            f.read,
		"Query":              f.read,
		"Scan":               f.read,
		"TransactGetItems":   f.transactGet,
		"BatchWriteItem":     f.batchWrite,
		"DeleteItem":         f.plainWrite,
		"PutItem":            f.plainWrite,
		"UpdateItem":         f.plainWrite,
		"TransactWriteItems": f.transactWrite,
	}
}

// read is strong where the request asks for that, and late elsewhere.
func (f *Front) read(q *request) *answer {
	t := f.replicas.of(q, q.fields.text("TableName"))
	if t == nil || q.fields.flag("ConsistentRead") {
		return f.send(q.ctx, f.backend, q.header, q.body)
	}
	return f.readLate(q, t)
}

// batchGet is late where no part of it is strong.
func (f *Front) batchGet(q *request) *answer {
	var first *replica
	for name, part := range q.fields.object("RequestItems") {
		t := f.replicas.of(q, name)
		if t == nil || asObject(part).flag("ConsistentRead") {
			return f.send(q.ctx, f.backend, q.header, q.body)
		}
		first = t
	}
	if first == nil {
		return f.send(q.ctx, f.backend, q.header, q.body)
	}
	return f.readLate(q, first)
}

func (f *Front) readLate(q *request, t *replica) *answer {
	if t.behind() {
		f.late.Add(1)
	}
	return f.send(q.ctx, f.options.Replica, q.as(q.operation, lateAccount(q.account())), q.body)
}

// transactGet reads what no write holds.
func (f *Front) transactGet(q *request) *answer {
	parts := q.fields.objects("TransactItems")
	keys := make([]itemKey, len(parts))
	for i, part := range parts {
		get := part.object("Get")
		if t := f.replicas.of(q, get.text("TableName")); t != nil {
			keys[i] = t.item(get.object("Key"))
		}
	}
	met := make([]bool, len(keys))
	f.holds.mu.Lock()
	for i, key := range keys {
		met[i] = f.holds.items[key] != nil
	}
	f.holds.mu.Unlock()
	if slices.Contains(met, true) {
		f.conflicts.Add(1)
		return cancelled(met)
	}
	return f.send(q.ctx, f.backend, q.header, q.body)
}

// written is one item that a write names, and what it is afterwards where the request tells.
type written struct {
	table *replica
	key   object
	after object
	known bool // after is what is stored then; nil: nothing is
	check bool // only a condition
}

// part reads a put, an update, a delete or a condition.
func (f *Front) part(q *request, kind string, fields object) *written {
	t := f.replicas.of(q, fields.text("TableName"))
	if t == nil {
		return nil
	}
	w := &written{table: t, key: fields.object("Key"), check: kind == "ConditionCheck", known: kind == "Delete"}
	if kind == "Put" {
		w.after, w.known = fields.object("Item"), true
		w.key = t.keyOf(w.after)
	}
	return w
}

func keysOf(parts []*written) []itemKey {
	var keys []itemKey
	for _, w := range parts {
		keys = append(keys, w.table.item(w.key))
	}
	return keys
}

// transactWrite holds its items, and carries the transaction out unless another one holds some of them.
func (f *Front) transactWrite(q *request) *answer {
	var parts []*written
	for _, member := range q.fields.objects("TransactItems") {
		for kind, fields := range member {
			w := f.part(q, kind, asObject(fields))
			if w == nil { // the emulator says what is wrong with it
				return f.send(q.ctx, f.backend, q.header, q.body)
			}
			parts = append(parts, w)
		}
	}
	token := q.account() + " " + q.fields.text("ClientRequestToken")
	if !f.holds.begin(token) {
		f.inProgress.Add(1)
		return refusal(
			"TransactionInProgressException",
			"The transaction with the given request token is already in progress.",
		)
	}
	defer f.holds.end(token)
	keys := keysOf(parts)
	taken, met := f.holds.take(keys, true)
	if met != nil {
		f.conflicts.Add(1)
		return cancelled(met)
	}
	defer f.holds.leave(keys, taken)
	a := f.send(q.ctx, f.backend, q.header, q.body)
	if f.note(q, parts, a) {
		f.pause(f.options.Commit.pick(f.source("commit", token, 0).Uint64()))
	}
	return a
}

// writeKinds are plain writes, as members of a transaction name them.
var writeKinds = map[string]string{"PutItem": "Put", "UpdateItem": "Update", "DeleteItem": "Delete"}

// plainWrite is refused while a transaction holds its item, and waits behind other plain writes of it.
func (f *Front) plainWrite(q *request) *answer {
	w := f.part(q, writeKinds[q.operation], q.fields)
	if w == nil {
		return f.send(q.ctx, f.backend, q.header, q.body)
	}
	keys := keysOf([]*written{w})
	taken, met := f.holds.take(keys, false)
	if met != nil {
		f.refused.Add(1)
		return refusal("TransactionConflictException", ongoing)
	}
	defer f.holds.leave(keys, taken)
	a := f.send(q.ctx, f.backend, q.header, q.body)
	f.note(q, []*written{w}, a)
	return a
}

// batchWrite leaves what a transaction holds unprocessed.
func (f *Front) batchWrite(q *request) *answer {
	var parts []*written
	for name, list := range q.fields.object("RequestItems") {
		for _, member := range (object{"list": list}).objects("list") {
			for kind, fields := range member {
				named := maps.Clone(asObject(fields))
				named["TableName"] = name
				w := f.part(q, strings.TrimSuffix(kind, "Request"), named)
				if w == nil {
					return f.send(q.ctx, f.backend, q.header, q.body)
				}
				parts = append(parts, w)
			}
		}
	}
	keys := keysOf(parts)
	taken, met := f.holds.take(keys, false)
	if met != nil { // the caller sends the same again, as it would with a part of it
		f.refused.Add(1)
		return &answer{status: http.StatusOK, body: encode(object{"UnprocessedItems": q.fields["RequestItems"]})}
	}
	defer f.holds.leave(keys, taken)
	a := f.send(q.ctx, f.backend, q.header, q.body)
	for _, w := range parts {
		w.known = false // some may be unprocessed
	}
	f.note(q, parts, a)
	return a
}

// note tells the late state what is stored after a write, unless its answer says that nothing has changed. It reads
// what the request does not tell; the items are held meanwhile.
func (f *Front) note(q *request, parts []*written, a *answer) (changed bool) {
	if !a.ok() && a.status < http.StatusInternalServerError {
		return false
	}
	for _, w := range parts {
		switch {
		case w.check:
		case w.known && a.ok():
			w.table.changed(w.key, w.after)
		default:
			if stored, ok := w.table.stored(q, w.key); ok {
				w.table.changed(w.key, stored)
			}
		}
	}
	return true
}
