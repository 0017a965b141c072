package target

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"

	"github.com/runlane/runlane-go"
)

// Entries are the types of the file, by their definition in the schema.
var Entries = map[string]reflect.Type{
	"": reflect.TypeFor[file](), "secret": reflect.TypeFor[secretEntry](), "task": reflect.TypeFor[taskEntry](),
	"http": reflect.TypeFor[httpEntry](), "command": reflect.TypeFor[commandEntry](), "receipt": reflect.TypeFor[receiptEntry](),
	"schedule": reflect.TypeFor[scheduleEntry](), "misfire": reflect.TypeFor[misfireEntry](),
}

// MadeRequest is the request of a task with this http entry, by a payload.
func MadeRequest(entry, payload string) (*http.Request, error) {
	parsed, err := parse([]byte("tasks: {t: {http: " + entry + "}}"))
	if err != nil {
		return nil, err
	}
	e := parsed.Tasks["t"]
	b := &builder{}
	r := &request{method: http.MethodPost, body: b.tree("body", e.HTTP.Body)}
	b.requestURL(r, e.HTTP)
	return r.made(context.Background(), &runlane.Attempt{}, json.RawMessage(payload))
}
