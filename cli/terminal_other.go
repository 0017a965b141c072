//go:build !linux && !darwin

package cli

import "os"

// terminalWidth assumes that a character device is a terminal of 80 columns.
func terminalWidth(stream any) (width int, ok bool) {
	file, isFile := stream.(*os.File)
	if !isFile {
		return 0, false
	}
	info, err := file.Stat()
	return defaultWidth, err == nil && info.Mode()&os.ModeCharDevice != 0
}
