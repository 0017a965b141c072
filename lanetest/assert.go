package lanetest

import (
	"errors"

	"github.com/runlane/runlane-go"
)

func asError(err error) (*runlane.Error, bool) { return errors.AsType[*runlane.Error](err) }

func isConflict(err error, kind runlane.ConflictKind) bool {
	e, ok := asError(err)
	return ok && e.Code == runlane.ErrStorageConflict && e.Conflict == kind
}
