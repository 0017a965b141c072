package cli

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/shown"
)

// maxInput limits a payload's file. It is above the limit of any storage.
const maxInput = 2 * runlane.MaxPayloadBytes

type triggerFlags struct {
	actor, concurrencyKey, idempotencyKey, queue, runID, singletonKey string
	deferred, foreign, returnActive, strict                           bool
	delay, idempotencyTTL                                             time.Duration
	priority                                                          int
	runAt                                                             time.Time
	debounce                                                          runlane.Debounce
	throttle                                                          runlane.Throttle
	meta, trace                                                       pairs
	given                                                             runlane.TaskKeys // keys that were given, even empty ones
}

// keyFlag is a flag of a key. An empty key means none, but counts as given.
type keyFlag struct {
	into  *string
	given *bool
}

func (k keyFlag) Set(text string) error {
	*k.into, *k.given = text, true
	return nil
}

func (k keyFlag) String() string { return "" }

func (f *triggerFlags) define(set *flag.FlagSet) {
	set.StringVar(&f.actor, "actor", "", "NAME of the actor, kept with the change; else RUNLANE_ACTOR, else USER")
	timeFlag(set, &f.runAt, "at", "TIME before which the run does not start, like 2026-03-01T12:00:00Z")
	set.Var(keyFlag{&f.concurrencyKey, &f.given.Concurrency}, "concurrency-key", "KEY that partitions a bounded queue")
	timeoutFlag(set, &f.debounce.Window, "debounce", "DURATION in which the last trigger makes the run, like 10s")
	set.StringVar(&f.debounce.Key, "debounce-key", "", "KEY of the triggers that make one run; else all of the task")
	timeoutFlag(set, &f.debounce.Max, "debounce-max", "DURATION from the first trigger on, at the latest")
	timeoutFlag(set, &f.throttle.Window, "throttle", "DURATION in which the first trigger makes the run, like 1h")
	set.StringVar(&f.throttle.Key, "throttle-key", "", "KEY of the triggers that make one run; else all of the task")
	set.BoolVar(&f.deferred, "deferred", false, "leave the wakeup to the relay or the tick")
	durationFlag(set, &f.delay, "delay", "DURATION before the run starts, like 90s or 2d")
	set.BoolVar(&f.foreign, "foreign", false, "take the task's name without looking it up")
	set.StringVar(&f.runID, "id", "", "RUN id of your own; a second trigger with it returns the run")
	set.Var(
		keyFlag{&f.idempotencyKey, &f.given.Idempotency},
		"idempotency-key",
		"KEY with which a second trigger returns the first run",
	)
	set.Var(parsed[time.Duration]{into: &f.idempotencyTTL, read: readRetention}, "idempotency-ttl",
		"DURATION for which the key is kept, or while-active")
	set.Var(&f.meta, "meta", "KEY=VALUE kept with the run; repeatable")
	set.IntVar(&f.priority, "priority", 0, "NUMBER from -8 to 8; of the runs that wait, the highest goes first")
	set.StringVar(&f.queue, "queue", "", "QUEUE in place of the task's")
	set.BoolVar(&f.returnActive, "return-active", false, "a held singleton key returns the run that holds it")
	set.Var(keyFlag{&f.singletonKey, &f.given.Singleton}, "singleton-key", "KEY with which one run at a time is active")
	set.BoolVar(&f.strict, "strict-payload", false, "refuse a duplicate with another payload")
	set.Var(&f.trace, "trace", "KEY=VALUE of a trace carrier; repeatable")
}

func readRetention(text string) (time.Duration, error) {
	if text == "while-active" {
		return runlane.WhileActive, nil
	}
	return readTimeout(text)
}

func (f *triggerFlags) options(s *session) (*runlane.TriggerOptions, error) {
	switch {
	case f.debounce != (runlane.Debounce{}) && f.debounce.Window == 0:
		return nil, usagef("give the window; ", "--debounce-key and --debounce-max need --debounce")
	case f.throttle.Key != "" && f.throttle.Window == 0:
		return nil, usagef("give the window; ", "--throttle-key needs --throttle")
	case f.debounce.Window > 0 && f.throttle.Window > 0:
		return nil, usagef("use one of them; ", "--debounce and --throttle exclude each other")
	}
	actor, err := s.actor(f.actor)
	if err != nil {
		return nil, err
	}
	return &runlane.TriggerOptions{
		Actor:          actor,
		ConcurrencyKey: f.concurrencyKey,
		Debounce:       f.debounce,
		Throttle:       f.throttle,
		Deferred:       f.deferred,
		Delay:          f.delay,
		IdempotencyKey: f.idempotencyKey,
		IdempotencyTTL: f.idempotencyTTL,
		Meta:           f.meta,
		Priority:       f.priority,
		Queue:          runlane.Queue{Name: runlane.QueueName(f.queue)},
		ReturnActive:   f.returnActive,
		RunAt:          f.runAt,
		RunID:          runlane.RunID(f.runID),
		SingletonKey:   f.singletonKey,
		StrictPayload:  f.strict,
		TraceCarrier:   f.trace,
	}, nil
}

func triggerCommand() *command {
	return &command{
		name:  "trigger",
		usage: "TASK [JSON|@FILE|-]",
		short: "Start a run, or with --batch many",
		max:   2,
		words: taskNames,
		long: "The payload is JSON, null unless given. A task of another program is found among those that ticks " +
			"have stored (\"tasks list\"); keys computed from the payload have to be given then. With --wait the " +
			"exit code is the run's end: 0 succeeded, 1 failed, 4 cancelled.\n\n--batch reads one object a line, " +
			"like {\"payload\":{\"userId\":\"u_1\"}}: payload, optionally task, queue, runId, idempotencyKey, " +
			"singletonKey, concurrencyKey, priority, delay, runAt, meta. Runs are made several at once, on a lane with " +
			"ordered queues one after the other. An interrupted batch prints how to resume it without making a run " +
			"twice.",
		examples: []string{
			"trigger emails.welcome '{\"userId\":\"u_1\"}' --wait", "trigger emails.welcome @payload.json --delay 10m",
			"trigger emails.welcome --batch users.ndjson --json",
		},
		act: func(flags *flag.FlagSet) action {
			var chosen triggerFlags
			chosen.define(flags)
			batchFile := flags.String("batch", "", "FILE of runs, one JSON object a line; - is stdin")
			batchID := flags.String("batch-id", "", "NAME that an interrupted batch printed, to resume it")
			wait := flags.Bool("wait", false, "follow the run to its end")
			return func(ctx context.Context, s *session, args []string) error {
				if *batchFile != "" {
					if *wait || len(args) > 1 {
						return usagef("", "--batch takes neither a payload nor --wait")
					}
					return s.triggerBatch(ctx, &chosen, append(args, "")[0], *batchFile, *batchID)
				}
				if len(args) == 0 {
					return usagef("", "1 argument is missing: TASK")
				}
				return s.trigger(ctx, &chosen, runlane.TaskID(args[0]), append(args, "")[1], *wait)
			}
		},
	}
}

func (s *session) trigger(
	ctx context.Context, chosen *triggerFlags, task runlane.TaskID, input string, wait bool,
) error {
	payload, err := s.readJSON(ctx, input, "the payload")
	if err != nil {
		return err
	}
	rt, err := s.rt(ctx)
	if err != nil {
		return err
	}
	options, err := chosen.options(s)
	if err != nil {
		return err
	}
	call, err := s.taskBook(rt, chosen.foreign, false).call(ctx, task, payload, options, chosen.given)
	if err != nil {
		return err
	}
	result, err := rt.Trigger(ctx, call, options)
	if err != nil {
		return err
	}
	if err := s.showTriggered(shown.TriggeredOf(result, 0), wait); err != nil {
		return err
	}
	if !wait {
		return nil
	}
	return s.watch(ctx, result.Run.ID)
}

// showTriggered shows the triggered run. If the command waits for it, this is only a note: the finished run is the
// result.
func (s *session) showTriggered(t *shown.Triggered, waiting bool) error {
	text := string(t.Run)
	if t.Outcome == runlane.TriggerReturnedExisting {
		text += " was there already"
	}
	if t.Outcome == runlane.TriggerDebounced {
		text += " waits on, with this payload"
	}
	if t.Differs && t.Outcome == runlane.TriggerReturnedExisting {
		text += ", with another payload"
	}
	switch {
	case s.json && waiting:
		return nil
	case s.json:
		return s.emit("triggered", t)
	case waiting:
		s.note("%s", text)
	default:
		s.line("%s", text)
	}
	return nil
}

// readJSON reads JSON from the argument, the file it names, or stdin. what names the argument in errors.
func (s *session) readJSON(ctx context.Context, input, what string) (json.RawMessage, error) {
	text, where := []byte(input), what
	var err error
	switch {
	case input == "":
		return json.RawMessage("null"), nil
	case input == "-":
		where = "stdin"
		text, err = io.ReadAll(io.LimitReader(s.typed(ctx), maxInput+1))
	case strings.HasPrefix(input, "@"):
		where = input[1:]
		text, err = s.readFile(where)
	}
	if err != nil {
		return nil, usagef("check its name and its permissions", "%s cannot be read: %v", where, err)
	}
	if len(text) > maxInput {
		return nil, usagef(
			"keep large data elsewhere, and its address in the payload",
			"%s has more than %d bytes",
			where,
			maxInput,
		)
	}
	if message, faulty := jsonFault(text); faulty {
		next := "write JSON: a text needs quotes, in a shell '\"text\"'"
		return nil, usagef(next, "%s is not JSON: %s", where, message)
	}
	return json.RawMessage(strings.TrimSpace(string(text))), nil
}
