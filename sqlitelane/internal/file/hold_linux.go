package file

import "os"

// nameOnly is O_PATH: closing such a descriptor keeps this process's locks on the file. Closing any other drops them.
const nameOnly = 0o10000000

// hold finds the file at path. No other file gets its inode number until held is closed.
func hold(path string) (info os.FileInfo, held *os.File, err error) {
	if held, err = os.OpenFile(path, nameOnly, 0); err != nil {
		return nil, nil, err
	}
	if info, err = held.Stat(); err != nil {
		_ = held.Close()
		return nil, nil, err
	}
	return info, held, nil
}
