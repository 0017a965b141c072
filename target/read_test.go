package target_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/target"
)

// secret is the value of ${secret.key} in every test.
const secret = "s3cr3t-v4lue"

var found = &target.Options{
	Getenv: func(name string) string { return map[string]string{"KEY": secret, "LONG": secret + "-long"}[name] },
	ReadFile: func(name string) ([]byte, error) {
		if name != "/key" {
			return nil, fs.ErrNotExist
		}
		return []byte(secret + "\n"), nil
	},
}

// full has every field once.
const full = `
secrets: {key: {env: KEY}, file: {file: /key}}
tasks:
  call:
    http:
      url: https://example.com/${payload.path}?q=${payload.q}
      method: PUT
      headers: {Authorization: "Bearer ${secret.key}"}
      body: {name: "${payload.name}", list: [1, true, null, "$${x}"]}
      private: false
      succeed: [200, 201-204]
      permanent: [400-499]
    receipt: {headers: [ETag], body: true}
    queue: calls
    concurrency: 2
    dispatchTimeout: 1m
    maxAttempts: 5
    backoff: 1s
    maxBackoff: 10m
    noJitter: true
    timeout: 20s
    idempotencyTtl: 30d
    idempotencyKey: ${payload.id}
    concurrencyKey: ${payload.tenant}
    singletonKey: "x-${payload.id}"
    schedules:
      nightly: {cron: "0 3 * * *", zone: Europe/Berlin, payload: {id: 1, tenant: a}, overlap: forbid, misfire: {policy: skip, tolerance: 1h}}
      often: {every: 5m, payload: {id: 2, tenant: a}, misfire: {policy: catch_up, limit: 3, window: 1d}}
      once: {at: 2030-01-01T00:00:00Z, payload: {id: 3, tenant: a}}
  dump:
    command: {run: [pg_dump, "--file=${payload.file}"], dir: /tmp, env: {PGPASSWORD: "${secret.key}"}, noStdin: true, permanent: [2]}
    receipt: {output: false}
`

func TestRead_AllFields(t *testing.T) {
	t.Parallel()
	got, err := target.Read([]byte(full), found)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Handlers) != 2 || len(got.Schedules) != 3 || got.Handlers[1].Task.ID != "dump" {
		t.Fatalf("%+v", got)
	}
	d := got.Handlers[0].Task
	if d.Queue.Name != "calls" || d.Queue.Concurrency != 2 || d.Queue.DispatchTimeout != time.Minute || d.Retry.MaxAttempts != 5 ||
		d.Retry.Backoff != (runlane.Exponential{Base: time.Second, Max: 10 * time.Minute}) || !d.Retry.NoJitter ||
		d.IdempotencyTTL != 30*24*time.Hour || d.Timeout != 25*time.Second {
		t.Errorf("the definition is %+v", d)
	}
	made, err := runlane.NewRawCall(d, json.RawMessage(`{"id":7,"tenant":"t","path":"a"}`)).Prepare()
	if err != nil || made.IdempotencyKey != "7" || made.ConcurrencyKey != "t" || made.SingletonKey != "x-7" {
		t.Errorf("keys are %+v: %v", made, err)
	}
	_, err = runlane.NewRawCall(d, json.RawMessage(`{"tenant":"t"}`)).Prepare()
	if runlane.CodeOf(err) != runlane.ErrValidationFailed || !strings.Contains(err.Error(), `the payload has no field "id"`) {
		t.Errorf("without the key's field: %v", err)
	}
}

// Each fault is named, with its task, and no error has a secret.
func TestRead_NamesFaults(t *testing.T) {
	t.Parallel()
	const task, call = "tasks: {t: {%s}}", "tasks: {t: {http: {url: %s}}}"
	within := func(form, text string) string { return "secrets: {key: {env: KEY}}\n" + fmt.Sprintf(form, text) }
	for text, says := range map[string]string{
		"":                                                          "no tasks",
		"tasks: [":                                                  "cannot be read",
		"tasks: {t: {http: {url: x, uri: y}}}":                      "line 1: there is no field uri",
		"tasks: {}\n---\ntasks: {}":                                 "second document",
		"tasks: {t: {}, t: {}}":                                     "already defined",
		strings.Repeat("#", 2<<20):                                  "more than",
		"secrets: {a.b: {env: KEY}}":                                "cannot be named so",
		"secrets: {a: {}}":                                          "has not one place",
		"secrets: {a: {env: NONE}}":                                 "NONE is not set",
		"secrets: {a: {file: /none}}":                               "/none cannot be read",
		within(task, ""):                                            "not exactly one target",
		within(task, "timeout: -1s"):                                "not a time",
		within(call, "http://example.com"):                          "not https",
		within(call, "https:///x"):                                  "the url is none",
		within(call, "https://u:p@example.com"):                     "a user",
		within(call, "https://example.com/../x"):                    "..",
		within(call, "'https://${payload.host}/x'"):                 "placeholder in its host",
		within(call, "'HTTPS://${payload.host}/x'"):                 "placeholder in its host",
		within(call, "'https://example.com.${payload.host}'"):       "placeholder in its host",
		within(call, "'https://example.com/${secret.none}'"):        "does not have",
		within(call, "'https://example.com/${env.HOME}'"):           "unknown placeholder",
		within(call, "'https://example.com/${payload'"):             "without an end",
		within(call, "'https://${secret.key}:${payload.port}/'"):    "placeholder in its host",
		within(call, "https://example.com, method: get"):            "method",
		within(call, "https://example.com, headers: {Host: x}"):     "cannot be set",
		within(call, "https://example.com, headers: {'a b': x}"):    "cannot be set",
		within(call, "https://example.com, body: {at: 2020-01-01}"): "quotes",
		within(call, "https://example.com, body: {1: x}"):           "not text",
		within(call, "https://example.com, permanent: [5-4]"):       "not a code",
		within(task, "http: {url: https://example.com}, receipt: {headers: [Set-Cookie]}"):                             "cannot have",
		within(task, "http: {url: https://example.com}, maxAttempts: 1, backoff: 1s"):                                  "no retry",
		within(task, "http: {url: https://example.com}, idempotencyKey: '${run.id}'"):                                  "not made yet",
		within(task, "http: {url: https://example.com}, schedules: {s: {}}"):                                           "exactly one time",
		within(task, "http: {url: https://example.com}, schedules: {s: {cron: '61 * * * *'}}"):                         "cron",
		within(task, "http: {url: https://example.com}, idempotencyKey: '${payload.id}', schedules: {s: {every: 1h}}"): "the payload has no field",
		within(task, "command: {run: []}"):                                                                             "does not begin with a program",
		within(task, "command: {run: ['${payload.program}']}"):                                                         "does not begin with a program",
		within(task, "command: {run: ['${payload']}"):                                                                  "without an end",
		within(task, "command: {run: [x]}, singletonKey: 'a-${secret.key}'"):                                           "names a secret",
		within(call, `https://example.com, body: '{"id": "${payload.id}"}'`):                                           "write it as YAML",
		within(call, "https://example.com, headers: {content-type: text/json}, body: 'a${payload.id}'"):                "write it as YAML",
		within(task, "command: {run: [env, A=b, /bin/bash, -ec, 'echo ${payload.id}']}"):                               "is a script",
		within(task, "command: {run: [python3, -c, 'print(${run.id})']}"):                                              "is a script",
		within(task, "command: {run: [x], env: {A-B: x}}"):                                                             "cannot be set",
		within(task, "command: {run: [x]}, receipt: {body: true}"):                                                     "no body",
	} {
		_, err := target.Read([]byte(text), found)
		if runlane.CodeOf(err) != runlane.ErrConfigurationInvalid || !strings.Contains(err.Error(), says) ||
			strings.Contains(err.Error(), secret) {
			t.Errorf("%.80q: %v, which does not say %q", text, err, says)
		}
	}
}

// The published schema accepts what the program accepts, and has its fields, neither more nor fewer.
func TestSchema_IsThatOfTheFile(t *testing.T) {
	t.Parallel()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(target.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	judge := func(text string) error {
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			return err
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			return err
		}
		decoded, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
		return errors.Join(err, compiled.Validate(decoded))
	}
	example, err := os.ReadFile("../examples/targets/runlane.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{full, string(example)} {
		_, err := target.Read([]byte(text), &target.Options{
			Getenv: func(string) string { return "http://127.0.0.1:80/hook" }, ReadFile: found.ReadFile,
		})
		if err := errors.Join(err, judge(text)); err != nil {
			t.Error(err)
		}
	}
	for _, text := range []string{
		"tasks: {}", "tasks: {t: {}}", "tasks: {t: {http: {url: https://example.com, uri: x}}}", "tasks: {t: {command: {run: []}}}",
		"tasks: {t: {http: {url: https://example.com}, schedules: {s: {}}}}", "tasks: {t: {http: {url: x}, timeout: soon}}",
	} {
		if judge(text) == nil {
			t.Errorf("the schema accepts %s", text)
		}
	}
	var parsed struct {
		Properties map[string]any
		Defs       map[string]struct{ Properties map[string]any } `json:"$defs"`
	}
	if err := json.Unmarshal(target.Schema(), &parsed); err != nil {
		t.Fatal(err)
	}
	for name, of := range target.Entries {
		properties := parsed.Properties
		if name != "" {
			properties = parsed.Defs[name].Properties
		}
		var want []string
		for _, field := range reflect.VisibleFields(of) {
			want = append(want, field.Tag.Get("yaml"))
		}
		var got []string
		for field := range properties {
			got = append(got, field)
		}
		slices.Sort(want)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%q has the fields %v in the schema, and %v in the program", name, got, want)
		}
	}
}

// Whatever stands in a file, it is read or refused, and no error has a secret.
func FuzzRead(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte("tasks: &a {t: *a}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := target.Read(text, found)
		if (err == nil) == (got == nil) || err != nil && strings.Contains(err.Error(), secret) && !bytes.Contains(text, []byte(secret)) {
			t.Errorf("%v, %v", got, err)
		}
	})
}
