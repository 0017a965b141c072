package file

import (
	"os"
	"syscall"
)

// bell notifies every process that uses the file: ringing sets the file's time, and inotify reports it to the
// watchers. Idle processes use no CPU until then.
type bell struct {
	events *os.File
	room   [4096]byte
}

func newBell(path string) (*bell, error) {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	if _, err := syscall.InotifyAddWatch(fd, path, syscall.IN_ATTRIB); err != nil {
		_ = syscall.Close(fd)
		return nil, err
	}
	return &bell{events: os.NewFile(uintptr(fd), "inotify")}, nil // not negative
}

// ring notifies the watchers. It sets the system clock's time: any user who may write the file may set that, but only
// the owner any other.
func ring(path string) error {
	now := syscall.Timespec{Nsec: 1<<30 - 1} // UTIME_NOW
	return syscall.UtimesNano(path, []syscall.Timespec{now, now})
}

// wait returns when the bell has rung since the last call, or with an error after close.
func (b *bell) wait() error {
	_, err := b.events.Read(b.room[:])
	return err
}

func (b *bell) close() error { return b.events.Close() }
