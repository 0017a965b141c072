package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/runlane/runlane-go/lane"
)

// devStateFile keeps the runs of a project's sessions of dev, beside what announces a session.
const devStateFile = "dev.db"

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

// findDevState lets a command work on the file that sessions of dev left in the folder of the call, or in one above it.
func (s *session) findDevState() error {
	folder, err := s.callFolder()
	if err != nil {
		return nil //nolint:nilerr // a folder that was removed has no file
	}
	for {
		path := filepath.Join(folder, devFolder, devStateFile)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			s.choice = "the file of dev in " + folder
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
