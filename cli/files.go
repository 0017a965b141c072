package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

func (s *session) path(name string) string {
	if s.folder == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(s.folder, name)
}

// openFile opens a file from the command line. Its error does not repeat the name.
func (s *session) openFile(name string) (io.ReadCloser, error) {
	file, err := os.Open(s.path(name))
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, path.Err
	}
	return file, err
}

func (s *session) readFile(name string) ([]byte, error) {
	file, err := s.input(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxInput+1))
}
