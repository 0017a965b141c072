package dynamostore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/runlane/runlane-go"
)

// format is the number of the format in which items are stored (docs/compatibility.md). An item of another one says so in its
// attribute v; without it, an item is of format 1. That of a run item speaks for everything below the run's key.
const format = 1

const attrFormat = "v"

// errNewer is the cause of every refusal of what a newer program wrote.
var errNewer = errors.New("written by a newer program")

// newer reports an item that this program may neither interpret nor change. What is no number it cannot know either.
func newer(it item) bool {
	v, numbered := it[attrFormat]
	return numbered && (number(v) < 1 || number(v) > format)
}

// refuseNewer is the error of whoever needs such an item.
func refuseNewer(it item) error {
	e := &runlane.Error{
		Code: runlane.ErrInvariantViolation, Cause: errNewer, Hint: "update this program; nothing was changed",
		Message: fmt.Sprintf("stored item is of format %d, this program reads up to %d", number(it[attrFormat]), format),
	}
	if pk := textOf(it[attrPK]); strings.Contains(pk, ":run:") {
		key, _ := parseRunPK(pk)
		e.RunID = key.RunID
	}
	return e
}
