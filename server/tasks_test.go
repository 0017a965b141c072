package server_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/server"
	"github.com/runlane/runlane-go/server/schema"
)

const imagesFile = `{"tasks":[{"task":"images.resize","queue":"images","concurrency":4,"maxAttempts":3,"backoff":"10s","timeout":"5m",
	"idempotencyTtl":"while-active","version":2,"schema":{"type":"object","required":["url"],"additionalProperties":false,
	"properties":{"url":{"type":"string","pattern":"^https:"},"sizes":{"type":"array","items":{"type":"integer","minimum":1}}}}}]}`

func TestReadTasks(t *testing.T) {
	t.Parallel()
	tree := `{"tasks":[{"task":"a","schema":{"type":"array","items":{"$ref":"#"}}}]}` // goes one level deeper each time
	trees, err := server.ReadTasks([]byte(tree), schema.Compile)
	if err != nil || trees[0].Check(json.RawMessage("[[[]]]")) != nil || trees[0].Check(json.RawMessage("[[1]]")) == nil {
		t.Error(err)
	}
	if _, err := server.ReadTasks([]byte(imagesFile), nil); runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
		t.Errorf("a schema without a compiler: %v", err)
	}
	tasks, err := server.ReadTasks([]byte(imagesFile), schema.Compile)
	if err != nil || len(tasks) != 1 {
		t.Fatal(tasks, err)
	}
	d := tasks[0].Definition
	if d.ID != "images.resize" || d.Queue != (runlane.Queue{Name: "images", Concurrency: 4}) || d.Timeout != 5*time.Minute ||
		d.Retry.Attempts() != 3 || d.Retry.Delay(2) != 10*time.Second || d.Version != 2 || d.IdempotencyTTL != runlane.WhileActive {
		t.Errorf("%+v", d)
	}
	for payload, place := range map[string]string{
		`{"url":"https://a"}`:                    "",
		`{"url":"https://a","sizes":[1,2]}`:      "",
		`{"url":"https://a","sizes":[1,0]}`:      "/properties/sizes/items",
		`{"url":"secret"}`:                       "/properties/url",
		`{}`:                                     "root",
		`{"url":"https://a","validating x: ":1}`: "root",
		`"secret"`:                               "root",
	} {
		err := tasks[0].Check(json.RawMessage(payload))
		switch {
		case place == "" && err != nil, place != "" && err == nil:
			t.Errorf("%s: %v", payload, err)
		case err != nil && (!strings.HasSuffix(err.Error(), place) || strings.Contains(err.Error(), "secret")):
			t.Errorf("%s: %v, want %s", payload, err, place)
		}
	}
}

// An option of tasks that the file does not have is zero here.
func TestReadTasks_HasEveryOption(t *testing.T) {
	t.Parallel()
	tasks, err := server.ReadTasks([]byte(`{"tasks":[{"task":"a","queue":"q","concurrency":2,"dispatchTimeout":"9s","rate":"600/min","burst":50,"maxAttempts":3,
		"backoff":"2s","maxBackoff":"1m","noJitter":true,"timeout":"5m","idempotencyTtl":"2d","keep":{"succeeded":"7d","failed":"forever","cancelled":"1h"},"errorMessages":true,"version":2}]}`), schema.Compile)
	if err != nil {
		t.Fatal(err)
	}
	d := tasks[0].Definition
	if d.Retry.Backoff != (runlane.Exponential{Base: 2 * time.Second, Max: time.Minute}) {
		t.Errorf("the backoff is %v", d.Retry.Backoff)
	}
	for _, options := range []any{*d, d.Queue, d.Retry} {
		v := reflect.ValueOf(options)
		for _, f := range reflect.VisibleFields(v.Type()) {
			inGo := f.Name == "Keys" || f.Name == "KeepLogs" // functions, and Attempt.Logger
			if !inGo && f.IsExported() && v.FieldByIndex(f.Index).IsZero() {
				t.Errorf("%s.%s cannot be given", v.Type(), f.Name)
			}
		}
	}
}

func TestReadTasks_RefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		``:                                   "cannot be read",
		`{"tasks":[]}`:                       "has no tasks",
		`{"tasks":[{"task":"a","que":"b"}]}`: "there is no field",
		`{"tasks":[{"task":"a:b"}]}`:         "task",
		`{"tasks":[{"task":"a","schema":{"type":7}}]}`:                                                                                       "no sound schema",
		`{"tasks":[{"task":"a","schema":{"$ref":"https://example.com/x.json"}}]}`:                                                            "no sound schema",
		`{"tasks":[{"task":"a","schema":{"pattern":"("}},{"task":"b","schema":{"type":"x"}}]}`:                                               `task "a"`,
		`{"tasks":[{"task":"a","schema":{"$ref":"#"}}]}`:                                                                                     "refers to itself",
		`{"tasks":[{"task":"a","schema":{"properties":{"x":{"$ref":"#/$defs/a~1b"}},"$defs":{"a/b":{"anyOf":[{"$ref":"#/$defs/a~1b"}]}}}}]}`: "refers to itself",
		`{"tasks":[{"task":"a","schema":{"dependentSchemas":{"x":{"$ref":"#"}}}}]}`:                                                          "refers to itself",
		`{"tasks":[{"task":"a","schema":{"$id":"https://a","$ref":"#/$defs/x","$defs":{"x":` +
			`{"$id":"https://b","$ref":"#/$defs/y","$defs":{"y":{"$ref":"#"}}}}}}]}`: "another document",
		`{"tasks":[{"task":"a","schema":{"$dynamicRef":"#x"}}]}`:                                                       "is for",
		`{"tasks":[{"task":"a","timeout":"soon"}]}`:                                                                    "not a duration",
		`{"tasks":[{"task":"a","schema":{"type":"strng"}}]}`:                                                           "'string'",
		`{"tasks":[{"task":"a","schema":{"properties":{"x":{"minLength":-1}}}}]}`:                                      "at '/properties/x/minLength'",
		`{"tasks":[{"task":"a","schema":{"properties":{"x":{"minimum":2,"maximum":1}}}}]}`:                             "minimum is more than maximum",
		`{"tasks":[{"task":"a","schema":{"maximum":1e999}}]}`:                                                          "beyond 1e400",
		`{"tasks":[{"task":"a","schema":{"items":[{"type":"string"}]}}]}`:                                              "at '/items'",
		`{"tasks":[{"task":"a","schema":{"allOf":[{"additionalItems":false}]}}]}`:                                      `"additionalItems" is not a keyword of its dialect, draft 2020-12`,
		`{"tasks":[{"task":"a","schema":{"properties":{"x":{"dependencies":{"a":["b"]}}}}}]}`:                          `"dependencies" is not a keyword`,
		`{"tasks":[{"task":"a","schema":{"$schema":"http://json-schema.org/draft-04/schema#"}}]}`:                      `"http://json-schema.org/draft-04/schema#" is not known`,
		`{"tasks":[{"task":"a","schema":{"$schema":"http://json-schema.org/draft-07/schema#","prefixItems":[true]}}]}`: "draft 7",
	} {
		_, err := server.ReadTasks([]byte(text), schema.Compile)
		if runlane.CodeOf(err) != runlane.ErrConfigurationInvalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s", text, err, says)
		}
	}
}

// Numbers are judged as they are written, and a dialect by its own rules.
func TestReadTasks_SchemasAreExact(t *testing.T) {
	t.Parallel()
	check := func(text string) func(json.RawMessage) error {
		t.Helper()
		check, err := schema.Compile(json.RawMessage(text))
		if err != nil {
			t.Fatal(err)
		}
		return check
	}
	price := check(`{"multipleOf":0.01}`)
	for cents := range 10_000 {
		if err := price(json.RawMessage(fmt.Sprintf("%d.%02d", cents/100, cents%100))); err != nil {
			t.Fatal(cents, err)
		}
	}
	array := `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}],"additionalItems":false,"dependencies":{"a":["b"]}}`
	for _, c := range []struct {
		schema, payload string
		fits            bool
	}{
		{`{"multipleOf":0.01}`, "0.015", false},
		{`{"const":9007199254740992}`, "9007199254740993", false},
		{`{"maximum":9007199254740992}`, "9007199254740993", false},
		{`{"enum":[1.0]}`, "1", true},
		{`{"uniqueItems":true}`, "[9007199254740992,9007199254740993]", true},
		{`{"type":"integer"}`, "1e3", true},
		{`{}`, "1e999", false},
		{`{"type":"array","items":{"minimum":1}}`, "[" + strings.Repeat("0,", 50_000) + "0]", false},
		{array, `["x"]`, true},
		{array, `[1]`, false},
		{array, `["x",1]`, false},
		{array, `{"a":1}`, false},
	} {
		if err := check(c.schema)(json.RawMessage(c.payload)); (err == nil) != c.fits {
			t.Errorf("%s of %.40s: %v", c.schema, c.payload, err)
		}
	}
}

// FuzzTasks gives anything as a file of tasks, and as the payload of what it defines: neither panics.
func FuzzTasks(f *testing.F) {
	f.Add([]byte(imagesFile), []byte(`{"url":"https://a","sizes":[1,0]}`))
	f.Add([]byte(`{"tasks":[{"task":"a","schema":{"$ref":"#"}}]}`), []byte(`[[[]]]`))
	f.Add([]byte(`{"tasks":[{"task":"a","schema":true}]}`), []byte(`1e999`))
	f.Add([]byte(`{"tasks":[{"task":"a","schema":{"anyOf":[{"$id":"b"}],"$defs":{"a":{"items":{"$ref":"#/$defs/a"}}}}}]}`), []byte(`[[]]`))
	f.Fuzz(func(t *testing.T, file, payload []byte) {
		tasks, err := server.ReadTasks(file, schema.Compile)
		if err != nil {
			return
		}
		for _, task := range tasks {
			if task.Check != nil {
				_ = task.Check(payload) // any answer will do
			}
		}
	})
}
