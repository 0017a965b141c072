package runlane

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Bounds of waits.
const (
	MaxWaitNames       = 32
	MaxSignalNameBytes = 64
	// MaxPromptBytes bounds the question of a wait for input.
	MaxPromptBytes = 160

	// keptWaitBytes bounds names and prompt of a wait stored with a run, and keptWaitNames the number of its names, so
	// that a waiting run stays as small as an executing one.
	keptWaitBytes = 200
	keptWaitNames = 3
)

// Waiting describes what a suspended run waits for. The first event of a kind in For ends the wait, and so does an
// operator's resumption; the handler then runs again from its beginning. It belongs to the run's last event; any next
// event ends it.
type Waiting struct {
	// For lists the kinds, each once, in the order of [WaitingKinds].
	For []WaitingFor `json:"for"`
	// Names of the signals and calls. Empty if [WaitingAnything] is among the kinds.
	Names []string `json:"names,omitempty"`
	// All: a signal of each name is needed, not of any.
	All bool `json:"all,omitempty"`
	// Need is the number of other runs that must still end.
	Need int `json:"need,omitempty"`
	// Until is when the wait ends by itself. Zero: never.
	Until time.Time `json:"until,omitzero"`
	// Prompt is the question to a person; for a blocked run, the operator's task.
	Prompt string `json:"prompt,omitempty"`
	// Questions are all prompts, ordered by name, if several calls of the attempt have one; Prompt is the first of
	// them. They are cut to the space that the run has for them. Use [Waiting.Asks] to read them.
	Questions []Question `json:"questions,omitempty"`
	// Schemas are JSON Schemas of signal bodies, by signal name; see [Signal.WithSchema].
	Schemas map[string]json.RawMessage `json:"schemas,omitempty"`
}

// Question is the prompt of one of several waits.
type Question struct {
	// Name of the wait; if it waits for one signal, the signal's name. "" for a blocked run.
	Name   string `json:"name,omitempty"`
	Prompt string `json:"prompt"`
}

// WaitingFor is a kind of wait.
type WaitingFor string

// The kinds.
const (
	// WaitingSignal ends with a signal of one of the names.
	WaitingSignal WaitingFor = "signal"
	// WaitingInput is a wait for a signal with a prompt: a person answers.
	WaitingInput WaitingFor = "input"
	// WaitingChildren ends when the runs called by this run have ended.
	WaitingChildren WaitingFor = "children"
	// WaitingEnds ends when other runs have ended.
	WaitingEnds WaitingFor = "ends"
	// WaitingTime ends by itself: a sleep, or the time limit of a wait.
	WaitingTime WaitingFor = "time"
	// WaitingBlocked ends when an operator resumes the run.
	WaitingBlocked WaitingFor = "blocked"
	// WaitingAnything ends with any signal and any call, also of names not listed, which were too many to keep.
	WaitingAnything WaitingFor = "anything"
)

// WaitingKinds lists the kinds known to this version.
func WaitingKinds() []WaitingFor {
	return []WaitingFor{
		WaitingSignal, WaitingInput, WaitingChildren, WaitingEnds, WaitingTime, WaitingBlocked, WaitingAnything,
	}
}

// FarMoment returns the due time of a wait without a limit, in the year 2286: the last instant with 13 digits of
// milliseconds.
func FarMoment() time.Time { return time.UnixMilli(9_999_999_999_999).UTC() }

// Has reports whether kind is in w.For. A nil wait has none.
func (w *Waiting) Has(kind WaitingFor) bool { return w != nil && slices.Contains(w.For, kind) }

// Timed reports whether time alone continues the run: w is nil or waits only for a time.
func (w *Waiting) Timed() bool { return w == nil || len(w.For) == 1 && w.For[0] == WaitingTime }

// Due returns when the wait ends by itself, or [FarMoment].
func (w *Waiting) Due() time.Time {
	if w.Until.IsZero() {
		return FarMoment()
	}
	return w.Until
}

// Clone returns a deep copy. A nil wait stays nil.
func (w *Waiting) Clone() *Waiting {
	if w == nil {
		return nil
	}
	c := *w
	c.For, c.Names, c.Questions = slices.Clone(w.For), slices.Clone(w.Names), slices.Clone(w.Questions)
	c.Schemas = maps.Clone(w.Schemas)
	for name, schema := range w.Schemas {
		c.Schemas[name] = slices.Clone(schema)
	}
	return &c
}

// Asks returns the questions of the wait, ordered by name: Questions, else Prompt, else none.
func (w *Waiting) Asks() []Question {
	switch {
	case w == nil:
		return nil
	case len(w.Questions) > 0 || w.Prompt == "":
		return sortedQuestions(w.Questions)
	default:
		return []Question{{Prompt: w.Prompt}}
	}
}

// sortedQuestions returns a copy ordered by name; equal names keep their order.
func sortedQuestions(questions []Question) []Question {
	ordered := slices.Clone(questions)
	slices.SortStableFunc(ordered, func(a, b Question) int { return cmp.Compare(a.Name, b.Name) })
	return ordered
}

// AtRest returns a deep copy in the form that storages keep: the time limit in whole milliseconds.
func (w *Waiting) AtRest() *Waiting {
	c := w.Clone()
	if c != nil {
		c.Until = UTCMillis(c.Until)
	}
	return c
}

// Validate returns [ErrValidationFailed] if the wait is impossible.
func (w *Waiting) Validate() error {
	fault := ""
	switch unknown := slices.IndexFunc(w.For, func(k WaitingFor) bool { return !slices.Contains(WaitingKinds(), k) }); {
	case len(w.For) == 0:
		fault = "waits for nothing"
	case unknown >= 0:
		fault = fmt.Sprintf("is for %q", w.For[unknown])
	case len(w.Names) > MaxWaitNames:
		fault = fmt.Sprintf("has %d names", len(w.Names))
	case len(w.Prompt) > MaxPromptBytes:
		fault = fmt.Sprintf("has a prompt of %d bytes", len(w.Prompt))
	case w.Has(WaitingTime) && w.Until.IsZero():
		fault = "is for a time and has none"
	case w.Need < 0:
		fault = fmt.Sprintf("needs %d ends", w.Need)
	case (w.Has(WaitingSignal) || w.Has(WaitingInput)) && len(w.Names) == 0 && !w.Has(WaitingAnything):
		fault = "is for signals and has no names"
	}
	for _, q := range w.Asks() {
		switch {
		case fault != "":
		case textFault(q.Prompt, -1) != "":
			fault = "has a prompt that " + textFault(q.Prompt, -1)
		case len(q.Prompt) > MaxPromptBytes || len(q.Name) > MaxStepNameBytes || textFault(q.Name, -1) != "":
			fault = fmt.Sprintf("has a question of %d bytes, or one of a wait without a usable name", len(q.Prompt))
		}
	}
	if fault != "" {
		return &Error{
			Code:    ErrValidationFailed,
			Message: "the wait " + fault,
			Hint: fmt.Sprintf(
				"wait for at most %d names, with a prompt of at most %d bytes",
				MaxWaitNames,
				MaxPromptBytes,
			),
		}
	}
	for _, name := range w.Names {
		if err := ValidateSignalName(name); err != nil {
			return err
		}
	}
	return w.checkSchemas()
}

// ValidateSignalName checks the name of a signal: 1 to [MaxSignalNameBytes] bytes of printable text without ':'. The
// error is [ErrValidationFailed].
func ValidateSignalName(name string) error {
	fault := textFault(name, ':')
	switch {
	case name == "":
		fault = "is empty"
	case len(name) > MaxSignalNameBytes:
		fault = fmt.Sprintf("has %d bytes", len(name))
	}
	if fault == "" {
		return nil
	}
	return &Error{
		Code:    ErrValidationFailed,
		Message: "a signal's name " + fault,
		Hint:    fmt.Sprintf("use 1 to %d bytes of printable text without ':'", MaxSignalNameBytes),
	}
}

// ValidateCallName checks the name of a call by the rules of [ValidateSignalName], because a run keeps both in its
// wait.
func ValidateCallName(name string) error {
	err := ValidateSignalName(name)
	if e, ok := errors.AsType[*Error](err); ok {
		e.Message = strings.Replace(e.Message, "a signal's name", "a call's name", 1)
	}
	return err
}

// Kept returns the wait in the form that a run keeps: kinds and names sorted, each once, and questions ordered by name.
// If there are more than three names, or more than 200 bytes of names and prompt, the names are dropped and the run
// also waits for [WaitingAnything]: its handler may then run too often, but never too rarely. Schemas stay.
func (w *Waiting) Kept() *Waiting {
	c := w.Clone()
	c.Schemas = keptSchemas(c.Schemas)
	c.Questions = sortedQuestions(c.Questions)
	slices.Sort(c.Names)
	c.Names = slices.Compact(c.Names)
	size := len(c.Prompt)
	for _, name := range c.Names {
		size += len(name)
	}
	if len(c.Questions) > 1 {
		names := size - len(c.Prompt)
		room := keptWaitBytes - names
		if len(c.Names) > keptWaitNames || !haveRoom(c.Questions[:2], room) {
			names, room = 0, keptWaitBytes
			c.Names, c.All = nil, false
			c.For = append(c.For, WaitingAnything)
		}
		c.Questions = cutQuestions(c.Questions, room)
		size = names
	}
	if len(c.Questions) > 0 {
		c.Prompt = c.Questions[0].Prompt
	}
	if len(c.Questions) == 1 {
		c.Questions = nil
	}
	if len(c.Names) > keptWaitNames || size > keptWaitBytes {
		c.Names, c.All = nil, false
		c.For = append(c.For, WaitingAnything)
	}
	kinds := slices.DeleteFunc(WaitingKinds(), func(kind WaitingFor) bool { return !slices.Contains(c.For, kind) })
	c.For = kinds
	return c
}

const (
	// keptQuestion is a question's overhead in bytes; keptPrompt is the least useful length of a cut prompt.
	keptQuestion = 18
	keptPrompt   = 16
)

// haveRoom reports whether each of these questions keeps a useful part of its prompt.
func haveRoom(questions []Question, room int) bool {
	return shareOf(questions, room) >= keptPrompt
}

// shareOf returns how many bytes of each prompt fit.
func shareOf(questions []Question, room int) int {
	for _, q := range questions {
		room -= keptQuestion + len(q.Name)
	}
	return room / len(questions)
}

// cutQuestions returns as many questions as fit, at most three, with their prompts cut to the room.
func cutQuestions(questions []Question, room int) []Question {
	kept := questions[:min(len(questions), keptWaitNames)]
	for len(kept) > 1 && !haveRoom(kept, room) {
		kept = kept[:len(kept)-1]
	}
	if len(kept) == 1 {
		return kept // a single prompt always fits
	}
	share := shareOf(kept, room)
	for i := range kept {
		kept[i].Prompt = clip(kept[i].Prompt, share)
	}
	return kept
}

// Union returns a wait for both. Either may be nil. A wait for all of several names becomes a wait for any of them; the
// handler checks again.
func (w *Waiting) Union(other *Waiting) *Waiting {
	if w == nil || other == nil {
		if w == nil {
			w = other
		}
		return w.Clone()
	}
	c := w.Clone()
	c.For, c.Names = append(c.For, other.For...), append(c.Names, other.Names...)
	c.All = false
	c.Need += other.Need
	if c.Questions = append(w.Asks(), other.Asks()...); len(c.Questions) > 0 {
		c.Prompt = c.Questions[0].Prompt
	}
	if c.Schemas == nil {
		c.Schemas = other.Clone().Schemas
	} else {
		maps.Copy(c.Schemas, other.Clone().Schemas)
	}
	if c.Until.IsZero() || !other.Until.IsZero() && other.Until.Before(c.Until) {
		c.Until = other.Until
	}
	return c
}
