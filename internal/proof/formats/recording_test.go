package formats_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
)

// current names the recording that today's code has to repeat. It begins with the number of the format; additions that older programs
// ignore are counted behind a point: 1, 1.1, 1.2, 2 (docs/compatibility.md, Changing a format).
const current = "1"

// releasedFile lists the recordings that belong to a release, with the sum of each: they never change again.
const releasedFile = "testdata/released"

// recording is what one version stored and sent, and when. Items are the whole table.
type recording struct {
	At       time.Time
	Items    []item
	Messages []message
	Lives    []life
}

type item = map[string]types.AttributeValue

// message is a wakeup as SQS gets it.
type message struct {
	At    time.Time         `json:"at"`
	Queue runlane.QueueName `json:"queue"`
	Delay int32             `json:"delay,omitempty"`
	Group string            `json:"group,omitempty"`
	Dedup string            `json:"dedup,omitempty"`
	Body  string            `json:"body"`
}

// life is a run with its history as the recording version showed them, and what has to become of it. Ends is "" for a run whose
// pruning had begun: it only has to go.
type life struct {
	Ends   runlane.Status    `json:"ends,omitempty"`
	Run    json.RawMessage   `json:"run"`
	Events []json.RawMessage `json:"events"`
}

func (l *life) id(t testing.TB) runlane.RunID {
	t.Helper()
	var run struct {
		ID runlane.RunID `json:"runId"`
	}
	if err := json.Unmarshal(l.Run, &run); err != nil || run.ID == "" {
		t.Fatalf("life without a run: %v", err)
	}
	return run.ID
}

// Names of a recording's files.
const (
	atFile       = "at"
	itemsFile    = "items.jsonl"
	messagesFile = "messages.jsonl"
	livesFile    = "lives.jsonl"
	shapesFile   = "shapes"
)

// files are the recording at rest.
func (r *recording) files(t testing.TB) map[string]string {
	t.Helper()
	var items, messages, lives strings.Builder
	for _, it := range r.Items {
		items.WriteString(encodeItem(t, it) + "\n")
	}
	for i := range r.Messages {
		messages.WriteString(encodeJSON(t, r.Messages[i]) + "\n")
	}
	for i := range r.Lives {
		lives.WriteString(encodeJSON(t, r.Lives[i]) + "\n")
	}
	return map[string]string{
		atFile: r.At.Format(time.RFC3339Nano) + "\n", itemsFile: items.String(), messagesFile: messages.String(), livesFile: lives.String(),
		shapesFile: shapesOf(t, r).String(),
	}
}

func folderOf(name string) string { return filepath.Join("testdata", name) }

// recordings are the names of all there are.
func recordings(t testing.TB) (names []string) {
	t.Helper()
	entries, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	if !slices.Contains(names, current) {
		t.Fatalf("there is no recording %s: go test ./internal/proof/formats -run TestRecord -update", current)
	}
	return names
}

func loadRecording(t testing.TB, name string) *recording {
	t.Helper()
	r := &recording{}
	var err error
	if r.At, err = time.Parse(time.RFC3339Nano, strings.TrimSpace(readFile(t, name, atFile))); err != nil {
		t.Fatal(err)
	}
	for _, line := range lines(readFile(t, name, itemsFile)) {
		r.Items = append(r.Items, decodeItem(t, line))
	}
	for _, line := range lines(readFile(t, name, messagesFile)) {
		var m message
		decodeJSON(t, line, &m)
		r.Messages = append(r.Messages, m)
	}
	for _, line := range lines(readFile(t, name, livesFile)) {
		var l life
		decodeJSON(t, line, &l)
		r.Lives = append(r.Lives, l)
	}
	if len(r.Items) == 0 || len(r.Messages) == 0 || len(r.Lives) == 0 {
		t.Fatalf("recording %s has %d items, %d messages, %d lives", name, len(r.Items), len(r.Messages), len(r.Lives))
	}
	return r
}

func readFile(t testing.TB, recording, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(folderOf(recording), file))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func lines(text string) (list []string) {
	scanner := bufio.NewScanner(strings.NewReader(text))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		list = append(list, scanner.Text())
	}
	return list
}

// sumOf is over the names and contents of a recording's files.
func sumOf(t testing.TB, name string) string {
	t.Helper()
	h := sha256.New()
	for _, file := range []string{atFile, itemsFile, messagesFile, livesFile, shapesFile} {
		content := readFile(t, name, file)
		fmt.Fprintf(h, "%s %d\n%s", file, len(content), content)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// released maps the recordings of releases to their sums.
func released(t testing.TB) map[string]string {
	t.Helper()
	b, err := os.ReadFile(releasedFile)
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for _, line := range lines(string(b)) {
		if name, sum, ok := strings.Cut(line, " "); ok && !strings.HasPrefix(line, "#") {
			sums[name] = sum
		}
	}
	return sums
}

func encodeJSON(t testing.TB, v any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}

func decodeJSON(t testing.TB, text string, v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%v in %.200s", err, text)
	}
}
