package file

import (
	"errors"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
)

func TestTypeOf_ReadsTheListOfMounts(t *testing.T) {
	t.Parallel()
	const list = `22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 22 0:40 / /data rw - fuse.sshfs me@there:/data rw
41 40 0:41 / /data/disk rw,nosuid shared:7 master:1 - fuse.bindfs /disk rw
42 22 0:42 / /database rw - nfs4 there:/ rw
43 22 0:43 / /twice rw - ext4 /dev/vdb rw
44 43 0:44 / /twice rw - fuse.s3fs bucket rw
broken
`
	for folder, want := range map[string]string{
		"/": "ext4", "/srv/x": "ext4", "/data": "fuse.sshfs", "/data/x": "fuse.sshfs", "/data/disk/x": "fuse.bindfs",
		"/database": "nfs4", "/datab": "ext4", "/twice/x": "fuse.s3fs",
	} {
		if got := typeOf(folder, list); got != want {
			t.Errorf("%s is on %s, want %s", folder, got, want)
		}
	}
}

// A folder on a network is refused before anything is made in it.
func TestOpen_OnANetwork_IsRefused(t *testing.T) {
	t.Parallel()
	o := options(t)
	asked := ""
	o.Network = func(folder string) string { asked = folder; return "NFS" }
	_, err := Open(o)
	e, ok := errors.AsType[*runlane.Error](err)
	if !ok || e.Code != runlane.ErrConfigurationInvalid || e.Hint == "" || !strings.Contains(e.Message, "network file system (NFS)") {
		t.Fatal(err)
	}
	if asked == "" || strings.HasSuffix(asked, ".db") {
		t.Error("asked for", asked)
	}
	o.Network = nil
	openFile(t, o) // this one's disk is local
}
