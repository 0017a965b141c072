package server

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// checkListLengths refuses lists of more than MaxBatch elements before decoding: three bytes of text can take hundreds
// in memory. Raw fields are exempt.
func checkListLengths(text []byte, into any) error {
	key, found := longList(text, MaxBatch)
	if !found || rawField(into, key) {
		return nil
	}
	return badInput(
		fmt.Sprintf("%s has more than %d elements", clip(key), MaxBatch),
		"send fewer at once",
	)
}

// longList returns the key of the first list directly in an object with more than most elements. It does not validate
// JSON.
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

// rawField reports whether the field is a json.RawMessage. As in encoding/json, case does not matter.
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
