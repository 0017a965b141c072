package front

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
)

// object is a JSON object, with its members as they came.
type object map[string]any

// request is one request of DynamoDB's JSON protocol.
type request struct {
	ctx       context.Context // of the one request
	header    http.Header
	operation string
	body      []byte
	fields    object
	refused   bool // by chance
}

const targetPrefix = "DynamoDB_20120810."

// operationOf is the operation that a request names; "" for another service's.
func operationOf(header http.Header) string {
	operation, ok := strings.CutPrefix(header.Get("X-Amz-Target"), targetPrefix)
	if !ok {
		return ""
	}
	return operation
}

func (q *request) parse() error {
	fields, err := decode(q.body)
	q.fields = fields
	return err
}

// identity is equal for the sendings of one request: by its token where it has one, else by what it asks for. Members
// of an object may come in any order.
func (q *request) identity() string {
	if token := q.fields.text("ClientRequestToken"); token != "" {
		return q.operation + " " + token
	}
	hash := fnv.New64a()
	hash.Write(encode(q.fields)) // never fails
	return q.operation + " " + strconv.FormatUint(hash.Sum64(), 36)
}

// sending is equal for the tries of one call of an SDK; equal requests of other calls have others.
func (q *request) sending() string {
	return cmp.Or(q.header.Get("Amz-Sdk-Invocation-Id"), q.identity())
}

// account is whose tables a request is about: emulators tell by the access key.
func (q *request) account() string {
	_, after, _ := strings.Cut(q.header.Get("Authorization"), "Credential=")
	key, _, _ := strings.Cut(after, "/")
	return key
}

// as is the header of another request in the name of an access key.
func (q *request) as(operation, key string) http.Header {
	h := http.Header{}
	for _, name := range []string{"Authorization", "X-Amz-Date", "X-Amz-Security-Token"} {
		if value := q.header.Get(name); value != "" {
			h.Set(name, value)
		}
	}
	h.Set("Content-Type", "application/x-amz-json-1.0")
	h.Set("X-Amz-Target", targetPrefix+operation)
	h.Set(
		"Authorization",
		strings.Replace(h.Get("Authorization"), "Credential="+q.account()+"/", "Credential="+key+"/", 1),
	)
	return h
}

// source is what decides about one thing for the nth time.
func (f *Front) source(what, id string, n int) *rand.Rand {
	hash := fnv.New64a()
	hash.Write([]byte(what + " " + id + " " + strconv.Itoa(n))) // never fails
	return rand.New(rand.NewPCG(f.options.Seed, hash.Sum64()))  // repeatable
}

// decode reads an object. Numbers stay as they were written.
func decode(text []byte) (object, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	out := object{}
	if err := decoder.Decode(&out); err != nil {
		return nil, fmt.Errorf("no JSON object: %w", err)
	}
	return out, nil
}

// encode writes an object with its members in order.
func encode(o object) []byte {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // it came from JSON
	}
	return text
}

func (o object) text(name string) string {
	s, _ := o[name].(string)
	return s
}

func (o object) flag(name string) bool {
	b, _ := o[name].(bool)
	return b
}

func (o object) object(name string) object { return asObject(o[name]) }

// objects are the members of a list that are objects.
func (o object) objects(name string) []object {
	list, _ := o[name].([]any)
	var out []object
	for _, v := range list {
		out = append(out, asObject(v))
	}
	return out
}

func asObject(v any) object {
	m, _ := v.(map[string]any)
	return m
}

// answer is what a caller gets.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a *answer) ok() bool { return a.status == http.StatusOK }

// write sends the answer with the headers that DynamoDB has, the check sum also with errors. Without a status the connection breaks.
func (a *answer) write(w http.ResponseWriter) {
	if a.status == 0 {
		panic(http.ErrAbortHandler)
	}
	h := w.Header()
	for _, name := range []string{"Content-Type", "X-Amzn-Requestid"} {
		if value := a.header.Get(name); value != "" {
			h.Set(name, value)
		}
	}
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/x-amz-json-1.0")
	}
	if h.Get("X-Amzn-Requestid") == "" {
		h.Set("X-Amzn-Requestid", "FRONT")
	}
	h.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(a.body)), 10))
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // a caller that is gone wants no answer
}

// refusal is a fault of the request.
func refusal(kind, message string) *answer {
	return refusalWith(kind, object{"message": message})
}

func refusalWith(kind string, fields object) *answer {
	fields["__type"] = "com.amazonaws.dynamodb.v20120810#" + kind
	return &answer{status: http.StatusBadRequest, header: http.Header{}, body: encode(fields)}
}

// failure is a fault of the service.
func failure(kind, message string) *answer {
	a := refusal(kind, message)
	a.status = http.StatusInternalServerError
	return a
}
