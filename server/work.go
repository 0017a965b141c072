package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

// Clients in any language execute runs with these routes. The server keeps no state of a claim but its claimId, for a
// repeated request: its token is checked against the lease in the storage, so the claim outlives the server.

// maxPolls limits the waiting claims: each receives from the transport.
const maxPolls = 1000

type claimBody struct {
	Tasks  []named[runlane.TaskID]    `json:"tasks" doc:"what the client executes; all there are unless given"`
	Run    named[runlane.RunID]       `json:"runId" doc:"the run of a wakeup that the client has received itself"`
	Queues []named[runlane.QueueName] `json:"queues" doc:"queues to take from; those of the tasks unless given"`
	Wait   *span                      `json:"wait" doc:"how long to wait for a run, 20s at most; 20s unless given"`
	Lease  *span                      `json:"lease" doc:"until the client gives a sign of life; 5s to 15m, or 1m"`
	ID     string                     `json:"claimId" doc:"random, of 20 to 100 characters, new for each claim: asking again with it after a lost answer gets the same claim"`
	Worker string                     `json:"worker" doc:"name of the client in leases and events"`
}

type claimInput struct {
	Body claimBody `body:"json"`
}

// claimRun answers with a run for the client, or 204 if none came.
func claimRun(ctx context.Context, c *call, in *claimInput) (*reply, error) {
	wait := MaxWait
	if in.Body.Wait != nil {
		wait = time.Duration(*in.Body.Wait)
	}
	if wait < 0 || wait > MaxWait {
		return nil, badInput("wait is not from 0s to 20s", "ask again to wait longer")
	}
	lease, err := leaseOf(in.Body.Lease)
	if err != nil {
		return nil, err
	}
	options := &core.ClaimOptions{
		Lease:    lease,
		Tasks:    idsOf(in.Body.Tasks),
		Queues:   idsOf(in.Body.Queues),
		RunID:    in.Body.Run.ID,
		Wait:     wait,
		WorkerID: c.worker(in.Body.Worker),
		ClaimID:  in.Body.ID,
	}
	if wait == 0 {
		options.Wait = runlane.NoWait
	} else if end, ok := ctx.Deadline(); ok {
		options.Wait = max(min(wait, time.Until(end)-toAnswer), time.Millisecond)
	}
	if c.polls.Add(1) > maxPolls {
		c.polls.Add(-1)
		p := refusal(
			http.StatusServiceUnavailable,
			codeTooManyStreams,
			"too many claims are waiting",
			"ask again later",
		)
		p.Retryable, p.retryAfter = true, 1
		return nil, p
	}
	defer c.polls.Add(-1)
	ctx, stop := c.untilEnding(ctx)
	defer stop()
	claim, err := c.rt.Claim(ctx, options)
	if err != nil && !c.isEnding() {
		return nil, err
	}
	if claim == nil {
		return nothingToDo(c)
	}
	answered := object("claim", shown.ClaimOf(claim))
	answered.run = string(claim.Run.ID)
	return answered, nil
}

// leaseOf returns the given lease, or 0 for core's default.
func leaseOf(given *span) (time.Duration, error) {
	if given == nil {
		return 0, nil
	}
	if *given == 0 {
		return 0, badInput("the lease is 0s", "give 5s to 15m, or leave it out")
	}
	return time.Duration(*given), nil
}

func nothingToDo(c *call) (*reply, error) {
	c.w.WriteHeader(http.StatusNoContent)
	return &reply{streamed: true}, nil
}

// untilEnding returns a context that also ends when the server stops.
func (a *api) untilEnding(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	if a.ending != nil {
		go func() { // ends with the context
			select {
			case <-a.ending:
				stop()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, stop
}

func (a *api) isEnding() bool {
	select {
	case <-a.ending:
		return true
	default:
		return false
	}
}

// inWorker escapes a caller's name, which ends at the first slash of a worker's name.
var inWorker = strings.NewReplacer("%", "%25", "/", "%2F")

// worker prefixes a client's name with its authenticated caller, so that no caller can use another's name.
func (c *call) worker(name string) string {
	switch by := c.by.Actor; {
	case by == runlane.OperatorActor:
		return name
	case name == "":
		return inWorker.Replace(by.ID)
	default:
		return inWorker.Replace(by.ID) + "/" + name
	}
}

func idsOf[T ~string](names []named[T]) (ids []T) {
	for _, name := range names {
		ids = append(ids, name.ID)
	}
	return ids
}

type claimToken struct {
	Token string `json:"token" required:"true" doc:"the token of the claim"`
}

type heartbeatBody struct {
	claimToken
	Lease *span `json:"lease" doc:"how long the lease lasts from now on, 5s to 15m; 1m unless given"`
}

type completeBody struct {
	claimToken
	Output json.RawMessage `json:"output" doc:"any JSON, kept byte by byte; none unless given"`
}

type failBody struct {
	claimToken
	Code      string            `json:"code" doc:"a code of your own; task_failed unless given"`
	Message   string            `json:"message" doc:"kept in the run for people: leave payloads and secrets out"`
	Meta      map[string]string `json:"meta" doc:"kept beside it"`
	Permanent bool              `json:"permanent" doc:"true: the run is not tried again"`
	After     *span             `json:"after" doc:"when it is tried again, in place of the task's backoff"`
}

type releaseBody struct {
	claimToken
	After  *span  `json:"after" doc:"when the run goes on; at once unless given, as for a client that stops"`
	Reason string `json:"reason" doc:"kept with the run; only with after"`
}

type progressBody struct {
	claimToken
	Note string `json:"note" required:"true" doc:"what operators see of the attempt"`
}

type recallBody struct{ claimToken }

type stepBody struct {
	claimToken
	Name   string          `json:"name" required:"true" doc:"the identity of the step for the life of the run"`
	Result json.RawMessage `json:"result" doc:"any JSON, kept byte by byte; none unless given"`
}

type work[Body any] struct {
	Body Body `body:"json" required:"true"`
}

func (t *claimToken) token() string { return t.Token }

func claimHandler[Body any, B interface {
	*Body
	token() string
}](
	do func(ctx context.Context, c *call, claim *core.Claim, body B) (*reply, error),
) func(context.Context, *call, *work[Body]) (*reply, error) {
	return func(ctx context.Context, c *call, in *work[Body]) (*reply, error) {
		body := B(&in.Body)
		if body.token() == "" {
			return nil, badInput("token is missing", "send the token of the claim")
		}
		claim, err := c.rt.ByToken(ctx, body.token())
		if err != nil {
			if e, ok := errors.AsType[*runlane.Error](err); ok {
				c.claimed = e.RunID // for the audit: an expired claim names its run, too
			}
			return nil, err
		}
		c.claimed = claim.Run.ID
		answered, err := do(ctx, c, claim, body)
		if runlane.Suspended(err) { // although the caller asked for no wait
			p := refusal(http.StatusConflict, string(runlane.ErrStorageConflict), "the attempt has ended: a newer "+
				"version of the task has gone on with the run", "start the program of the newer version")
			p.Conflict, p.RunID = runlane.ConflictLeaseOwnership, claim.Run.ID
			return nil, p
		}
		if answered != nil && answered.run == "" && answered.flow == "" {
			answered.run = string(claim.Run.ID)
		}
		return answered, err
	}
}

func heartbeat(ctx context.Context, _ *call, claim *core.Claim, body *heartbeatBody) (*reply, error) {
	lease, err := leaseOf(body.Lease)
	if err == nil {
		err = claim.Heartbeat(ctx, lease)
	}
	if err != nil {
		return nil, err
	}
	return object("lease", shown.LeaseOf(claim)), nil
}

// outcome answers the end of an attempt.
func outcome(claim *core.Claim, err error) (*reply, error) {
	if err != nil {
		return nil, err
	}
	return object("change", &shown.Change{Run: claim.Run.ID, Now: claim.Run.Status}), nil
}

func completeRun(ctx context.Context, _ *call, claim *core.Claim, body *completeBody) (*reply, error) {
	return outcome(claim, claim.Complete(ctx, body.Output))
}

func failRun(ctx context.Context, _ *call, claim *core.Claim, body *failBody) (*reply, error) {
	return outcome(claim, claim.Fail(ctx, &core.ClaimFailure{
		Code:      runlane.ErrorCode(body.Code),
		Message:   body.Message,
		Meta:      body.Meta,
		Permanent: body.Permanent,
		After:     (*time.Duration)(body.After),
	}))
}

func releaseRun(ctx context.Context, _ *call, claim *core.Claim, body *releaseBody) (*reply, error) {
	if body.After == nil {
		if body.Reason != "" {
			return nil, badInput("reason is for a release with after", "leave it out, or say when the run goes on")
		}
		return outcome(claim, claim.Release(ctx, nil))
	}
	delay := time.Duration(*body.After)
	if delay == 0 {
		delay = time.Millisecond // the shortest delay of a release
	}
	return outcome(claim, claim.Release(ctx, &runlane.ReleaseError{Delay: delay, Reason: body.Reason}))
}

func noteProgress(ctx context.Context, _ *call, claim *core.Claim, body *progressBody) (*reply, error) {
	if err := claim.Progress(ctx, body.Note); err != nil {
		return nil, err
	}
	return object("lease", shown.LeaseOf(claim)), nil
}

func recallSteps(ctx context.Context, _ *call, claim *core.Claim, _ *recallBody) (*reply, error) {
	records, err := claim.Steps(ctx)
	if err != nil {
		return nil, err
	}
	return pageOf("step", records, "", asItIs), nil
}

func keepStep(ctx context.Context, _ *call, claim *core.Claim, body *stepBody) (*reply, error) {
	kept, err := claim.Keep(ctx, body.Name, body.Result)
	if err != nil {
		return nil, err
	}
	return object("step", kept), nil
}

func claimRoute[Body any, B interface {
	*Body
	token() string
}](
	path, name, summary, text string, answers []answer,
	do func(ctx context.Context, c *call, claim *core.Claim, body B) (*reply, error),
) operation {
	return serve(operation{
		method:  "POST",
		path:    "/v1/work/" + path,
		scope:   ScopeWork,
		name:    name,
		group:   "Work",
		summary: summary,
		text:    text,
		answers: answers,
		limit:   MaxTriggerBody,
	}, claimHandler(do))
}

func workOperations() []operation {
	change := ok[shown.Change]("change")
	return append([]operation{
		serve(operation{
			method:  "POST",
			path:    "/v1/work/claim",
			scope:   ScopeWork,
			name:    "claimRun",
			group:   "Work",
			summary: "Claim a run to execute",
			text: "The answer is the first due run of the tasks, or 204 if none came in time. The attempt is the " +
				"caller's until the lease ends; later requests with the token are 409 with the conflict " +
				"lease_ownership. With runId the answer comes at once; acknowledge the wakeup after 200 and 204. " +
				"Payloads are included, whatever the server hides elsewhere.",
			answers: append(
				ok[shown.Claim]("claim"),
				answer{status: http.StatusNoContent, text: "no run came in the time"},
			),
		}, claimRun),
		claimRoute("heartbeat", "heartbeat", "Extend the lease of a claim",
			"Three in the time of a lease are usual. With cancelRequested the caller should stop, and release.",
			ok[shown.Lease]("lease"), heartbeat),
		claimRoute("complete", "completeRun", "End an attempt with success", "", change, completeRun),
		claimRoute("fail", "failRun", "End an attempt with a failure",
			"The retries of the task decide whether it is tried again.", change, failRun),
		claimRoute("release", "releaseRun", "Give a claim back",
			"It costs the run no retry. A run that was asked to stop is cancelled by it.", change, releaseRun),
		claimRoute("progress", "noteProgress", "Leave a note about an attempt", "",
			ok[shown.Lease]("lease"), noteProgress),
		claimRoute("steps", "recallSteps", "List what the run of a claim remembers", "",
			many[runlane.StepRecord]("step"), recallSteps),
		claimRoute("step", "keepStep", "Record the result of a step",
			"The first record of a name counts: the answer is the one that is kept.",
			ok[runlane.StepRecord]("step"), keepStep),
		claimRoute("sleep", "sleepRun", "Let a run pause",
			"suspended means that the attempt has ended: the run is claimed again when the time has come, and does not "+
				"sleep again.", ok[shown.Waited]("waited"), sleepRun),
		claimRoute("wait", "awaitSignal", "Let a run wait for signals",
			"suspended means that the attempt has ended: the run is claimed again when a signal came, and finds it.",
			ok[shown.Waited]("waited"), awaitSignal),
	}, makingOperations()...)
}
