package lane

import (
	"time"

	"github.com/runlane/runlane-go"
)

// FeedKept is how many of the latest commits a storage that feeds commits keeps at least, over all its environments.
const FeedKept = 100_000

// FeedPosition is the place of a commit in a feed.
type FeedPosition struct {
	// Number grows from commit to commit.
	Number int64
	// Tag is random. It tells the commit from one that has its number in another feed.
	Tag int64
}

// FeedQuery asks for commits behind a position.
type FeedQuery struct {
	// Environment whose commits are meant.
	Environment runlane.Environment
	// After is a position that the storage returned.
	After FeedPosition
	// Again asks for the commit at the position, too.
	Again bool
	// Limit is how many commits of all environments are looked at, 1 or more.
	Limit int
}

// FeedPage is a part of a feed.
type FeedPage struct {
	// Items are the commits of the environment.
	Items []FeedItem
	// Next is the position behind everything that was looked at.
	Next FeedPosition
	// More says that there was more to look at.
	More bool
}

// FeedItem is one commit: its events are First to Last of the run's history.
type FeedItem struct {
	// Position is behind that of the commit before.
	Position FeedPosition
	// RunID and CreatedAt name the run. It may have been pruned since, and its id used again.
	RunID runlane.RunID
	// CreatedAt, see RunID.
	CreatedAt time.Time
	// First and Last are sequences of the run's events.
	First, Last int64
}

// FeedLost is the error of ReadFeed for a position that is not kept any more, or not yet reached.
func FeedLost() error {
	return &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		Message: "the feed has nothing at this position: it is too old, or of another storage",
		Hint:    "begin anew, and read what runs are now from the list of runs",
	}
}
