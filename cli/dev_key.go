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

// devKeyFile holds the key for answer tokens of a project's dev sessions, next to the file of their runs.
const devKeyFile = "token-keys"

// makeDevKey makes a key for answer tokens, unless the program has one.
func (s *session) makeDevKey() error {
	if s.getenv(core.TokenKeysVariable) != "" {
		return nil
	}
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil { // cannot fail, see crypto/rand
		return err
	}
	s.devKey = base64.StdEncoding.EncodeToString(key)
	return s.setenv(core.TokenKeysVariable, s.devKey)
}

// keepDevKey saves a new key next to the file of runs that depend on it, if the program created that file.
func (s *session) keepDevKey(folder string) error {
	made, err := os.Stat(filepath.Join(folder, devFolder, devStateFile))
	if err != nil || !made.Mode().IsRegular() || s.devKey == "" {
		return nil //nolint:nilerr // runs elsewhere do not outlive their key
	}
	path := filepath.Join(folder, devFolder, devKeyFile)
	if err := os.WriteFile(path, []byte(s.devKey+"\n"), 0o600); err != nil {
		return unusableKey(path, err)
	}
	return nil
}

// useDevKey loads the project's key for answer tokens, if it exists and the program has no other.
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
