package console

import (
	"errors"

	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
)

// A form that is refused is shown again with what a person typed, and the error where it belongs.

// wrongField is an error of one field of a form, by the name that is posted.
type wrongField struct {
	error
	name string
}

// Unwrap gives the code and the hint.
func (w *wrongField) Unwrap() error { return w.error }

// keptForm is a refusal that is shown by the page of its form.
type keptForm struct {
	error
	page *page
}

// Unwrap gives the code, which has a status.
func (k *keptForm) Unwrap() error { return k.error }

// typedForm is a form as it was sent: its values, and what is wrong with them. The zero value is a form not yet sent.
type typedForm struct {
	sent  bool
	value func(name string) string
	fault error
}

func (v *visitor) typed(fault error) typedForm {
	return typedForm{sent: true, value: v.r.PostFormValue, fault: fault}
}

// or is what was typed, or a value to begin with.
func (f *typedForm) or(name, otherwise string) string {
	if f.sent {
		return f.value(name)
	}
	return otherwise
}

// wrong shows the error of a field, or for "" the one of no field.
func (f *typedForm) wrong(name string) g.Node {
	at := ""
	if w, ok := errors.AsType[*wrongField](f.fault); ok {
		at = w.name
	}
	if f.fault == nil || at != name {
		return g.Group{}
	}
	said := message(f.fault)
	if e, ok := errors.AsType[*runlane.Error](f.fault); ok && e.Hint != "" {
		said += ": " + e.Hint
	}
	return h.P(h.Class("bad"), h.Role("alert"), g.Text(visible(said)))
}
