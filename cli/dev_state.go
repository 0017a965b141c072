package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/runlane/runlane-go/lane"
)

// devFolder is a project's folder for what its sessions of dev keep. devStateFile in it has their runs.
const (
	devFolder    = ".runlane"
	devStateFile = "dev.db"
)

// callFolder is the folder of the call, from the root.
func (s *session) callFolder() (string, error) {
	if s.folder != "" {
		return filepath.Abs(s.folder)
	}
	return os.Getwd()
}

// refusesDev says why a session cannot keep anything in a folder.
func refusesDev(folder string, err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	const next = "start it in a folder that you may write into"
	return usagef(next, "%s cannot be written: %v", filepath.Join(folder, devFolder), err)
}

// chooseDevState names the lane of a session of dev, where nothing else does: a file of the project.
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
		folder = "" // as people write it
	}
	if err := errors.Join(s.useDevKey(folder), s.makeDevKey()); err != nil {
		return err
	}
	s.keepsFile = true
	return s.setLane(fileLane + filepath.Join(folder, devFolder, devStateFile))
}

// leaveDevFolder is the end of a session: beside runs that are kept, the program stays for the next one; without any,
// nothing does.
func leaveDevFolder(folder string) {
	inside := filepath.Join(folder, devFolder)
	if _, err := os.Stat(filepath.Join(inside, devStateFile)); errors.Is(err, fs.ErrNotExist) {
		_ = os.RemoveAll(filepath.Join(inside, devProgram))
		_ = os.Remove(inside) // stays if there is anything in it
	}
}

// findDevState lets a command work on the file of dev in the folder of the call, or in one above it, also while a
// session of dev works on it.
func (s *session) findDevState() error {
	folder, err := s.callFolder()
	if err != nil {
		return nil //nolint:nilerr // a folder that was removed has no file
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
