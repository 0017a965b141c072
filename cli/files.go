package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// path is a name as the caller means it: from the folder of the call.
func (s *session) path(name string) string {
	if s.folder == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(s.folder, name)
}

// openFile opens a file that the command line names. The error says what is wrong without repeating the name.
func (s *session) openFile(name string) (io.ReadCloser, error) {
	file, err := os.Open(s.path(name))
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, path.Err
	}
	return file, err
}

// readFile reads a payload's file.
func (s *session) readFile(name string) ([]byte, error) {
	file, err := s.input(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxInput+1))
}
