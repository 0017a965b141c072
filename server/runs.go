package server

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/apart"
	"github.com/runlane/runlane-go/internal/doctor"
	"github.com/runlane/runlane-go/internal/shown"
)

// filter selects runs by query parameters; filterBody does so in bodies.
type filter struct {
	Queue    runlane.QueueName  `query:"queue" doc:"runs of this queue"`
	Schedule runlane.ScheduleID `query:"schedule" doc:"runs that this schedule made"`
	Source   runlane.RunID      `query:"source" doc:"runs that repeat this one, or that its handler triggered"`
	Status   statusList         `query:"status" doc:"with commas between; active and finished stand for several"`
	Task     runlane.TaskID     `query:"task" doc:"runs of this task"`
	Waiting  runlane.WaitingFor `query:"waiting" doc:"suspended runs that wait for this, like input or signal"`

	FailureCode runlane.ErrorCode `query:"failureCode" doc:"runs whose last failure has this code"`
	Since       time.Time         `query:"since" doc:"runs created from this time on"`
	Until       time.Time         `query:"until" doc:"runs created before this time"`
}

func (f *filter) built() core.RunFilter {
	return core.RunFilter{
		Queue:       f.Queue,
		ScheduleID:  f.Schedule,
		SourceRunID: f.Source,
		Statuses:    f.Status,
		TaskID:      f.Task,
		Waiting:     f.Waiting,

		FailureCode: f.FailureCode,
		Since:       f.Since,
		Until:       f.Until,
	}
}

type paging struct {
	After runlane.Cursor `query:"after" doc:"the field next of the page before, with the same filter"`
	Limit int            `query:"limit" min:"1" max:"500" doc:"how many; 50 unless given"`
}

type oneRun struct {
	Run runlane.RunID `path:"run" doc:"the id of the run"`
}

type listInput struct {
	filter
	paging
}

// emptyPages limits the empty pages skipped for one answer, since many clients take an empty page for the end.
const emptyPages = 10

func listRuns(ctx context.Context, c *call, in *listInput) (*reply, error) {
	options := &core.ListOptions{RunFilter: in.built(), After: in.After, Limit: in.Limit}
	page, err := c.rt.Runs().List(ctx, options)
	for read := 1; err == nil && len(page.Items) == 0 && page.Next != "" && read < emptyPages; read++ {
		options.After = page.Next
		page, err = c.rt.Runs().List(ctx, options)
	}
	if err != nil {
		return nil, err
	}
	return pageOf("run.summary", page.Items, page.Next, asItIs), nil
}

type getInput struct {
	oneRun
	Wait span `query:"wait" doc:"answer when the run has ended, or after this time, 20s at most; without it at once"`
}

func getRun(ctx context.Context, c *call, in *getInput) (*reply, error) {
	if in.Wait < 0 || time.Duration(in.Wait) > MaxWait {
		return nil, badInput("wait is not from 0s to 20s", "ask again to wait longer")
	}
	if in.Wait > 0 {
		waiting, cancel := until(apart.Leave(ctx), time.Duration(in.Wait))
		defer cancel()
		run, err := c.rt.Wait(waiting, in.Run)
		if err == nil {
			return c.shownRun(run), nil
		}
		if waiting.Err() == nil || ctx.Err() != nil {
			return nil, err
		}
	}
	run, err := c.rt.Runs().Get(apart.Leave(ctx), in.Run)
	if err != nil {
		return nil, err
	}
	return c.shownRun(run), nil
}

func (c *call) shownRun(run *runlane.Run) *reply {
	seen := shown.Run(run)
	if c.hides(&c.by) {
		seen.Payload, seen.Output = nil, nil
	}
	return &reply{kind: "run", value: seen, sequence: run.EventSequence}
}

// bodyOperations answer with bytes that the application wrote.
func bodyOperations() []operation {
	return []operation{
		serve(operation{
			method:  "GET",
			path:    "/v1/runs/{run}/payload",
			scope:   ScopeRead,
			also:    ScopePayloads,
			name:    "getPayload",
			group:   "Runs",
			summary: "Get a payload, byte by byte",
			answers: asBytes(),
			tagged:  true,
		}, getPayload),
		serve(operation{
			method:  "GET",
			path:    "/v1/runs/{run}/output",
			scope:   ScopeRead,
			also:    ScopePayloads,
			name:    "getOutput",
			group:   "Runs",
			summary: "Get an output, byte by byte",
			answers: asBytes(),
			tagged:  true,
		}, getOutput),
	}
}

func getPayload(ctx context.Context, c *call, in *oneRun) (*reply, error) {
	return c.bytesOf(ctx, in.Run, "payload", (*runlane.Run).PayloadError, func(run *runlane.Run) []byte {
		return run.Payload
	})
}

func getOutput(ctx context.Context, c *call, in *oneRun) (*reply, error) {
	return c.bytesOf(ctx, in.Run, "output", (*runlane.Run).OutputError, func(run *runlane.Run) []byte {
		return run.Output
	})
}

func (c *call) bytesOf(
	ctx context.Context, id runlane.RunID, what string, fault func(*runlane.Run) error, body func(*runlane.Run) []byte,
) (*reply, error) {
	if c.hidden {
		return nil, refusal(
			http.StatusForbidden,
			codeForbidden,
			"this server shows no payloads and outputs",
			"read it with \"runlane runs get\"",
		)
	}
	run, err := c.rt.Runs().Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := fault(run); err != nil {
		return nil, err
	}
	text := body(run)
	if text == nil {
		return nil, refusal(http.StatusNotFound, string(runlane.ErrRunNotFound), "the run has no "+what, "")
	}
	return &reply{raw: text, sequence: run.EventSequence}, nil
}

type eventsInput struct {
	oneRun
	paging
	Descending bool `query:"descending" doc:"true: the newest first"`
}

func listEvents(ctx context.Context, c *call, in *eventsInput) (*reply, error) {
	options := &core.EventOptions{After: in.After, Descending: in.Descending}
	events, next, err := firstOf(c.rt.Runs().Events(ctx, in.Run, options), in.Limit, core.EventCursor)
	if err != nil {
		return nil, err
	}
	return pageOf("event", events, next, func(e *runlane.EventRecord) any { return shown.EventOf(e) }), nil
}

// firstOf takes a page of what is read item by item. Its cursor is that of the last one, "" if no more come.
func firstOf[T any](
	items iter.Seq2[T, error], limit int, cursor func(*T) runlane.Cursor,
) (page []T, next runlane.Cursor, err error) {
	limit = cmp.Or(limit, runlane.DefaultPageLimit)
	for item, err := range items {
		if err != nil {
			return nil, "", err
		}
		if len(page) == limit {
			return page, cursor(&page[limit-1]), nil
		}
		page = append(page, item)
	}
	return page, "", nil
}

type logsInput struct {
	oneRun
	paging
	Attempt int `query:"attempt" doc:"only this attempt's; all unless given"`
}

func listLogs(ctx context.Context, c *call, in *logsInput) (*reply, error) {
	options := &core.LogOptions{Attempt: in.Attempt, After: in.After}
	cursor := func(l *core.LogLine) runlane.Cursor { return l.Cursor }
	lines, next, err := firstOf(c.rt.Runs().Logs(ctx, in.Run, options), in.Limit, cursor)
	if err != nil {
		return nil, err
	}
	if c.hides(&c.by) {
		for i := range lines {
			lines[i].Line = nil
		}
	}
	return pageOf("log", lines, next, asItIs), nil
}

func listAttempts(ctx context.Context, c *call, in *oneRun) (*reply, error) {
	attempts, err := c.rt.Runs().Attempts(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	return pageOf("attempt", attempts, "", asItIs), nil
}

func explainRun(ctx context.Context, c *call, in *oneRun) (*reply, error) {
	explanation, err := c.rt.Runs().Explain(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	return object("explanation", explanation), nil
}

func getProgress(ctx context.Context, c *call, in *oneRun) (*reply, error) {
	note, err := c.rt.Runs().Progress(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	if note == nil {
		return nil, refusal(
			http.StatusNotFound,
			string(runlane.ErrRunNotFound),
			"no attempt of the run has left a note",
			"",
		)
	}
	return object("progress", note), nil
}

type keyBody struct {
	Task        named[runlane.TaskID] `json:"taskId" required:"true" doc:"the task"`
	Idempotency string                `json:"idempotencyKey" doc:"the key whose owner to find; this or singletonKey"`
	Singleton   string                `json:"singletonKey" doc:"the key whose active run to find"`
}

type keyInput struct {
	Body keyBody `body:"json" required:"true"`
}

// findKey takes the key in the body: keys are often personal data, and proxies log URLs.
func findKey(ctx context.Context, c *call, in *keyInput) (*reply, error) {
	find, key := c.rt.Runs().FindCurrent, in.Body.Idempotency
	if in.Body.Singleton != "" {
		find, key = c.rt.Runs().FindActive, in.Body.Singleton
	}
	if key == "" || in.Body.Idempotency != "" && in.Body.Singleton != "" {
		return nil, badInput("one of idempotencyKey and singletonKey is needed", "give exactly one")
	}
	run, err := find(ctx, in.Body.Task.ID, key)
	if err != nil {
		return nil, err
	}
	return c.shownRun(run), nil
}

type freeBody struct {
	Task named[runlane.TaskID] `json:"taskId" required:"true" doc:"the task"`
	Key  string                `json:"idempotencyKey" required:"true" doc:"the key to free"`
}

type freeInput struct {
	Body freeBody `body:"json" required:"true"`
}

func resetKey(ctx context.Context, c *call, in *freeInput) (*reply, error) {
	if in.Body.Key == "" {
		return nil, badInput("idempotencyKey is missing", "name the key to free")
	}
	if err := c.rt.IdempotencyKeys().Reset(ctx, in.Body.Task.ID, in.Body.Key); err != nil {
		return nil, err
	}
	return object("key.reset", shown.KeyReset{Task: in.Body.Task.ID, Key: in.Body.Key}), nil
}

type nothing struct{}

func listTasks(ctx context.Context, c *call, _ *nothing) (*reply, error) {
	tasks, err := c.rt.Tasks().List(ctx)
	if err != nil {
		return nil, err
	}
	return pageOf("task", tasks, "", func(task *core.TaskState) any { return shown.TaskOf(task, time.Now()) }), nil
}

type oneTask struct {
	Task runlane.TaskID `path:"task" doc:"the name of the task"`
}

// getTask also shows the schema of the task, which may be long.
func getTask(ctx context.Context, c *call, in *oneTask) (*reply, error) {
	tasks, err := c.rt.Tasks().List(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(tasks, func(t core.TaskState) bool { return t.ID == in.Task })
	if i < 0 {
		return nil, refusal(http.StatusNotFound, string(runlane.ErrTaskNotFound),
			"no program of this environment has the task", "GET /v1/tasks lists those that there are")
	}
	task := shown.TaskOf(&tasks[i], time.Now())
	task.Schema = tasks[i].Schema
	return object("task", task), nil
}

func listQueues(ctx context.Context, c *call, _ *nothing) (*reply, error) {
	queues, err := c.rt.Queues().InUse(ctx)
	if err != nil {
		return nil, err
	}
	return pageOf("queue", queues, "", func(state *core.QueueState) any { return shown.QueueOf(state) }), nil
}

type queueInput struct {
	Queue runlane.QueueName `path:"queue" doc:"the name of the queue"`
}

func queueStats(ctx context.Context, c *call, in *queueInput) (*reply, error) {
	stats, err := c.rt.Queues().Stats(ctx, in.Queue)
	if stats == nil {
		return nil, err
	}
	// An error with stats comes from a transport that does not answer; its counts are then -1.
	states, err := c.rt.Queues().InUse(ctx)
	if err != nil {
		return nil, err
	}
	if err := shown.KnownQueue(stats, states); err != nil {
		return nil, err
	}
	return object("queue.stats", shown.StatsOf(stats)), nil
}

func listDeadLetters(ctx context.Context, c *call, in *listInput) (*reply, error) {
	page, err := c.rt.DeadLetters().List(ctx, &core.ListOptions{
		RunFilter: in.built(),
		After:     in.After,
		Limit:     in.Limit,
	})
	if err != nil {
		return nil, err
	}
	return pageOf("deadletter", page.Items, page.Next, asItIs), nil
}

func diagnose(ctx context.Context, c *call, _ *nothing) (*reply, error) {
	findings, err := doctor.Look(ctx, c.rt)
	if err != nil {
		return nil, err
	}
	return pageOf("finding", findings, "", func(f *shown.Finding) any { return f }), nil
}

func tick(ctx context.Context, c *call, _ *nothing) (*reply, error) {
	options := &core.TickOptions{}
	options.Deadline, _ = ctx.Deadline()
	result, err := c.rt.Tick(ctx, options)
	if err != nil {
		return nil, err
	}
	return object("tick", shown.TickOf(result)), nil
}
