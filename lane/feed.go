package lane

import (
	"time"

	"github.com/runlane/runlane-go"
)

// FeedKept is the minimum number of latest commits that a storage with FeedsCommits keeps, over all its environments.
const FeedKept = 100_000

// FeedPosition is the place of a commit in a feed. Number grows from commit to commit. Tag is random and distinguishes
// commits with the same number in different feeds.
type FeedPosition struct {
	Number int64
	Tag    int64
}

// FeedQuery asks for commits of an Environment after a position that the storage returned in After.
type FeedQuery struct {
	Environment runlane.Environment
	After       FeedPosition
	// Again includes the commit at the position.
	Again bool
	// Limit is how many commits of all environments are examined, 1 or more.
	Limit int
}

// FeedPage is a part of a feed. Items are the commits of the environment.
type FeedPage struct {
	Items []FeedItem
	// Next is the position after all examined commits.
	Next FeedPosition
	// More: there were more to examine.
	More bool
}

// FeedItem is one commit: events First to Last of the run's history. RunID and CreatedAt identify the run, which may
// have been pruned since and its ID reused.
type FeedItem struct {
	// Position is after the one of the previous commit.
	Position    FeedPosition
	RunID       runlane.RunID
	CreatedAt   time.Time
	First, Last int64
}

// FeedLost returns the error of ReadFeed for a position that is no longer kept or not yet reached.
func FeedLost() error {
	return &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		Message: "the feed has nothing at this position: it is too old, or of another storage",
		Hint:    "begin again, and read the current runs from the list of runs",
	}
}
