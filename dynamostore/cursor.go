package dynamostore

import (
	"encoding/base64"
	"encoding/json"

	"github.com/runlane/runlane-go"
)

// cursorForm is a cursor's content: the request it belongs to, as a hash, and the position.
type cursorForm struct {
	Scope string          `json:"c"`
	At    json.RawMessage `json:"p"`
}

// sealCursor makes the cursor of a request. scope names everything that decides its order and its selection.
func sealCursor(scope string, position any) runlane.Cursor {
	at, err := json.Marshal(position)
	if err != nil {
		return ""
	}
	b, err := json.Marshal(cursorForm{hashParts(scope)[:16], at})
	if err != nil {
		return ""
	}
	return runlane.Cursor(base64.RawURLEncoding.EncodeToString(b))
}

// openCursor reads a cursor of the same request into position; an empty one leaves it as it is.
func openCursor(c runlane.Cursor, scope string, position any) error {
	if c == "" {
		return nil
	}
	var form cursorForm
	b, err := base64.RawURLEncoding.DecodeString(string(c))
	if err == nil {
		err = json.Unmarshal(b, &form)
	}
	if err == nil && form.Scope == hashParts(scope)[:16] {
		err = json.Unmarshal(form.At, position)
		if err == nil {
			return nil
		}
	}
	return &runlane.Error{
		Code: runlane.ErrValidationFailed, Message: "the cursor does not belong to this request", Cause: err,
		Hint: "use a cursor only with the filter, order and environment that returned it",
	}
}
