package sqlitelane

import (
	"context"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
)

// names caches the numbers of environments and queues. Numbers never change.
type names struct {
	mu      sync.RWMutex
	numbers map[string]int64
	texts   map[int64]string
}

func (n *names) number(text string) (int64, bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	number, ok := n.numbers[text]
	return number, ok
}

func (n *names) text(number int64) (string, bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	text, ok := n.texts[number]
	return text, ok
}

func (n *names) remember(text string, number int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.numbers == nil {
		n.numbers, n.texts = map[string]int64{}, map[int64]string{}
	}
	n.numbers[text], n.texts[number] = number, text
}

// find returns the number of a name, 0 if no run or wakeup ever had it.
func (n *names) find(c *file.Conn, text string) (int64, error) {
	if number, ok := n.number(text); ok {
		return number, nil
	}
	return c.Number("SELECT id FROM names WHERE name = ?", text)
}

// known is find for readers. They see only committed rows, so it caches the number.
func (n *names) known(c *file.Conn, text string) (int64, error) {
	number, err := n.find(c, text)
	if number != 0 {
		n.remember(text, number)
	}
	return number, err
}

// ensure returns the number of a name. It is created if missing.
func (n *names) ensure(tx *file.Tx, text string) (int64, error) {
	number, err := n.find(tx.Conn, text)
	if err != nil || number != 0 {
		if _, known := n.number(text); !known && number != 0 {
			n.rememberIf(tx, text, number)
		}
		return number, err
	}
	if number, err = tx.Insert("INSERT INTO names(name) VALUES(?)", text); err == nil {
		n.rememberIf(tx, text, number)
	}
	return number, err
}

// rememberIf caches the number once the transaction is durable.
func (n *names) rememberIf(tx *file.Tx, text string, number int64) {
	tx.After(func(committed bool) {
		if committed {
			n.remember(text, number)
		}
	})
}

const selectEnvironments = `SELECT name FROM names WHERE EXISTS(SELECT 1 FROM runs WHERE env = names.id) ORDER BY name`

// Environments returns the environments with runs, sorted.
func (s *Storage) Environments(ctx context.Context) (found []runlane.Environment, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	err = s.read(ctx, false, func(c *file.Conn) error {
		found = nil
		return c.Each(selectEnvironments, func(row []driverValue) (bool, error) {
			found = append(found, runlane.Environment(text(row[0])))
			return true, nil
		})
	})
	return found, err
}

func (n *names) named(c *file.Conn, number int64) (string, error) {
	if text, ok := n.text(number); ok {
		return text, nil
	}
	row, err := c.One("SELECT name FROM names WHERE id = ?", number)
	if err != nil || row == nil {
		return "", err
	}
	text, _ := row[0].(string)
	return text, nil
}
