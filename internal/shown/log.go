package shown

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// LogText is a line of a slog.JSONHandler for people.
type LogText struct {
	At, Level, Message string
	Attributes         []string // name=JSON, in their order
}

// LogTextOf reads a line. Of what is no such line it shows less.
func LogTextOf(line json.RawMessage) (text LogText) {
	d := json.NewDecoder(bytes.NewReader(line))
	_, _ = d.Token() // the brace
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			break
		}
		switch name {
		case "time":
			text.At = unquoted(value)
			if t, err := time.Parse(time.RFC3339Nano, text.At); err == nil {
				text.At = t.UTC().Format("2006-01-02 15:04:05.000Z")
			}
		case "level":
			text.Level = unquoted(value)
		case "msg":
			text.Message = unquoted(value)
		default:
			text.Attributes = append(text.Attributes, fmt.Sprintf("%v=%s", name, value))
		}
	}
	return text
}

func unquoted(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return string(value)
	}
	return text
}

// Printable quotes a text with control characters.
func Printable(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}
