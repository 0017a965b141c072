package embedded

import (
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// FuzzCursors gives cursors that no list made: they are refused, or made again as they are.
func FuzzCursors(f *testing.F) {
	scope := NewScope("List", "default", "filter")
	f.Add(string(scope.Cursor(Position{1, 5, "run_1"})))
	f.Add("")
	f.Add("AAAA")
	f.Add("AQEAAAAAAAAABXJ1bl8xs-k2-PRUkjO") // the bytes of one, with other bits behind them
	f.Fuzz(func(t *testing.T, cursor string) {
		_, after, err := OpenPage(&lane.PageQuery{After: runlane.Cursor(cursor)}, scope)
		if err == nil && after != nil && scope.Cursor(*after) != runlane.Cursor(cursor) {
			t.Fatalf("%q is read as %v", cursor, after)
		}
		if err == nil && after != nil {
			if _, _, err := OpenPage(&lane.PageQuery{After: runlane.Cursor(cursor)}, NewScope("List", "default")); err == nil {
				t.Fatalf("%q is a cursor of another list, too", cursor)
			}
		}
	})
}
