package cli

import (
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/shown"
)

func (s *session) emit(kind string, value any) error {
	line, err := shown.Object(kind, value)
	if err != nil {
		return &runlane.Error{Code: runlane.ErrInternal, Message: "a result cannot be shown as JSON", Cause: err}
	}
	_, err = s.results.Write(append(line, '\n'))
	return err
}

func (s *session) line(format string, args ...any) {
	fmt.Fprintf(s.results, format+"\n", args...) // the writer keeps its error for run
}

// showNext shows how to get the next page.
func (s *session) showNext(next runlane.Cursor) error {
	switch {
	case next == "":
		return nil
	case s.json:
		return s.emit("page", shown.Page{Next: next})
	default:
		s.note("there is more: add --after '%s', or --all", next)
		return nil
	}
}
