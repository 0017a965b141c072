package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/runlane/runlane-go"
)

// A session of dev writes how to reach it into a file that only its owner can read, in the folder in which dev was
// started.
const (
	devFolder  = ".runlane"
	devFile    = "dev.json"
	devVersion = 1 // of the file and of what is said over the connection
	devMaxFile = 64 << 10
)

// devRecord is that file.
type devRecord struct {
	Version int       `json:"v"`
	Address string    `json:"address"`
	Token   string    `json:"token"`
	PID     int       `json:"pid"`
	Folder  string    `json:"folder"`
	Started time.Time `json:"started"`

	Environment runlane.Environment `json:"environment"`
}

func devPath(folder string) string { return filepath.Join(folder, devFolder, devFile) }

// callFolder is the folder of the call, from the root.
func (s *session) callFolder() (string, error) {
	if s.folder != "" {
		return filepath.Abs(s.folder)
	}
	return os.Getwd()
}

// findDev finds a running session of dev, in the folder of the call and in those above. nil: there is none.
func (s *session) findDev(ctx context.Context) (*devPeer, error) {
	folder, err := s.callFolder()
	if err != nil {
		return nil, nil //nolint:nilerr // a folder that was removed has no session
	}
	for {
		peer, err := s.dialDev(ctx, folder)
		if peer != nil || err != nil {
			return peer, err
		}
		above := filepath.Dir(folder)
		if above == folder {
			return nil, nil
		}
		folder = above
	}
}

// dialDev connects to the session of one folder. nil: there is none. It removes the file of a session that ended
// without cleaning up.
func (s *session) dialDev(ctx context.Context, folder string) (*devPeer, error) {
	record, err := readDevRecord(devPath(folder))
	if errors.Is(err, errNotPrivate) {
		s.note("ignored: %s may be another user's, or readable by others", devPath(folder))
		return nil, nil
	}
	if err != nil || record == nil {
		return nil, nil //nolint:nilerr // a file that cannot be read is no session
	}
	if record.Version != devVersion {
		return nil, usagef("use the program that it was started with, or start it again with this one",
			"the session of dev in %s is of another version", folder)
	}
	connection, err := dialRecord(ctx, record)
	switch {
	case err == nil:
		return &devPeer{record: record, link: newLink(connection)}, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &runlane.Error{
			Code:    runlane.ErrTransportUnavailable,
			Message: fmt.Sprintf("the session of dev in %s does not answer", folder),
			Hint: fmt.Sprintf(
				"is its process %d stopped? Let it go on, or end it; --table NAME chooses another lane",
				record.PID,
			),
		}
	default: // no process listens there, or another one does
		s.note("the session of dev in %s has ended without removing its file", folder)
		forgetDev(folder, record.Token)
		return nil, nil
	}
}

var errNotPrivate = errors.New("not private")

// readDevRecord reads a session's file, if no other user can have written or read it.
func readDevRecord(path string) (*devRecord, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	if !private(info) {
		return nil, errNotPrivate
	}
	text, err := io.ReadAll(io.LimitReader(file, devMaxFile))
	if err != nil {
		return nil, err
	}
	var record devRecord
	if err := json.Unmarshal(text, &record); err != nil {
		return nil, err
	}
	return &record, nil
}

// dialRecord connects, and makes sure that both sides know the token.
func dialRecord(ctx context.Context, record *devRecord) (net.Conn, error) {
	address, err := netip.ParseAddrPort(record.Address)
	if err != nil || !address.Addr().IsLoopback() {
		return nil, errors.New("the address is not of this machine")
	}
	dialer := net.Dialer{Timeout: introduceTime}
	connection, err := dialer.DialContext(ctx, "tcp", address.String())
	if err != nil {
		return nil, err
	}
	unhook := context.AfterFunc(ctx, func() { _ = connection.Close() })
	defer unhook()
	if err := introduce(connection, record.Token); err != nil {
		_ = connection.Close()
		return nil, err
	}
	return connection, nil
}

// announce writes the file of a session, complete at once and never over another one's.
func announce(record *devRecord) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	path := devPath(record.Folder)
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	draft := path + "." + rand.Text()
	defer os.Remove(draft)
	if err := os.WriteFile(draft, text, 0o600); err != nil {
		return err
	}
	err = os.Link(draft, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, taken := os.Lstat(path); taken == nil { // without hard links there, two that begin at once may both pass here
		return fs.ErrExist
	}
	return os.Rename(draft, path)
}

// forgetDev removes a session's file, but not the file of another session.
func forgetDev(folder, token string) {
	path := devPath(folder)
	if record, err := readDevRecord(path); err == nil && record != nil && record.Token == token {
		_ = os.Remove(path)
		_ = os.Remove(filepath.Dir(path)) // stays if there is anything else in it
	}
}

// refusesDev says why a session cannot be announced in a folder.
func refusesDev(folder string, err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	} else if link, ok := errors.AsType[*os.LinkError](err); ok {
		err = link.Err
	}
	const next = "start it in a folder that you may write into"
	return usagef(next, "%s cannot be written: %v", devPath(folder), err)
}
