package webhooks

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
)

// read renders each line as "number id" or "number error".
func read(t *testing.T, input io.Reader) []string {
	t.Helper()
	var lines []string
	for line := range ReadDeliveries(input) {
		if line.Err == nil {
			lines = append(lines, fmt.Sprint(line.Number, " ", line.Delivery.ID))
			continue
		}
		e, ok := errors.AsType[*runlane.Error](line.Err)
		if !ok || e.Code != runlane.ErrValidationFailed || e.Meta["line"] != fmt.Sprint(line.Number) || e.Hint == "" {
			t.Errorf("line %d: not a typed error of that line: %v", line.Number, line.Err)
		}
		if line.Delivery != (Delivery{}) {
			t.Errorf("line %d: an error and a delivery", line.Number)
		}
		lines = append(lines, fmt.Sprint(line.Number, " ", e.Message))
	}
	return lines
}

func TestReadDeliveries_PayloadsAreTheBytesOfTheLine(t *testing.T) {
	t.Parallel()
	for name, body := range bodies {
		input := fmt.Sprintf("{ \"payload\" : %s ,\"event\":\"push\",\t\"id\":\"x\",\"endpoint\":\"main\", \"new\":1}\n", body)
		for line := range ReadDeliveries(strings.NewReader(input)) {
			if line.Err != nil {
				t.Fatalf("%s: %v", name, line.Err)
			}
			want := Delivery{ID: "x", Event: "push", Endpoint: "main", Payload: body}
			if diff := cmp.Diff(want, line.Delivery); diff != "" {
				t.Errorf("%s\n%s", name, diff)
			}
		}
	}
}

func TestReadDeliveries_BadLineNamesItsNumberAndStopsNothing(t *testing.T) {
	t.Parallel()
	good := func(id string) string { return `{"id":"` + id + `","event":"push","payload":{}}` }
	input := strings.Join([]string{
		good("a"),
		`{"id":"b","event":"push","payload":{]}`,
		good("c") + "\r",
		"",
		" \t\r",
		good("a"),
		`[]`,
		`null`,
		`{"event":"push","payload":{}}`,
		`{"id":"d","payload":{}}`,
		`{"id":"e","event":"push"}`,
		`{"id":7,"event":"push","payload":{}}`,
		`{"id":"f\nX-Injected: yes","event":"push","payload":{}}`,
		`{"id":"` + strings.Repeat("g", 600) + `","event":"push","payload":{}}`,
		`{"id":"h","event":"pu\u0000sh","payload":{}}`,
		"{\"id\":\"i\",\"event\":\"push\",\"payload\":\"\xff\"}",
		good("j") + good("k"),
		good("l"), // no newline behind the last line
	}, "\n")
	want := []string{
		"1 a",
		"2 line 2 is not valid JSON at byte 37",
		"3 c",
		"6 line 6 has the id of line 1",
		"7 line 7 is not a JSON object",
		`8 line 8 has no "id"`,
		`9 line 9 has no "id"`,
		`10 line 10 has no "event"`,
		`11 line 11 has no "payload"`,
		`12 line 12 has a number as "id"`,
		`13 line 13 has an "id" that is too long or not printable`,
		`14 line 14 has an "id" that is too long or not printable`,
		`15 line 15 has an "event" that is too long or not printable`,
		"16 line 16 is not valid UTF-8",
		"17 line 17 is not valid JSON at byte 39",
		"18 l",
	}
	for name, reader := range map[string]io.Reader{
		"at once": strings.NewReader(input), "byte by byte": iotest.OneByteReader(strings.NewReader(input)),
	} {
		if diff := cmp.Diff(want, read(t, reader)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

func TestReadDeliveries_LongLines(t *testing.T) {
	t.Parallel()
	line := func(id string, length int) string {
		frame := `{"id":"` + id + `","event":"push","payload":""}`
		return frame[:len(frame)-2] + strings.Repeat("x", length-len(frame)) + `"}`
	}
	input := strings.Join([]string{
		line("longest", MaxLineBytes), line("too long", MaxLineBytes+1), line("much too long", 3*MaxLineBytes), line("short", 100),
	}, "\r\n")
	tooLong := fmt.Sprintf("is longer than %d bytes", MaxLineBytes)
	want := []string{"1 longest", "2 line 2 " + tooLong, "3 line 3 " + tooLong, "4 short"}
	if diff := cmp.Diff(want, read(t, strings.NewReader(input))); diff != "" {
		t.Error(diff)
	}
}

func TestReadDeliveries_InputBreaks_LastLineSaysSo(t *testing.T) {
	t.Parallel()
	broken := io.MultiReader(strings.NewReader("{\"id\":\"a\",\"event\":\"push\",\"payload\":1}\n{\"id\""), iotest.ErrReader(io.ErrUnexpectedEOF))
	if diff := cmp.Diff([]string{"1 a", "2 line 2 cannot be read"}, read(t, broken)); diff != "" {
		t.Error(diff)
	}
}

func TestReadDeliveries_CallerMayStop(t *testing.T) {
	t.Parallel()
	for line := range ReadDeliveries(strings.NewReader("bad\nworse\n")) {
		if line.Number != 1 {
			t.Fatalf("line %d after the caller stopped", line.Number)
		}
		break
	}
}
