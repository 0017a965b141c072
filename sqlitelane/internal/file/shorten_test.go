package file

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
)

// One read is always under way: each ends when the other has begun.
func TestLog_UnderOverlappingReads_IsBounded(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Readers = 2
	f := openFile(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	began := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	var reading sync.WaitGroup
	first := make(chan struct{})
	for i := range began {
		reading.Go(func() {
			read := func(c *Conn) error {
				if _, err := c.Exec("BEGIN"); err != nil {
					return err
				}
				_, err := c.Number("SELECT count(*) FROM t")
				select {
				case began[i] <- struct{}{}: // the other one may end
				case <-ctx.Done():
				}
				select {
				case <-began[1-i]:
				case <-ctx.Done():
				}
				if _, ended := c.Exec("ROLLBACK"); err == nil {
					err = ended
				}
				return err
			}
			if i == 1 { // half a read behind
				select {
				case <-began[0]:
					close(first)
				case <-ctx.Done():
				}
			}
			for ctx.Err() == nil {
				if err := f.Read(context.WithoutCancel(ctx), read); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	<-first
	most, text := int64(0), strings.Repeat("x", 1<<20)
	for range 240 {
		err := f.Write(t.Context(), func(tx *Tx) error { return tx.Exec("INSERT OR REPLACE INTO t(n, x) VALUES(1, ?)", text) })
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(f.path + logEnding)
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, info.Size())
	}
	cancel()
	reading.Wait()
	if most > mostLog+moreLog {
		t.Errorf("the log grew to %d MB", most>>20)
	}
}
