package hostiletest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/hostiletest"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/sqstransport"
)

var update = flag.Bool("update", false, "write the answers down; read the difference before you keep it")

var noon = hostiletest.Noon

// reader is something that reads texts of others. What it returns is the answer to a text: nil, it was taken.
type reader struct {
	name string
	read func(ctx context.Context, text string) error
}

func readers(t *testing.T) []reader {
	t.Helper()
	storage := memlane.NewStorage(nil)
	rt := open(t, memlane.New())
	raw := runlane.NewTask[json.RawMessage]("hostile", nil)
	typed := runlane.NewTask[struct {
		N int64 `json:"N"`
	}]("hostile", nil)
	attempt := runlane.NewAttempt(runlane.Run{}, 1, runlane.AttemptHost{})
	page := func(text string) lane.PageQuery {
		return lane.PageQuery{Environment: "test", After: runlane.Cursor(text)}
	}
	return []reader{
		{"run id", func(_ context.Context, text string) error { return runlane.RunID(text).Validate() }},
		{"environment", func(_ context.Context, text string) error { return runlane.Environment(text).Validate() }},
		{"key", func(_ context.Context, text string) error { return runlane.ValidateKey("idempotency key", text) }},
		{"duration", func(_ context.Context, text string) error { _, err := runlane.ParseDuration(text); return err }},
		{"cron", func(_ context.Context, text string) error { return runlane.Cron(text).Validate() }},
		{"zone", func(_ context.Context, text string) error { return runlane.Cron("0 * * * *").In(text).Validate() }},
		{"payload", func(_ context.Context, text string) error {
			_, err := raw.With(json.RawMessage(text)).Prepare()
			return err
		}},
		{"payload, decoded", func(_ context.Context, text string) error { _, err := typed.Decode([]byte(text)); return err }},
		{"output", func(_ context.Context, text string) error { return attempt.SetOutput(json.RawMessage(text)) }},
		{"meta", func(ctx context.Context, text string) error {
			_, err := rt.Trigger(ctx, raw.With(json.RawMessage("1")), &runlane.TriggerOptions{Meta: map[string]string{"m": text}})
			return err
		}},
		{"reason of a change", func(ctx context.Context, text string) error {
			_, err := rt.Runs().Cancel(ctx, "run_none", &core.ChangeOptions{Reason: text})
			return unless(runlane.ErrRunNotFound, err)
		}},
		{"message", func(_ context.Context, text string) error { _, err := sqstransport.ParseMessage(text); return err }},
		{"message, its run", func(_ context.Context, text string) error {
			return parsed(`{"v":1,"environment":"test","queue":"q","requestedAt":"2026-03-01T12:00:00Z","runId":` + quoted(text) + `}`)
		}},
		{"message, its trace", func(_ context.Context, text string) error {
			return parsed(`{"v":1,"environment":"test","queue":"q","requestedAt":"2026-03-01T12:00:00Z","runId":"r","traceCarrier":` + text + `}`)
		}},
		{"wakeup", func(ctx context.Context, text string) error {
			w := lane.Wakeup{RunKey: lane.RunKey{Environment: "default", RunID: runlane.RunID(text)}, Queue: "default", RequestedAt: noon}
			_, err := rt.ExecuteDelivery(ctx, w, nil)
			return err
		}},
		{"stream record, its key", func(_ context.Context, text string) error { return image(text, "log:0000000001") }},
		{"stream record, its sequence", func(_ context.Context, text string) error { return image("test:run:r", text) }},
		{"event", func(_ context.Context, text string) error {
			var record runlane.EventRecord
			return json.Unmarshal([]byte(text), &record)
		}},
		{"event, its body", func(_ context.Context, text string) error {
			_, err := runlane.UnmarshalBody(runlane.EventStarted, []byte(text))
			return err
		}},
		{"retention", func(_ context.Context, text string) error {
			return json.Unmarshal([]byte(text), new(runlane.KeyRetention))
		}},
		{"cursor of runs", func(ctx context.Context, text string) error {
			_, err := rt.Runs().List(ctx, &core.ListOptions{After: runlane.Cursor(text)})
			return err
		}},
		{"cursor of events", func(ctx context.Context, text string) error {
			for _, err := range rt.Runs().Events(ctx, "run_none", &core.EventOptions{After: runlane.Cursor(text)}) {
				return unless(runlane.ErrRunNotFound, err)
			}
			return nil
		}},
		{"cursor of a storage", func(ctx context.Context, text string) error {
			_, err := storage.ListRuns(ctx, &lane.RunQuery{PageQuery: page(text)})
			return err
		}},
		{"queues of a deployment", func(_ context.Context, text string) error { _, err := awslane.ParseQueues(text); return err }},
		{"address of a queue", func(_ context.Context, text string) error {
			_, err := sqstransport.New(sqs.New(sqs.Options{}), map[runlane.QueueName]string{"q": text}, nil)
			return err
		}},
		{"name of a signal", func(_ context.Context, text string) error { return runlane.ValidateSignalName(text) }},
		{"name of a call", func(_ context.Context, text string) error { return runlane.ValidateCallName(text) }},
		{"name of a step", func(_ context.Context, text string) error { return runlane.ValidateStepName(text) }},
		{"body of a signal", func(ctx context.Context, text string) error {
			return unless(runlane.ErrRunNotFound, rt.Signal(ctx, "run_none", runlane.NewRawSignal("s", json.RawMessage(text)), nil))
		}},
		{"id of a signal", func(ctx context.Context, text string) error {
			one := runlane.NewRawSignal("s", json.RawMessage("1"))
			return unless(runlane.ErrRunNotFound, rt.Signal(ctx, "run_none", one, &runlane.SignalOptions{ID: text}))
		}},
		{"run of a signal", func(ctx context.Context, text string) error {
			one := runlane.NewRawSignal("s", json.RawMessage("1"))
			return unless(runlane.ErrRunNotFound, rt.Signal(ctx, runlane.RunID(text), one, nil))
		}},
		{"token of an answer", func(ctx context.Context, text string) error {
			return rt.Answer(ctx, text, runlane.NewRawSignal("s", json.RawMessage("1")), nil)
		}},
		{"token of an answer, read", func(_ context.Context, text string) error { _, err := rt.ReadToken(text); return err }},
		{"run of a tree", func(ctx context.Context, text string) error {
			_, err := rt.Runs().Tree(ctx, runlane.RunID(text), nil)
			return unless(runlane.ErrRunNotFound, err)
		}},
		{"command line, a status", command("runs", "list", "--status")},
		{"command line, a time", command("trigger", "hostile", "--at")},
		{"command line, a run", command("runs", "get")},
		{"command line, a batch", func(ctx context.Context, text string) error {
			return run(ctx, text, "trigger", "--foreign", "--batch", "-", "--batch-id", "b")
		}},
	}
}

func open(t *testing.T, l *lane.Lane) *core.Runtime {
	t.Helper()
	rt, err := core.Open(t.Context(), l, &core.Options{TokenKeys: [][]byte{bytes.Repeat([]byte("k"), 32)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close(context.Background()) })
	return rt
}

func unless(code runlane.ErrorCode, err error) error {
	if errors.Is(err, code) {
		return nil
	}
	return err
}

// quoted is a JSON text whose bytes are the text's, where JSON has no need to escape them.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\n", `\n`, "\t", `\t`, "\x00", `\u0000`, "\x1b", `\u001b`, "\a", `\u0007`).Replace(text) + `"`
}

func parsed(message string) error {
	_, err := sqstransport.ParseMessage(message)
	return err
}

func image(pk, sk string) error {
	_, err := dynamostore.ParseStreamImage(map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: pk}, "sk": &types.AttributeValueMemberS{Value: sk},
		dynamostore.RelayAttribute: &types.AttributeValueMemberS{Value: dynamostore.RelayValue},
	})
	return err
}

// command gives a text as the last argument.
func command(arguments ...string) func(context.Context, string) error {
	return func(ctx context.Context, text string) error {
		return run(ctx, "", append(arguments[:len(arguments):len(arguments)], text)...)
	}
}

// run is a command line on an empty lane. Its error is what stands on stderr.
func run(ctx context.Context, stdin string, arguments ...string) error {
	var stderr bytes.Buffer
	code := cli.Run(ctx, func(ctx context.Context) (*core.Runtime, error) { return core.Open(ctx, memlane.New(), nil) }, &cli.Options{
		Name: "runlane",
		Args: arguments, Stdin: strings.NewReader(stdin), Stdout: new(bytes.Buffer), Stderr: &stderr,
		Getenv: func(string) string { return "" }, Setenv: func(string, string) error { return nil },
		Now: func() time.Time { return noon },
	})
	if code == cli.ExitOK {
		return nil
	}
	return fmt.Errorf("exit %d: %s", code, strings.TrimSpace(stderr.String()))
}

// fault is what no answer may be: longer than a screen, or with something in it that a terminal or a log would obey.
func fault(answer string) string {
	if len(answer) > 1200 {
		return fmt.Sprintf("has %d bytes", len(answer))
	}
	if !utf8.ValidString(answer) {
		return "is no UTF-8"
	}
	for _, r := range answer {
		if r != '\n' && !unicode.IsPrint(r) {
			return fmt.Sprintf("has the unprintable character %U", r)
		}
	}
	return ""
}

// Every hostile input gets exactly this answer from every reader. "taken" is one too: the text is harmless there.
func TestInputs_EachGetsItsExactAnswer(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Written by go test ./internal/proof/hostiletest -update. What each reader answers to each hostile input; inputs with the same\n" +
		"# answer stand together. INPUT is the quoted input.\n")
	tried := 0
	for _, reader := range readers(t) {
		answers, order := map[string][]string{}, []string{}
		for _, input := range hostiletest.Inputs() {
			tried++
			answer := "taken"
			if err := reader.read(t.Context(), input.Text); err != nil {
				answer = err.Error()
				if n := len(input.Text); n > 1 && n < 1000 {
					answer = strings.ReplaceAll(answer, fmt.Sprintf("%q", input.Text), "INPUT")
				}
			}
			if wrong := fault(answer); wrong != "" {
				t.Errorf("%s, %s: the answer %s: %.300q", reader.name, input.Name, wrong, answer)
			}
			if answers[answer] == nil {
				order = append(order, answer)
			}
			answers[answer] = append(answers[answer], input.Name)
		}
		fmt.Fprintf(&b, "\n== %s\n", reader.name)
		for _, answer := range order {
			fmt.Fprintf(&b, "%s\n    %s\n", strings.Join(answers[answer], "; "), strings.ReplaceAll(answer, "\n", "\n    "))
		}
	}
	path := filepath.Join("testdata", "answers.golden")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("answers have changed (-want +got)\n%s", diff)
	}
	t.Logf("%d inputs tried", tried)
}
