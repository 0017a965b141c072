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
	"unicode/utf8"
)

// Bounds of what a run waits for.
const (
	// MaxWaitNames bounds the names that one wait may have.
	MaxWaitNames = 32
	// MaxSignalNameBytes bounds the name of a signal.
	MaxSignalNameBytes = 64
	// MaxPromptBytes bounds the question of a wait for input.
	MaxPromptBytes = 160

	// keptWaitBytes bounds names and prompt of a wait as a run keeps it, and keptWaitNames its names: a run that waits
	// stays as small as one that executes.
	keptWaitBytes = 200
	keptWaitNames = 3
)

// Waiting is what a suspended run waits for. Whatever of For happens first ends the wait, and so does an operator's
// resumption; after it the handler is called again from its beginning. It belongs to the run's last event: the next
// event, whatever it is, ends it.
type Waiting struct {
	// For are the kinds, each once, in the order of [WaitingKinds].
	For []WaitingFor `json:"for"`
	// Names are those of the signals and of the calls. Empty where [WaitingAnything] is among the kinds.
	Names []string `json:"names,omitempty"`
	// All says that a signal of each name is needed, not of any.
	All bool `json:"all,omitempty"`
	// Need is how many ends of other runs are missing.
	Need int `json:"need,omitempty"`
	// Until is when the wait ends by itself. Zero: never.
	Until time.Time `json:"until,omitzero"`
	// Prompt is the question to a person; of a blocked run, what is to be done first.
	Prompt string `json:"prompt,omitempty"`
	// Questions are all prompts by their names, where several calls of the attempt have one; Prompt is the first of
	// them. They are as long as the run has room for: the rest is cut off. [Waiting.Asks] has them in every case.
	Questions []Question `json:"questions,omitempty"`
	// Schemas are the JSON Schemas of the signals' bodies, by their names, where they have some: [Signal.WithSchema].
	Schemas map[string]json.RawMessage `json:"schemas,omitempty"`
}

// Question is the prompt of one of several waits.
type Question struct {
	// Name is the wait's: the signal's, where it waits for one. "" for what a blocked run asks for.
	Name string `json:"name,omitempty"`
	// Prompt is the question.
	Prompt string `json:"prompt"`
}

// WaitingFor is a kind of what a run waits for.
type WaitingFor string

// The kinds.
const (
	// WaitingSignal ends with a signal of one of the names.
	WaitingSignal WaitingFor = "signal"
	// WaitingInput is a wait for a signal with a prompt: a person answers.
	WaitingInput WaitingFor = "input"
	// WaitingChildren ends when the runs that the run has called have ended.
	WaitingChildren WaitingFor = "children"
	// WaitingEnds ends when other runs have ended.
	WaitingEnds WaitingFor = "ends"
	// WaitingTime ends by itself: a sleep, or the time limit of a wait.
	WaitingTime WaitingFor = "time"
	// WaitingBlocked ends when an operator resumes the run.
	WaitingBlocked WaitingFor = "blocked"
	// WaitingAnything ends with any signal and any call, also of names that are not listed: they were too many to keep.
	WaitingAnything WaitingFor = "anything"
)

// WaitingKinds lists the kinds that this version knows.
func WaitingKinds() []WaitingFor {
	return []WaitingFor{
		WaitingSignal, WaitingInput, WaitingChildren, WaitingEnds, WaitingTime, WaitingBlocked, WaitingAnything,
	}
}

// FarMoment is the instant at which a wait without a limit is due, in the year 2286: the last one with 13 digits of
// milliseconds.
func FarMoment() time.Time { return time.UnixMilli(9_999_999_999_999).UTC() }

// Has reports whether kind is one of the kinds. A nil wait has none.
func (w *Waiting) Has(kind WaitingFor) bool { return w != nil && slices.Contains(w.For, kind) }

// Timed reports a run that time alone moves on: one without a wait, or with a wait for nothing but a time.
func (w *Waiting) Timed() bool { return w == nil || len(w.For) == 1 && w.For[0] == WaitingTime }

// Due is when the wait ends by itself, [FarMoment] where it does not.
func (w *Waiting) Due() time.Time {
	if w.Until.IsZero() {
		return FarMoment()
	}
	return w.Until
}

// Clone shares nothing with w. A nil wait stays nil.
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

// Asks are the questions of the wait by their names: none, its Prompt, or Questions.
func (w *Waiting) Asks() []Question {
	switch {
	case w == nil:
		return nil
	case len(w.Questions) > 0 || w.Prompt == "":
		return questionsInOrder(w.Questions)
	default:
		return []Question{{Prompt: w.Prompt}}
	}
}

// questionsInOrder is a copy of the questions, by their names; those of one name stay as they are.
func questionsInOrder(questions []Question) []Question {
	ordered := slices.Clone(questions)
	slices.SortStableFunc(ordered, func(a, b Question) int { return cmp.Compare(a.Name, b.Name) })
	return ordered
}

// AtRest is the wait as storages keep it: sharing nothing with w, the time limit in whole milliseconds.
func (w *Waiting) AtRest() *Waiting {
	c := w.Clone()
	if c != nil {
		c.Until = UTCMillis(c.Until)
	}
	return c
}

// Validate finds what makes a wait impossible: [ErrValidationFailed].
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

// ValidateSignalName checks the name of a signal: 1 to [MaxSignalNameBytes] bytes of printable text without ':'. A bad
// one is [ErrValidationFailed].
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

// ValidateCallName checks the name of a call by the rules of [ValidateSignalName]: a run keeps both in its wait.
func ValidateCallName(name string) error {
	err := ValidateSignalName(name)
	if e, ok := errors.AsType[*Error](err); ok {
		e.Message = strings.Replace(e.Message, "a signal's name", "a call's name", 1)
	}
	return err
}

// Kept is the wait as a run keeps it: kinds and names in order, each once, and questions by their names. Names that a
// run has no room for (more than three, or more than 200 bytes together with the prompt) are left out, and it waits for
// [WaitingAnything] too: its handler is then called too often rather than never. Schemas stay.
func (w *Waiting) Kept() *Waiting {
	c := w.Clone()
	c.Schemas = keptSchemas(c.Schemas)
	c.Questions = questionsInOrder(c.Questions)
	slices.Sort(c.Names)
	c.Names = slices.Compact(c.Names)
	size := len(c.Prompt)
	for _, name := range c.Names {
		size += len(name)
	}
	if len(c.Questions) > 1 {
		names := size - len(c.Prompt)
		room := keptWaitBytes - names
		if len(c.Names) > keptWaitNames || !keepQuestions(c.Questions[:2], room) {
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
	// keptQuestion is what a question takes beside its texts, and keptPrompt how much of each prompt is worth keeping.
	keptQuestion = 18
	keptPrompt   = 16
)

// keepQuestions reports that there is room for these questions, each with the beginning of its prompt.
func keepQuestions(questions []Question, room int) bool {
	return shareOf(questions, room) >= keptPrompt
}

// shareOf is how many bytes of each prompt there is room for.
func shareOf(questions []Question, room int) int {
	for _, q := range questions {
		room -= keptQuestion + len(q.Name)
	}
	return room / len(questions)
}

// cutQuestions are as many of the questions as there is room for, three at most, with prompts that are cut to it.
func cutQuestions(questions []Question, room int) []Question {
	kept := questions[:min(len(questions), keptWaitNames)]
	for len(kept) > 1 && !keepQuestions(kept, room) {
		kept = kept[:len(kept)-1]
	}
	if len(kept) == 1 {
		return kept // its prompt is short enough by itself
	}
	share := shareOf(kept, room)
	for i := range kept {
		kept[i].Prompt = cutText(kept[i].Prompt, share)
	}
	return kept
}

// cutText is a text of at most n bytes, with an ellipsis where it was longer.
func cutText(text string, n int) string {
	const ellipsis = "…"
	if len(text) <= n {
		return text
	}
	for n -= len(ellipsis); n > 0 && !utf8.RuneStart(text[n]); n-- {
	}
	return text[:max(n, 0)] + ellipsis
}

// Union is a wait for what either waits for. Either may be nil. A wait for all of several names becomes one for any of
// them: the handler looks again.
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
