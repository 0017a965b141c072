package file

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
)

// The list of mounts escapes what would end a field.
func TestLists_PathsThatAreEscaped(t *testing.T) {
	t.Parallel()
	const list = "36 35 98:0 /a.db /srv/plain.db rw,noatime shared:1 - ext4 /dev/root rw\n" +
		`37 35 98:0 /a.db /srv/with\040space\134.db rw shared:1 - ext4 /dev/root rw` + "\n"
	for path, want := range map[string]bool{
		"/srv/plain.db": true, `/srv/with space\.db`: true, "/srv/other.db": false, "/srv": false, "/a.db": false,
	} {
		if got := listsMount(list, path); got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
}

// A statement that would never end does with its context, and the connection is as it was.
func TestWithin_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	f := openFile(t, options(t))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := f.Read(t.Context(), func(c *Conn) error {
		return c.Within(ctx, func() error {
			_, err := c.Number("WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) SELECT count(*) FROM c")
			return err
		})
	})
	if !errors.Is(err, runlane.ErrOperationCancelled) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := f.Read(t.Context(), func(c *Conn) error { _, err := c.Number("SELECT count(*) FROM t"); return err }); err != nil {
		t.Error(err)
	}
}
