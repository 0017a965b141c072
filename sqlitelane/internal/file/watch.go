package file

import (
	"context"
	"sync"
	"time"
)

const (
	// lookOften is how often an idle process looks for writes of others where the system sends no notifications.
	lookOften = 10 * time.Millisecond
	// lookSeldom is how often it looks otherwise: a process may die between a commit and the bell.
	lookSeldom = time.Second
)

// Ring notifies the watchers of the file once the batch is durable.
func (tx *Tx) Ring() { tx.rings = true }

// Watch calls changed whenever another process may have written the file, until the context or the file ends.
func (f *File) Watch(ctx context.Context, changed func()) {
	every, rung := lookOften, make(chan struct{}, 1)
	var listening sync.WaitGroup
	defer listening.Wait()
	if f.deaf {
		every = lookSeldom
	} else if b, err := newBell(f.path); err == nil {
		every = lookSeldom
		defer func() { _ = b.close() }()
		listening.Go(func() { // ends with the bell
			for b.wait() == nil {
				select {
				case rung <- struct{}{}:
				default:
				}
			}
		})
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.done:
			return
		case <-rung:
			changed()
		case <-tick.C:
			if is, err := f.Changed(); err == nil && is {
				changed()
			}
		}
	}
}
