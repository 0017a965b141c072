package console

import (
	"errors"

	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
)

// A refused form is shown again with its input, and with the error at its field.

// wrongField is the error of one field, by its posted name.
type wrongField struct {
	error
	name string
}

func (w *wrongField) Unwrap() error { return w.error }

// keptForm is a refusal that is shown on the page of its form.
type keptForm struct {
	error
	page *page
}

func (k *keptForm) Unwrap() error { return k.error }

// typedForm is a submitted form with its values and error. The zero value is a form that was not submitted.
type typedForm struct {
	sent  bool
	value func(name string) string
	fault error
}

func (v *visitor) typed(fault error) typedForm {
	return typedForm{sent: true, value: v.r.PostFormValue, fault: fault}
}

func (f *typedForm) or(name, otherwise string) string {
	if f.sent {
		return f.value(name)
	}
	return otherwise
}

// wrong shows the error of a field; name "" stands for errors without a field.
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
