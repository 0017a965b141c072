package sqlitelane

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// NewStorage is another process's storage over a file, whose clock is ahead.
func NewStorage(path string, ahead time.Duration) *Storage {
	s := newStorage(file.Options{Path: path, Schema: schema, Application: applicationID, Format: format, Readers: 2})
	s.now = func() time.Time { return time.Now().Add(ahead) }
	return s
}

// Path is where the file is.
func (s *Storage) Path() string { return s.options.Path }

// SetHandBack shortens the pause of a wakeup that was handed back.
func (t *Transport) SetHandBack(d time.Duration) { t.handBack = d }

// Plant appends an event as a newer version would have written it.
func (s *Storage) Plant(key lane.RunKey, body runlane.EventBody) error {
	return s.write(context.Background(), func(t *tx) error {
		_, e, err := t.run(key.Environment, key.RunID)
		if err != nil {
			return err
		}
		event := runlane.Event{
			RunID: key.RunID, Environment: key.Environment, OccurredAt: e.Run.UpdatedAt, Actor: runlane.SystemActor, Body: body,
		}
		if e.Events, err = record.AppendEvent(e.Events, &event, record.At(e.Run.CreatedAt)); err != nil {
			return err
		}
		e.Run.EventSequence++
		return t.save(e)
	})
}
