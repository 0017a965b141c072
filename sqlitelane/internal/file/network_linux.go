package file

import (
	"os"
	"strings"
	"syscall"
)

// networks are the file systems of Linux that another machine serves, by their numbers in statfs(2).
var networks = map[uint32]string{
	0x6969:     "NFS",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB2",
	0x517b:     "SMB",
	0x01021997: "9P",
	0x00c36400: "Ceph",
	0x0bd00bd0: "Lustre", // its name
	0x47504653: "GPFS",
	0x5346414f: "AFS",
	0x73757245: "Coda",
	0x7461636f: "OCFS2",
	0x01161970: "GFS2",
}

// fuse is the number of every file system that a program serves, some of them from other machines.
const fuse = 0x65735546

// local are those of them that are a disk of this machine.
var local = map[string]bool{
	"fuse": true, "fuseblk": true, "fuse.ntfs-3g": true, "fuse.exfat": true, "fuse.bindfs": true,
	"fuse.fuse-overlayfs": true,
	"fuse.mergerfs":       true, "fuse.gocryptfs": true, "fuse.encfs": true, "fuse.lxcfs": true, "fuse.grpcfuse": true,
	"fuse.osxfs": true,
}

// networkOfSystem names the network file system that holds a folder, "" for a disk of this machine.
func networkOfSystem(folder string) string {
	var s syscall.Statfs_t
	if syscall.Statfs(folder, &s) != nil {
		return ""
	}
	kind := uint32(s.Type) // the numbers have 32 bits
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

// typeOf is the type of the file system that holds a folder, by the list of mounts: that of the longest mount point
// above it, the last one where several are mounted over each other.
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
