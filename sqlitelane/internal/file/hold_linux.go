package file

import "os"

// nameOnly is O_PATH: closing such a descriptor does not end the locks of this process on the file. Closing any other
// does.
const nameOnly = 0o10000000

// hold finds the file at path. Its number belongs to no other file until held is closed.
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
