package core

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

type markKey struct{}

func TestDetachedContext_OutlivesItsParentAndEndsByItself(t *testing.T) {
	t.Parallel()
	for _, listen := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			parent, cancel := context.WithCancel(context.WithValue(context.Background(), markKey{}, "kept"))
			c := new(detachedContext).start(parent, 5*time.Second)
			defer c.stop()
			if listen {
				child, cancelChild := context.WithCancel(c)
				defer cancelChild()
				context.AfterFunc(child, func() {})
			}
			cancel()
			if c.Err() != nil {
				t.Fatalf("ended with its parent: %v", c.Err())
			}
			if listen && (c.Value(markKey{}) != "kept" || context.Cause(c) != nil) {
				t.Fatalf("the parent's values are gone, or its cause came along: %v", context.Cause(c))
			}
			if deadline, ok := c.Deadline(); !ok || time.Until(deadline) != 5*time.Second {
				t.Fatalf("deadline in %s", time.Until(deadline))
			}
			timer := time.NewTimer(5 * time.Second)
			<-timer.C
			if listen {
				<-c.Done()
			}
			if !errors.Is(c.Err(), context.DeadlineExceeded) {
				t.Fatalf("error is %v", c.Err())
			}
		})
	}
}

func TestDetachedContext_StopIsSeenByThoseWhoListenLater(t *testing.T) {
	t.Parallel()
	c := new(detachedContext).start(context.Background(), time.Hour)
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
	c.stop()
	if !errors.Is(c.Err(), context.Canceled) {
		t.Fatalf("error is %v", c.Err())
	}
	<-c.Done()
}
