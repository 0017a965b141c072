package runlane_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
)

func judged(schema string) *runlane.Waiting {
	return &runlane.Waiting{
		For:     []runlane.WaitingFor{runlane.WaitingSignal},
		Names:   []string{"s"},
		Schemas: map[string]json.RawMessage{"s": json.RawMessage(schema)},
	}
}

func TestWaiting_CheckBody(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schema, fits, fault string }{
		{`{"type":"boolean"}`, `true`, ``},
		{`{"type":"boolean"}`, `"true"`, `it is not of type boolean`},
		{`{"type":["boolean","null"]}`, `null`, ``},
		{`{"type":"integer","minimum":-2,"maximum":3}`, `-2`, ``},
		{`{"type":"integer"}`, `1.0`, `it is not of type integer`},
		{`{"type":"integer","maximum":9223372036854775807}`, `9223372036854775808`, `it is more than 9223372036854775807`},
		{`{"type":"number","minimum":0.1}`, `0.099999999999999999999`, `it is less than 0.1`},
		{`{"type":"number"}`, `1e999999999`, `a number with too many digits`},
		{`{"minLength":2,"maxLength":2}`, `"λλ"`, ``},
		{`{"minLength":2}`, `"λ"`, `it has fewer than 2 characters`},
		{`{"pattern":"^PO-[0-9]+$"}`, `"PO-7"`, ``},
		{`{"pattern":"^PO-[0-9]+$"}`, `"7"`, `it does not match its pattern`},
		{`{"format":"date-time"}`, `"2026-01-31T12:00:00Z"`, ``},
		{`{"format":"date-time"}`, `"tomorrow"`, `it is not a date-time`},
		{`{"format":"email"}`, `"anything"`, ``},
		{`{"enum":["a",1,null,{"b":[2]}]}`, `{"b":[2.0]}`, ``},
		{`{"enum":["a",1,null,{"b":[2]}]}`, `[]`, `it is none of its values`},
		{`{"const":null}`, `false`, `it is none of its values`},
		{`{"anyOf":[{"type":"string"},{"type":"null"}]}`, `null`, ``},
		{`{"anyOf":[{"type":"string"},{"type":"null"}]}`, `1`, `it fits none of anyOf`},
		{`{"items":{"type":"string"},"maxItems":1}`, `["a"]`, ``},
		{`{"items":{"type":"string"},"maxItems":1}`, `["a","b"]`, `it has more than 1 items`},
		{`{"items":{"properties":{"a":{"type":"string"}}}}`, `[{},{"a":1}]`, `/1/a is not of type string`},
		{`{"required":["a"]}`, `{"secret":1}`, `it has no "a"`},
		{`{"properties":{"a":true},"additionalProperties":false}`, `{"secret":1}`, `/* is not taken`},
		{`{"additionalProperties":{"type":"string"}}`, `{"secret":1}`, `/* is not of type string`},
		{`true`, `{"any":"thing"}`, ``},
		{`false`, `{}`, `it is not taken`},
		{`{"title":"T","description":"d","default":1,"examples":[1],"$comment":"c","deprecated":true,"$schema":"s"}`, `1`, ``},
		{`{}`, `{`, `it is not JSON`},
	} {
		w := judged(c.schema)
		if err := w.Validate(); err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		err := w.CheckBody("s", json.RawMessage(c.fits))
		switch {
		case c.fault == "" && err != nil:
			t.Errorf("%s does not fit %s: %v", c.fits, c.schema, err)
		case c.fault != "" && (!errors.Is(err, runlane.ErrValidationFailed) || !strings.Contains(err.Error(), c.fault) || strings.Contains(err.Error(), "secret")):
			t.Errorf("%s judged by %s: %v, want %q", c.fits, c.schema, err, c.fault)
		}
	}
	if err := judged("false").CheckBody("another", nil); err != nil {
		t.Error("a signal without a schema:", err)
	}
	for _, schema := range []string{`{"$ref":"#"}`, `{"oneOf":[]}`, `{"type":"text"}`, `{"pattern":"("}`, `{"properties":{"a":{"not":{}}}}`, `{"minimum":1e999}`, `[]`, `null`, `{`} {
		if err := judged(schema).Validate(); !errors.Is(err, runlane.ErrValidationFailed) {
			t.Errorf("%s: %v", schema, err)
		}
	}
	w := judged("{}")
	w.Names = []string{"another"}
	if err := w.Validate(); !errors.Is(err, runlane.ErrValidationFailed) {
		t.Error("a schema of no signal of the wait:", err)
	}
}

type inner struct {
	Kept   string `json:"kept"`
	Hidden int    `json:"by"`
}

type everything struct {
	inner

	By      string            `json:"by"`
	Note    *string           `json:"note,omitempty"`
	Small   int8              `json:"small"`
	Large   uint64            `json:"large"`
	Ratio   float32           `json:"ratio"`
	At      time.Time         `json:"at,omitzero"`
	List    []bool            `json:"list"`
	Bytes   []byte            `json:"bytes"`
	Map     map[string]int64  `json:"map"`
	Pair    [2]string         `json:"pair"`
	Address netip.Addr        `json:"address"`
	Big     *big.Int          `json:"big"`
	Raw     json.RawMessage   `json:"raw"`
	Any     any               `json:"any"`
	Text    int               `json:"text,string"`
	Itself  *everything       `json:"itself"`
	Left    string            `json:"-"`
	Plain   map[string]string // named as in Go
}

func TestSchemaOf_FitsWhatTheTypeEncodesTo(t *testing.T) {
	t.Parallel()
	w := judged(string(runlane.SchemaOf[everything]()))
	if err := w.Validate(); err != nil {
		t.Fatal(err)
	}
	note := "n"
	full := everything{
		Note: &note, Small: math.MinInt8, Large: math.MaxUint64, Ratio: math.MaxFloat32, At: time.Now(), List: []bool{true}, Bytes: []byte("ab"),
		Map: map[string]int64{"a": math.MinInt64}, Address: netip.IPv6Loopback(), Big: big.NewInt(7), Raw: json.RawMessage(`[1]`), Any: 1,
		Itself: &everything{}, Plain: map[string]string{"a": "b"},
	}
	for _, value := range []everything{{}, full} {
		body, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.CheckBody("s", body); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		for name, bad := range map[string]string{
			"by": `1`, "kept": `null`, "note": `true`, "small": `128`, "large": `-1`, "ratio": `1e39`, "at": `"now"`, "list": `[1]`, "bytes": `"a"`,
			"map": `{"a":1.5}`, "pair": `["a",1]`, "address": `1`, "text": `1`, "Plain": `[]`,
		} {
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(body, &fields); err != nil {
				t.Fatal(err)
			}
			fields[name] = json.RawMessage(bad)
			changed, err := json.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.CheckBody("s", changed); err == nil {
				t.Errorf("%s may be %s", name, bad)
			}
		}
	}
	type decision struct {
		Approved bool   `json:"approved"`
		Note     string `json:"note,omitempty"`
	}
	want := `{"type":"object","properties":{"approved":{"type":"boolean"},"note":{"type":"string"}},"required":["approved"]}`
	if d := cmp.Diff(want, string(runlane.SchemaOf[decision]())); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
