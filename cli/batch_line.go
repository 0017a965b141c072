package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/runlane/runlane-go"
)

// batchLine is one line of --batch. Unknown fields are refused: a misspelled key would otherwise be ignored.
type batchLine struct {
	Task           runlane.TaskID    `json:"task"`
	Payload        json.RawMessage   `json:"payload"`
	Queue          runlane.QueueName `json:"queue"`
	RunID          runlane.RunID     `json:"runId"`
	IdempotencyKey *string           `json:"idempotencyKey"` // nil: not given; an empty key counts as given
	SingletonKey   *string           `json:"singletonKey"`
	ConcurrencyKey *string           `json:"concurrencyKey"`
	Priority       *int              `json:"priority"`
	Delay          string            `json:"delay"`
	RunAt          string            `json:"runAt"`
	Meta           map[string]string `json:"meta"`
}

func batchFields() []string {
	var names []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[batchLine]()) {
		names = append(names, field.Tag.Get("json"))
	}
	return names
}

// readBatchLine reads a line. Errors name the column.
func readBatchLine(text []byte) (line batchLine, err error) {
	if message, faulty := jsonFault(text); faulty {
		return line, usagef("write one JSON object a line", "no JSON: %s", strings.TrimPrefix(message, "line 1, "))
	}
	if text[0] != '{' {
		return line, usagef("write one JSON object a line", "column 1: this is not an object")
	}
	if name, column, unknown := unknownField(text, batchFields()); unknown {
		return line, usagef(
			didYouMean(name, batchFields())+"fields are "+strings.Join(batchFields(), ", ")+
				`; a line is like {"payload":{}}`,
			"column %d: there is no field %s",
			column,
			quoted(name),
		)
	}
	err = json.Unmarshal(text, &line)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		column := utf8.RuneCount(text[:min(int(wrong.Offset), len(text))])
		message, next := "column %d: %s is not text but a %s", "write it in quotes"
		switch wrong.Field {
		case "meta":
			message, next = "column %d: %s is not an object of texts: there is a %s", `write {"key":"value"}`
		case "priority":
			message, next = "column %d: %s is not a whole number: there is a %s", "write -8 to 8, without quotes"
		}
		return line, usagef(next, message, column, quoted(wrong.Field), wrong.Value)
	}
	return line, err
}

// unknownField returns the first unknown field of an object, and its column.
func unknownField(object []byte, known []string) (name string, column int, unknown bool) {
	decoder := json.NewDecoder(bytes.NewReader(object))
	_, err := decoder.Token()
	for err == nil && decoder.More() {
		before := int(decoder.InputOffset())
		var token json.Token
		if token, err = decoder.Token(); err != nil {
			break
		}
		name = fmt.Sprint(token)
		// encoding/json ignores the case of a name.
		if !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }) {
			quote := bytes.IndexByte(object[before:], '"')
			return name, 1 + utf8.RuneCount(object[:before+quote]), true
		}
		var value json.RawMessage
		err = decoder.Decode(&value)
	}
	return "", 0, false
}
