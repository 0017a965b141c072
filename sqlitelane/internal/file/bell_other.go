//go:build !linux

package file

import "errors"

// bell exists only on Linux. Elsewhere idle processes poll the file.
type bell struct{}

func newBell(string) (*bell, error) { return nil, errors.ErrUnsupported }

func ring(string) error { return nil }

func (*bell) wait() error { return errors.ErrUnsupported }

func (*bell) close() error { return nil }
