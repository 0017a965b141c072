package demo

import (
	"context"
	"fmt"
	"time"
)

// showProgress tells what a board shows until stop: on a terminal in one line that changes, elsewhere in a line now and
// then.
func (d *demo) showProgress(ctx context.Context, what string, b *board) (stop func()) {
	every := 2 * time.Second
	if d.Terminal {
		every = 100 * time.Millisecond
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	show := func(end string) {
		f := b.figures()
		line := fmt.Sprintf("%s: %d triggered, %d ended, %d attempts", what, f.runs, len(f.ended), f.attempts)
		if d.Terminal {
			line = "\r\x1b[K" + line // back to the start of the line, and clear it
		}
		fmt.Fprint(d.Stderr, line, end)
	}
	end := "\n"
	if d.Terminal {
		end = ""
	}
	go func() { // progress, until stop
		defer close(ended)
		for pause(ctx, every) {
			show(end)
		}
	}()
	return func() {
		cancel()
		<-ended
		show("\n")
	}
}
