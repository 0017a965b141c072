//go:build !linux

package file

import "errors"

// bell exists on Linux alone; elsewhere idle processes look at the file often.
type bell struct{}

func newBell(string) (*bell, error) { return nil, errors.ErrUnsupported }

func ring(string) error { return nil }

func (*bell) wait() error { return errors.ErrUnsupported }

func (*bell) close() error { return nil }
