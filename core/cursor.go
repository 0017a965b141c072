package core

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/runlane/runlane-go"
)

// cursorForm is the content of a cursor that this package makes: the position, and a hash of it with the request that
// it belongs to.
type cursorForm struct {
	Hash string `json:"h"`
	At   string `json:"p"`
}

// sealCursor makes a cursor. scope names everything that decides the selection and the order of the request.
func sealCursor(scope, position string) runlane.Cursor {
	b, err := json.Marshal(cursorForm{cursorHash(scope, position), position})
	if err != nil {
		return "" // two strings always encode
	}
	return runlane.Cursor(base64.RawURLEncoding.EncodeToString(b))
}

// openCursor returns the position of a cursor of the same request. option names the option in the error.
func openCursor(c runlane.Cursor, scope, option string) (position string, err error) {
	var form cursorForm
	b, err := base64.RawURLEncoding.DecodeString(string(c))
	if err == nil {
		err = json.Unmarshal(b, &form)
	}
	if err != nil || form.Hash != cursorHash(scope, form.At) {
		return "", foreignCursor(option)
	}
	return form.At, nil
}

func foreignCursor(option string) error {
	return invalidInput(
		"use a cursor only with the request that returned it",
		"%s is no cursor of this request",
		option,
	)
}

// cursorHash recognizes a cursor of another request. It is not a signature: a caller who forges a cursor only chooses a
// position.
func cursorHash(scope, position string) string {
	sum := sha256.Sum256([]byte(scope + "\x00" + position))
	return hex.EncodeToString(sum[:8])
}

// describeList is part of the scope of a cursor.
func describeList[T ~string](values []T) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = strconv.Quote(string(v))
	}
	return fmt.Sprintf("[%s]", strings.Join(texts, " "))
}
