package main

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// place is the temporary folder of one call: data of servers, files of SQLite. remove takes it away.
type place struct{ dir string }

func newPlace(parent string) (*place, error) {
	dir, err := os.MkdirTemp(parent, "peers-")
	if err != nil {
		return nil, err
	}
	// A server under another account has to get through to its folder; only the owner may write here.
	if err := os.Chmod(dir, 0o711); err != nil { // for that server
		return nil, err
	}
	return &place{dir: dir}, nil
}

func (p *place) remove() error { return os.RemoveAll(p.dir) }

// folder makes a folder that belongs to the account, or to us where that is nil.
func (p *place) folder(name string, owner *account) (string, error) {
	dir := filepath.Join(p.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	if owner != nil {
		if err := os.Chown(dir, int(owner.user), int(owner.group)); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// account is who a server runs as.
type account struct{ user, group uint32 }

// serverAccount is nil, our own, unless we are root, which PostgreSQL refuses to be: then it is another one of this
// machine.
func serverAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil // nil is our own account
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUser := strconv.ParseUint(found.Uid, 10, 32)
		gid, errGroup := strconv.ParseUint(found.Gid, 10, 32)
		if errUser == nil && errGroup == nil {
			return &account{user: uint32(uid), group: uint32(gid)}, nil
		}
	}
	return nil, unavailable(
		"PostgreSQL does not run as root, and this machine has no account postgres or nobody to run it as",
	)
}

// fsyncTime is the median time of writing 4 KiB and waiting until it is on disk, in the folder.
func (p *place) fsyncTime() (median time.Duration, err error) {
	file, err := os.Create(filepath.Join(p.dir, "fsync"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	page := make([]byte, 4096)
	times := make([]time.Duration, 0, 50)
	for range cap(times) {
		if _, err := file.Write(page); err != nil {
			return 0, err
		}
		began := time.Now()
		if err := file.Sync(); err != nil {
			return 0, fmt.Errorf("fsync: %w", err)
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}
