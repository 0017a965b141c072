//go:build linux || darwin

package cli

import (
	"os"
	"syscall"
	"unsafe"
)

// terminalWidth asks the system for the columns of a stream's terminal. ok is false if the stream is not a terminal.
func terminalWidth(stream any) (width int, ok bool) {
	file, isFile := stream.(*os.File)
	if !isFile {
		return 0, false
	}
	var size struct{ rows, columns, x, y uint16 }
	_, _, failed := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	if failed != 0 {
		return 0, false
	}
	if size.columns == 0 {
		return defaultWidth, true
	}
	return int(size.columns), true
}
