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

// cursorForm is a cursor of this package: the position, and a hash of the position and its request.
type cursorForm struct {
	Hash string `json:"h"`
	At   string `json:"p"`
}

// sealCursor makes a cursor. scope has everything that decides the request's selection and order.
func sealCursor(scope, position string) runlane.Cursor {
	b, err := json.Marshal(cursorForm{cursorHash(scope, position), position})
	if err != nil {
		return "" // two strings always encode
	}
	return runlane.Cursor(base64.RawURLEncoding.EncodeToString(b))
}

// openCursor returns the position of a request's cursor. option names the field in the error.
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
		"%s is not a cursor of this request",
		option,
	)
}

// cursorHash detects cursors of other requests. It is not a signature: a forged cursor only chooses a position.
func cursorHash(scope, position string) string {
	sum := sha256.Sum256([]byte(scope + "\x00" + position))
	return hex.EncodeToString(sum[:8])
}

// describeList writes a list for the scope of a cursor.
func describeList[T ~string](values []T) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = strconv.Quote(string(v))
	}
	return fmt.Sprintf("[%s]", strings.Join(texts, " "))
}
