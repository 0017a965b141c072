package lives

import (
	"fmt"
	"maps"
	"time"

	"github.com/runlane/runlane-go"
)

// creation is a run, of those that have had its id.
type creation struct {
	id runlane.RunID
	at int64 // in milliseconds
}

func creationOf(run *runlane.Run) creation { return creation{run.ID, run.CreatedAt.UnixMilli()} }

// part is one of a run's program.
type part struct {
	run  creation
	name string
}

// sending is a signal that was sent, however that ended.
type sending struct {
	run      runlane.RunID
	name, id string
	n        int
}

// memory is what runs with programs have to remember. The book's lock guards it.
type memory struct {
	counted  int
	told     map[part]any
	began    map[part]time.Time
	returned map[creation]map[string]bool
	sent     map[int]sending
	consumed map[int]part
	found    []string
}

func newMemory() memory {
	return memory{
		told:     map[part]any{},
		began:    map[part]time.Time{},
		returned: map[creation]map[string]bool{},
		sent:     map[int]sending{},
		consumed: map[int]part{},
	}
}

// number is one that no other call returns.
func (b *book) number() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counted++
	return b.counted
}

// finds notes what is wrong: a handler cannot end the life.
func (b *book) finds(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.found = append(b.found, fmt.Sprintf(format, args...))
}

// faults are what was found.
func (b *book) faults() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.memory.found
}

// told judges what a part of a program was told: the same in every attempt.
func (b *book) told(run creation, name string, what any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := part{run, name}
	if before, known := b.memory.told[key]; known && before != what {
		b.found = append(b.found, fmt.Sprintf("part %s of run %s was told %v, and then %v", name, run.id, before, what))
	}
	b.memory.told[key] = what
}

// begins is when a part of a program began first.
func (b *book) begins(run creation, name string, now time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := part{run, name}
	if _, known := b.began[key]; !known {
		b.began[key] = now
	}
	return b.began[key]
}

// remembers notes a step whose result a handler has: no attempt from now on executes it.
func (b *book) remembers(run creation, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.returned[run] == nil {
		b.returned[run] = map[string]bool{}
	}
	b.returned[run][name] = true
}

func (b *book) remembered(run creation) map[string]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.returned[run])
}

// sends notes a signal before it is sent.
func (b *book) sends(s sending) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.memory.sent[s.n] = s
}

// accepted notes that a sender was told that a signal is kept.
func (b *book) accepts(id runlane.RunID, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entry(id).accepted[name] = true
	b.touched[id] = true
}

// accepted reports that one was.
func (b *book) accepted(id runlane.RunID, name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.entry(id).accepted[name]
}

// consumed judges a signal that ended a wait: it was sent to this run under this name, and ends no other wait.
func (b *book) consumed(run creation, wait, name string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, known := b.memory.sent[n]
	if !known || s.run != run.id || s.name != name {
		what := fmt.Sprintf("the wait %s of run %s got the signal %d, which was %+v", wait, run.id, n, s)
		b.found = append(b.found, what)
	}
	key := part{run, wait}
	if other, twice := b.memory.consumed[n]; twice && other != key {
		b.found = append(b.found, fmt.Sprintf("the signal %d ended the waits %v and %v", n, other, key))
	}
	b.memory.consumed[n] = key
}
