package file

import (
	"context"
	"sync"
	"time"
)

const (
	// lookOften is how often an idle process looks whether another one wrote the file, where the system does not tell.
	lookOften = 10 * time.Millisecond
	// lookSeldom is how often it looks where the system tells: a process may die between a commit and the bell.
	lookSeldom = time.Second
)

// Ring makes the processes that watch the file look at it once the batch is durable.
func (tx *Tx) Ring() { tx.rings = true }

// Watch calls changed whenever the file may have been written by another process, until the context or the file ends.
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
