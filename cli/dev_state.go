package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/runlane/runlane-go/lane"
)

// devFolder is the folder in a project for data of its dev sessions. devStateFile in it holds their runs.
const (
	devFolder    = ".runlane"
	devStateFile = "dev.db"
)

// callFolder returns the absolute folder of the call.
func (s *session) callFolder() (string, error) {
	if s.folder != "" {
		return filepath.Abs(s.folder)
	}
	return os.Getwd()
}

// refusesDev is the error of a folder in which a session cannot keep anything.
func refusesDev(folder string, err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	const next = "start it in a folder that you may write into"
	return usagef(next, "%s cannot be written: %v", filepath.Join(folder, devFolder), err)
}

// chooseDevState sets the lane of a dev session to a file of the project, if none is configured.
func (s *session) chooseDevState(folder string, memory bool) error {
	if memory {
		return errors.Join(s.makeDevKey(), s.setLane(inMemory))
	}
	if s.getenv(lane.Variable) != "" {
		return nil
	}
	if err := os.Mkdir(filepath.Join(folder, devFolder), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return refusesDev(folder, err)
	}
	if s.folder == "" {
		folder = "" // so that messages show a relative path
	}
	if err := errors.Join(s.useDevKey(folder), s.makeDevKey()); err != nil {
		return err
	}
	s.keepsFile = true
	return s.setLane(fileLane + filepath.Join(folder, devFolder, devStateFile))
}

// leaveDevFolder ends a session. Without runs it removes the session's files; otherwise the binary stays for the next
// one.
func leaveDevFolder(folder string) {
	inside := filepath.Join(folder, devFolder)
	if _, err := os.Stat(filepath.Join(inside, devStateFile)); errors.Is(err, fs.ErrNotExist) {
		_ = os.RemoveAll(filepath.Join(inside, devProgram))
		_ = os.Remove(inside) // fails if anything is left in it
	}
}

// findDevState makes a command use the file of dev in the folder of the call or in a parent.
func (s *session) findDevState() error {
	folder, err := s.callFolder()
	if err != nil {
		return nil //nolint:nilerr // a removed folder has no file
	}
	for called := folder; ; {
		path := filepath.Join(folder, devFolder, devStateFile)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			s.choice, s.devAbove = "the file of dev in "+folder, folder != called
			if err := s.useDevKey(folder); err != nil {
				return err
			}
			return s.setLane(fileLane + path)
		}
		above := filepath.Dir(folder)
		if above == folder {
			return nil
		}
		folder = above
	}
}
