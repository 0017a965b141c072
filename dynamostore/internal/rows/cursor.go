package rows

import (
	"encoding/base64"
	"encoding/json"

	"github.com/runlane/runlane-go"
)

// cursorForm is a cursor's content: a hash of the request it belongs to and of the position, and the position.
type cursorForm struct {
	Hash string          `json:"c"`
	At   json.RawMessage `json:"p"`
}

// SealCursor makes the cursor of a request. scope names everything that decides the order and the selection of results.
func SealCursor(scope string, position any) runlane.Cursor {
	at, err := json.Marshal(position)
	if err != nil {
		return ""
	}
	b, err := json.Marshal(cursorForm{cursorHash(scope, at), at})
	if err != nil {
		return ""
	}
	return runlane.Cursor(base64.RawURLEncoding.EncodeToString(b))
}

// cursorHash reveals a cursor of another request, and one that was altered.
func cursorHash(scope string, at json.RawMessage) string { return Hash(scope, string(at))[:16] }

// OpenCursor reads a cursor of the same request into position; an empty one leaves it as it is.
func OpenCursor(c runlane.Cursor, scope string, position any) error {
	if c == "" {
		return nil
	}
	var form cursorForm
	b, err := base64.RawURLEncoding.DecodeString(string(c))
	if err == nil {
		err = json.Unmarshal(b, &form)
	}
	if err == nil && form.Hash == cursorHash(scope, form.At) {
		err = json.Unmarshal(form.At, position)
		if err == nil {
			return nil
		}
	}
	return &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		Message: "the cursor does not belong to this request",
		Cause:   err,
		Hint:    "use a cursor only with the filter, order and environment that returned it",
	}
}
