package sqlite

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// network are the file systems that several machines may share, by the number that statfs reports. A FUSE file system may
// be local, and is refused all the same: nothing says which it is.
var network = map[int64]string{
	0x6969: "NFS", 0x517b: "SMB", 0xff534d42: "CIFS", 0xfe534d42: "SMB2", 0x01021997: "9p", 0x5346414f: "AFS", 0x6b414653: "AFS",
	0x73757245: "Coda", 0x00c36400: "Ceph", 0x0bd00bd0: "Lustre", 0x47504653: "GPFS", 0x01161970: "GFS2", 0x7461636f: "OCFS2",
	0x19830326: "BeeGFS", 0x65735546: "FUSE", 0x786f4256: "vboxsf", 0xaad7aaea: "PanFS", 0x013661: "OrangeFS",
}

func refuseNetwork(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("look at the file system of %s: %w", dir, err)
	}
	return onNetwork(dir, int64(uint32(st.Type)))
}

func onNetwork(dir string, magic int64) error {
	if kind, found := network[magic]; found {
		return &NetworkError{Path: dir, Kind: kind}
	}
	return nil
}
