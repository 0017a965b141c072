package server

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// tooLong refuses a body one of whose lists has more elements than any may have, before memory is taken for them: three
// bytes of text can be hundreds in memory. What is kept byte by byte is no list.
func tooLong(text []byte, into any) error {
	key, found := longList(text, MaxBatch)
	if !found || rawField(into, key) {
		return nil
	}
	return badInput(
		fmt.Sprintf("%s has more than %d elements", clip(key), MaxBatch),
		"send fewer at once",
	)
}

// longList finds the first list directly in an object with more elements than most, by its key. What is no JSON is for
// the reader to say.
func longList(text []byte, most int) (key string, found bool) {
	depth, list, elements := 0, false, 0
	from, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			if quoted = !quoted; quoted {
				from = i
			} else if depth == 1 {
				key = string(text[from+1 : i])
			}
		case quoted:
		case c == '[' || c == '{':
			if depth++; depth == 2 {
				list, elements = c == '[', 1
			}
		case c == ']' || c == '}':
			depth--
		case c == ',' && depth == 2 && list:
			if elements++; elements > most {
				return key, true
			}
		}
	}
	return "", false
}

// rawField reports a field that is kept as it is, as encoding/json finds it: by its name in any case.
func rawField(into any, key string) bool {
	body := reflect.TypeOf(into).Elem()
	if body.Kind() != reflect.Struct {
		return false
	}
	for _, field := range reflect.VisibleFields(body) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Type == reflect.TypeFor[json.RawMessage]() && strings.EqualFold(name, key) {
			return true
		}
	}
	return false
}
