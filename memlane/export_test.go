package memlane

import (
	"unique"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Plant appends an event as a newer version would have written it.
func (s *Storage) Plant(key lane.RunKey, body runlane.EventBody) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(key.Environment).run(key.RunID)
	e.state.Sequence++
	e.events = append(e.events, event{at: e.state.UpdatedAt, actor: unique.Make(runlane.SystemActor), body: body})
}

// Note keeps so many commits of a run in the feed.
func (s *Storage) Note(n int) {
	t := &lane.Transition{Projected: &runlane.Run{ID: "run"}}
	for range n {
		s.feed.note(&entry{id: "run", unpacked: &unpacked{}}, t)
	}
}
