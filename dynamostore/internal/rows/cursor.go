package rows

import (
	"encoding/base64"
	"encoding/json"

	"github.com/runlane/runlane-go"
)

type cursorForm struct {
	Hash string          `json:"c"`
	At   json.RawMessage `json:"p"`
}

// SealCursor returns a cursor. scope has everything that decides order and selection of the results.
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

// cursorHash detects altered cursors and cursors of other requests.
func cursorHash(scope string, at json.RawMessage) string { return Hash(scope, string(at))[:16] }

// OpenCursor decodes a cursor of the same request into position. An empty cursor changes nothing.
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
