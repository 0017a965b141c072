package front

import (
	"strings"
	"sync"
	"time"
)

// itemKey names an item: its table, and the key as JSON.
type itemKey struct {
	table tableKey
	key   string
}

// hold is a write that is under way on an item.
type hold struct {
	transaction bool
	ended       chan struct{}
}

// holds are the writes under way.
type holds struct {
	mu     sync.Mutex
	items  map[itemKey]*hold
	tokens map[string]bool // of transactions under way
}

// take holds items for a write, behind plain writes that are under way. Where a transaction holds some of them, met
// says which, and nothing is held.
func (h *holds) take(keys []itemKey, transaction bool) (taken *hold, met []bool) {
	taken = &hold{transaction: transaction, ended: make(chan struct{})}
	for {
		met = make([]bool, len(keys))
		conflict, plain := false, (*hold)(nil)
		h.mu.Lock()
		for i, key := range keys {
			switch other := h.items[key]; {
			case other == nil:
			case other.transaction:
				met[i], conflict = true, true
			default:
				plain = other
			}
		}
		if !conflict && plain == nil {
			for _, key := range keys {
				h.items[key] = taken
			}
			h.mu.Unlock()
			return taken, nil
		}
		h.mu.Unlock()
		if conflict {
			return nil, met
		}
		<-plain.ended
	}
}

func (h *holds) leave(keys []itemKey, taken *hold) {
	h.mu.Lock()
	for _, key := range keys {
		delete(h.items, key)
	}
	h.mu.Unlock()
	close(taken.ended)
}

// begin notes that a request with a token is under way; false: it is already.
func (h *holds) begin(token string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if token == "" || h.tokens[token] {
		return token == ""
	}
	h.tokens[token] = true
	return true
}

func (h *holds) end(token string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.tokens, token)
}

// pause waits, or until the front ends.
func (f *Front) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-f.ended:
	}
}

const ongoing = "Transaction is ongoing for the item"

// cancelled is the answer to a transaction that met others on the items in some positions.
func cancelled(met []bool) *answer {
	codes, reasons := make([]string, len(met)), make([]any, len(met))
	for i, m := range met {
		codes[i], reasons[i] = "None", object{"Code": "None"}
		if m {
			codes[i], reasons[i] = "TransactionConflict", object{"Code": "TransactionConflict", "Message": ongoing}
		}
	}
	return refusalWith("TransactionCanceledException", object{
		"Message": "Transaction cancelled, please refer cancellation reasons for specific reasons [" +
			strings.Join(codes, ", ") + "]",
		"CancellationReasons": reasons,
	})
}
