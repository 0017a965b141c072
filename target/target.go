// Package target makes tasks out of a file: each makes an HTTP request or starts a command, and keeps a receipt of it with
// the run. "runlane worker --file" executes them, so that no Go program is needed. docs/targets.md describes the file, and
// [Schema] is its JSON Schema.
package target

import (
	"bytes"
	_ "embed" // for the schema
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/runlane/runlane-go"
)

// ErrFailed is the code of an attempt whose request or command failed. The failure's meta has "status" or "exitCode".
const ErrFailed runlane.ErrorCode = "target_failed"

// maxFile bounds a file.
const maxFile = 1 << 20

//go:embed runlane.schema.json
var schema []byte

// Schema returns the JSON Schema of the file, draft 2020-12, for editors.
func Schema() []byte { return bytes.Clone(schema) }

// Options of [Read]. nil means none.
type Options struct {
	// Getenv and ReadFile find the values of secrets. nil means os.Getenv and os.ReadFile.
	Getenv func(name string) string
	// ReadFile, see Getenv.
	ReadFile func(name string) ([]byte, error)
}

// Targets are the tasks of a file.
type Targets struct {
	// Handlers are for core.Options.Handlers, by the names of their tasks.
	Handlers []runlane.Handler
	// Schedules are for core.Options.Schedules.
	Schedules []runlane.Schedule
}

type file struct {
	Secrets map[string]secretEntry `yaml:"secrets"`
	Tasks   map[string]taskEntry   `yaml:"tasks"`
}

type secretEntry struct {
	Env  string `yaml:"env"`
	File string `yaml:"file"`
}

// Read reads a file of tasks and looks up its secrets. Errors are runlane.ErrConfigurationInvalid, name each problem and
// contain no secret.
func Read(text []byte, options *Options) (*Targets, error) {
	if options == nil {
		options = &Options{}
	}
	parsed, err := parse(text)
	if err != nil {
		return nil, err
	}
	b := &builder{values: map[string]string{}}
	b.readSecrets(parsed.Secrets, options)
	found := &Targets{}
	for _, name := range slices.Sorted(maps.Keys(parsed.Tasks)) {
		entry := parsed.Tasks[name]
		b.task = name
		b.addTask(found, &entry)
	}
	if len(parsed.Tasks) == 0 {
		b.fault("", "the file has no tasks")
	}
	if len(b.faults) > 0 {
		return nil, errors.Join(b.faults...)
	}
	return found, nil
}

// typeName is how package yaml ends its text about an unknown field.
var typeName = regexp.MustCompile(`field (.+) not found in type .+`)

func parse(text []byte) (*file, error) {
	if len(text) > maxFile {
		return nil, invalid("", "the file of targets has %d bytes, more than %d", len(text), maxFile)
	}
	parsed := &file{}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	err := decoder.Decode(parsed)
	if err == nil && !errors.Is(decoder.Decode(&yaml.Node{}), io.EOF) {
		err = errors.New("there is a second document behind ---")
	}
	if err == nil || errors.Is(err, io.EOF) { // an empty file has no tasks
		return parsed, nil
	}
	says := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	if faults, ok := errors.AsType[*yaml.TypeError](err); ok {
		says = faults.Errors
	}
	for i := range says {
		says[i] = typeName.ReplaceAllString(says[i], "there is no field $1")
	}
	return nil, invalid("", "the file of targets cannot be read: %s", strings.Join(says, "; "))
}

// builder collects faults and knows the secrets.
type builder struct {
	task   string
	values map[string]string // of secrets, by name
	hidden hidden
	faults []error
}

// fault notes a problem of the current task.
func (b *builder) fault(hint, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if b.task != "" {
		message = fmt.Sprintf("task %q: %s", b.task, message)
	}
	b.faults = append(b.faults, invalid(hint, "%s", message))
}

func invalid(hint, format string, args ...any) error {
	if hint == "" {
		hint = "docs/targets.md has an example and all fields"
	}
	return &runlane.Error{
		Code: runlane.ErrConfigurationInvalid, Message: fmt.Sprintf(format, args...), Hint: hint,
	}
}

func (b *builder) readSecrets(entries map[string]secretEntry, options *Options) {
	getenv, readFile := options.Getenv, options.ReadFile
	if getenv == nil {
		getenv = os.Getenv
	}
	if readFile == nil {
		readFile = os.ReadFile
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e, value := entries[name], ""
		switch {
		case !fieldName.MatchString(name):
			b.fault("use letters, digits, - and _", "secret %q cannot be named so", name)
		case (e.Env == "") == (e.File == ""):
			b.fault("write {env: NAME} or {file: PATH}", "secret %q has not one place where it is", name)
		case e.Env != "":
			if value = getenv(e.Env); value == "" {
				b.fault("set the variable", "secret %q: the variable %s is not set", name, e.Env)
			}
		default:
			text, err := readFile(e.File)
			if value = strings.TrimRight(string(text), "\r\n"); err != nil || value == "" {
				b.fault("check its path and permissions", "secret %q: the file %s cannot be read, or is empty", name, e.File)
			}
		}
		b.values[name] = value
		b.hidden.add(value)
	}
}

// hidden are texts that receipts must not repeat.
type hidden struct{ texts []string }

const (
	// minHidden is the shortest secret that is looked for: shorter ones are in ordinary texts, too.
	minHidden = 4
	// minHiddenLine is the shortest line of a secret of several lines, like a key, that is looked for by itself.
	minHiddenLine = 8
)

// add hides a secret as it is, its lines, and as it stands in URLs and in JSON.
func (h *hidden) add(secret string) {
	secret = strings.TrimSpace(secret) // outputs may have it without the end of its line
	forms := []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret), (&url.URL{Path: secret}).EscapedPath(),
		strings.ReplaceAll(secret, "/", `\/`),
	}
	for _, html := range []bool{true, false} {
		var quoted strings.Builder
		encoder := json.NewEncoder(&quoted)
		encoder.SetEscapeHTML(html)
		if encoder.Encode(secret) == nil {
			forms = append(forms, strings.TrimPrefix(strings.TrimSuffix(quoted.String(), "\"\n"), `"`))
		}
	}
	for line := range strings.Lines(secret) {
		if line = strings.TrimSpace(line); len(line) >= minHiddenLine {
			forms = append(forms, line)
		}
	}
	for _, form := range forms {
		if len(form) >= minHidden && !slices.Contains(h.texts, form) {
			h.texts = append(h.texts, form)
		}
	}
}

func (h *hidden) longest() (n int) {
	for _, text := range h.texts {
		n = max(n, len(text))
	}
	return n
}

// replaced hides secrets in a text. Where a text is cut, a part of one may be left at that end.
func (h *hidden) replaced(text string, cutBefore, cutBehind bool) string {
	gone := make([]bool, len(text))
	hide := func(from, to int) {
		for i := from; i < to; i++ {
			gone[i] = true
		}
	}
	for _, secret := range h.texts {
		for from := 0; from < len(text); {
			at := strings.Index(text[from:], secret)
			if at < 0 {
				break
			}
			hide(from+at, from+at+len(secret))
			from += at + 1 // they may overlap
		}
		for n := min(len(secret)-1, len(text)); n >= minHidden; n-- {
			if cutBefore && strings.HasPrefix(text, secret[len(secret)-n:]) {
				hide(0, n)
			}
			if cutBehind && strings.HasSuffix(text, secret[:n]) {
				hide(len(text)-n, len(text))
			}
		}
	}
	var shown strings.Builder
	for i := range len(text) {
		switch {
		case !gone[i]:
			shown.WriteByte(text[i])
		case i == 0 || !gone[i-1]:
			shown.WriteString("***")
		}
	}
	return shown.String()
}
