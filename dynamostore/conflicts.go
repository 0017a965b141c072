package dynamostore

import (
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

func notFound(key lane.RunKey) error {
	return &runlane.Error{
		Code: runlane.ErrRunNotFound, Message: "no such run", RunID: key.RunID,
		Meta: map[string]string{"environment": key.Environment.Name()},
	}
}

func ownerNotFound() error {
	return &runlane.Error{Code: runlane.ErrRunNotFound, Message: "no run owns this key"}
}

func conflict(kind runlane.ConflictKind, run runlane.RunID, format string, args ...any) *runlane.Error {
	e := runlane.NewConflict(kind, fmt.Sprintf(format, args...))
	e.RunID = run
	return e
}
