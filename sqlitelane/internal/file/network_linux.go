package file

import "syscall"

// networks are the file systems of Linux that another machine serves, by their numbers in statfs(2).
var networks = map[uint32]string{
	0x6969:     "NFS",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB2",
	0x517b:     "SMB",
	0x01021997: "9P",
	0x00c36400: "Ceph",
	0x0bd00bd0: "Lustre", //nolint:misspell // its name
	0x47504653: "GPFS",
	0x5346414f: "AFS",
	0x73757245: "Coda",
	0x7461636f: "OCFS2",
	0x01161970: "GFS2",
}

// networkOf names the network file system that holds a folder, "" for a disk of this machine.
func networkOf(folder string) string {
	var s syscall.Statfs_t
	if syscall.Statfs(folder, &s) != nil {
		return ""
	}
	return networks[uint32(s.Type)] //nolint:gosec // the numbers have 32 bits
}
