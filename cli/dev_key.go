package cli

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/runlane/runlane-go/core"
)

// devKeyFile keeps the key of the answer tokens of a project's sessions of dev, beside the file of their runs.
const devKeyFile = "token-keys"

// makeDevKey makes a key for a session's answer tokens, where the program was given none.
func (s *session) makeDevKey() error {
	if s.getenv(core.TokenKeysVariable) != "" {
		return nil
	}
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil { // it cannot fail, see crypto/rand
		return err
	}
	s.devKey = base64.StdEncoding.EncodeToString(key)
	return s.setenv(core.TokenKeysVariable, s.devKey)
}

// keepDevKey writes a new key beside the file of the runs that have tokens of it, if the program made that file.
func (s *session) keepDevKey(folder string) error {
	made, err := os.Stat(filepath.Join(folder, devFolder, devStateFile))
	if err != nil || !made.Mode().IsRegular() || s.devKey == "" {
		return nil //nolint:nilerr // runs of another place end with their key
	}
	path := filepath.Join(folder, devFolder, devKeyFile)
	if err := os.WriteFile(path, []byte(s.devKey+"\n"), 0o600); err != nil {
		return unusableKey(path, err)
	}
	return nil
}

// useDevKey gives the program the key of the project's answer tokens, if there is one and it was given no other.
func (s *session) useDevKey(folder string) error {
	path := filepath.Join(folder, devFolder, devKeyFile)
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || s.getenv(core.TokenKeysVariable) != "":
		return nil
	case err == nil:
		err = s.setenv(core.TokenKeysVariable, strings.TrimSpace(string(text)))
	}
	if err != nil {
		return unusableKey(path, err)
	}
	return nil
}

func unusableKey(path string, err error) error {
	next := "look at the file, or set " + core.TokenKeysVariable
	return usagef(next, "the key of answer tokens in %s cannot be used: %v", path, err)
}
