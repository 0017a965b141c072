package file

import (
	"os"
	"strings"
	"syscall"
)

// networks are Linux's network file systems by their numbers in statfs(2).
var networks = map[uint32]string{
	0x6969:     "NFS",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB2",
	0x517b:     "SMB",
	0x01021997: "9P",
	0x00c36400: "Ceph",
	0x0bd00bd0: "Lustre", // the file system's name
	0x47504653: "GPFS",
	0x5346414f: "AFS",
	0x73757245: "Coda",
	0x7461636f: "OCFS2",
	0x01161970: "GFS2",
}

// fuse is the number of all file systems served by programs. Some are remote.
const fuse = 0x65735546

// local are the types of FUSE on a local disk.
var local = map[string]bool{
	"fuse": true, "fuseblk": true, "fuse.ntfs-3g": true, "fuse.exfat": true, "fuse.bindfs": true,
	"fuse.fuse-overlayfs": true,
	"fuse.mergerfs":       true, "fuse.gocryptfs": true, "fuse.encfs": true, "fuse.lxcfs": true, "fuse.grpcfuse": true,
	"fuse.osxfs": true,
}

// networkOfSystem returns the name of the network file system that holds the folder, "" for a local disk.
func networkOfSystem(folder string) string {
	var s syscall.Statfs_t
	if syscall.Statfs(folder, &s) != nil {
		return ""
	}
	kind := uint32(s.Type) // 32-bit numbers
	if kind != fuse {
		return networks[kind]
	}
	list, err := os.ReadFile(mounts)
	if err != nil {
		return ""
	}
	if name := typeOf(folder, string(list)); !local[name] {
		return name
	}
	return ""
}

// typeOf returns the type of the file system that holds the folder: that of the longest mount point above it, the last
// one if several are mounted over each other.
func typeOf(folder, list string) (name string) {
	longest := -1
	for line := range strings.Lines(list) {
		before, after, ok := strings.Cut(line, " - ")
		fields, kinds := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(kinds) == 0 {
			continue
		}
		point := strings.TrimSuffix(fields[4], "/")
		if len(point) >= longest && (folder == point || strings.HasPrefix(folder, point+"/")) {
			longest, name = len(point), kinds[0]
		}
	}
	return name
}
