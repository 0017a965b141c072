package webhooks

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"unicode/utf8"

	"github.com/runlane/runlane-go"
)

// MaxLineBytes bounds one line of [ReadDeliveries].
const MaxLineBytes = 5 << 20

// DefaultEndpoint is meant by lines that name none.
const DefaultEndpoint = "default"

// Line is one line of input: a delivery, or why it is none.
type Line struct {
	Number   int // from 1
	Delivery Delivery
	Err      error // runlane.ErrValidationFailed; names the line, never what it says
}

// ReadDeliveries reads newline-delimited JSON, one {"id", "event", "payload"} a line and optionally "endpoint"; empty
// lines are skipped. A bad line, and one whose id was on an earlier line, yields an error and stops nothing. Only an
// input that cannot be read on ends early, with an error as its last line. The payload is exactly the bytes that stand
// in the line.
func ReadDeliveries(r io.Reader) iter.Seq[Line] {
	return func(yield func(Line) bool) {
		input := bufio.NewReaderSize(r, 64<<10)
		lineOf := map[string]int{}
		var buffer []byte
		for number := 1; ; number++ {
			text, end := readLine(input, buffer[:0])
			buffer = text
			if end != nil && !errors.Is(end, io.EOF) {
				yield(Line{Number: number, Err: badLine(number, "cannot be read", end)})
				return
			}
			if len(bytes.TrimSpace(text)) > 0 {
				line := parseLine(number, text)
				if first, twice := lineOf[line.Delivery.ID]; twice && line.Err == nil {
					line = Line{Number: number, Err: badLine(number, fmt.Sprintf("has the id of line %d", first), nil)}
				}
				if line.Err == nil {
					lineOf[line.Delivery.ID] = number
				}
				if !yield(line) {
					return
				}
			}
			if end != nil {
				return
			}
		}
	}
}

// readLine appends the next line to buffer, without its end. Of a line that is too long it keeps no more than shows
// that. An error ends the input; when it is io.EOF, the text before it counts.
func readLine(input *bufio.Reader, buffer []byte) ([]byte, error) {
	for {
		part, err := input.ReadSlice('\n')
		if len(buffer) <= MaxLineBytes+len("\r\n") {
			buffer = append(buffer, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSuffix(bytes.TrimSuffix(buffer, []byte("\n")), []byte("\r")), err
		}
	}
}

func parseLine(number int, text []byte) Line {
	fail := func(fault string, cause error) Line { return Line{Number: number, Err: badLine(number, fault, cause)} }
	if len(text) > MaxLineBytes {
		return fail(fmt.Sprintf("is longer than %d bytes", MaxLineBytes), nil)
	}
	if !utf8.Valid(text) {
		return fail("is not valid UTF-8", nil)
	}
	var in struct {
		ID       string          `json:"id"`
		Event    string          `json:"event"`
		Endpoint string          `json:"endpoint"`
		Payload  json.RawMessage `json:"payload"` // these bytes of the line, not decoded
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return fail(jsonFault(err), err)
	}
	for _, field := range []struct{ name, value string }{{"id", in.ID}, {"event", in.Event}} {
		if field.value == "" {
			return fail(fmt.Sprintf("has no %q", field.name), nil)
		}
		if err := runlane.ValidateKey(field.name, field.value); err != nil { // both become HTTP headers
			return fail(fmt.Sprintf("has an %q that is too long or not printable", field.name), err)
		}
	}
	if len(in.Payload) == 0 {
		return fail(`has no "payload"`, nil)
	}
	if in.Endpoint == "" {
		in.Endpoint = DefaultEndpoint
	}
	return Line{
		Number:   number,
		Delivery: Delivery{ID: in.ID, Event: in.Event, Endpoint: in.Endpoint, Payload: Payload(in.Payload)},
	}
}

func jsonFault(err error) string {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("is not valid JSON at byte %d", syntax.Offset)
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && kind.Field != "" {
		return fmt.Sprintf("has a %s as %q", kind.Value, kind.Field)
	}
	return "is not a JSON object"
}

func badLine(number int, fault string, cause error) error {
	return &runlane.Error{
		Code: runlane.ErrValidationFailed, Message: fmt.Sprintf("line %d %s", number, fault),
		Hint: `write one {"id": "…", "event": "…", "payload": …} a line, each id once`,
		Meta: map[string]string{"line": strconv.Itoa(number)}, Cause: cause,
	}
}
