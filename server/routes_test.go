package server_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/server"
)

// one is a request for a line of the table.
type one struct {
	path, body string
	status     int      // of the answer
	says       []string // that it has
}

// routeCase are the requests that each line gets. A request without a path has none of this kind.
type routeCase struct {
	sound, wrong, missing one
}

// cases by the names of the lines. "waits" is a run with a delay of an hour, "ended" has an output, "failed" has failed, "asks" waits
// for a signal.
var cases = map[string]routeCase{
	"listRuns": {
		sound: one{"/v1/runs?status=active,failed&limit=2", "", 200, []string{`{"v":1,"kind":"page","items":[{"v":1,"kind":"run.summary","runId":"waits"`}},
		wrong: one{"/v1/runs?status=activ", "", 400, []string{"there is no status", "statuses are active, finished, queued"}},
	},
	"triggerRun": {
		sound:   one{"/v1/runs", `{"task":"mail.welcome","payload":{"a":1},"runId":"mine"}`, 201, []string{`{"v":1,"kind":"triggered","runId":"mine","taskId":"mail.welcome","status":"queued","outcome":"created"}`}},
		wrong:   one{"/v1/runs", `{"tsk":"mail.welcome"}`, 400, []string{`there is no field \"tsk\" here`}},
		missing: one{"/v1/runs", `{"task":"mail.unknown"}`, 404, []string{`"code":"task_not_found"`, "its tasks are mail.alone"}},
	},
	"triggerBatch": {
		sound: one{
			"/v1/batch", `{"runs":[{"task":"mail.welcome","runId":"b1"},{"task":"mail.no"},{"task":"mail.broken","runId":"waits"}]}`, 200,
			[]string{`"created":1,"existing":0,"failed":2`, `{"runId":"b1"`, `"code":"task_not_found"`},
		},
		wrong: one{"/v1/batch", `{"runs":[]}`, 400, []string{"send 1 to 10000"}},
	},
	"getRun": {
		sound:   one{"/v1/runs/ended", "", 200, []string{`{"v":1,"kind":"run","runId":"ended"`, `"status":"succeeded"`}},
		wrong:   one{"/v1/runs/ended?wait=1h", "", 400, []string{"wait is not from 0s to 20s"}},
		missing: one{"/v1/runs/none", "", 404, []string{`"code":"run_not_found"`}},
	},
	"getPayload": {
		sound:   one{"/v1/runs/ended/payload", "", 200, []string{`{ "to":  "ada", "n": 12345678901234567890 }`}},
		wrong:   one{"/v1/runs/ended/payload?all=1", "", 400, []string{"it has no parameters"}},
		missing: one{"/v1/runs/none/payload", "", 404, nil},
	},
	"getOutput": {
		sound:   one{"/v1/runs/ended/output", "", 200, []string{"12345678901234567890"}},
		wrong:   one{"/v1/runs/a%3Ab/output", "", 400, []string{"printable text without ':'"}},
		missing: one{"/v1/runs/waits/output", "", 404, []string{"the run has no output"}},
	},
	"listEvents": {
		sound:   one{"/v1/runs/ended/events?limit=2", "", 200, []string{`{"v":1,"kind":"event","cursor":`, `"type":"run.created"`, `"next":`}},
		wrong:   one{"/v1/runs/ended/events?after=here", "", 400, []string{`"detail":"after is not a cursor of this request"`}},
		missing: one{"/v1/runs/none/events", "", 404, nil},
	},
	"listLogs": {
		sound:   one{"/v1/runs/asks/logs?attempt=1", "", 200, []string{`{"v":1,"kind":"log","attempt":1,"cursor":"`}},
		wrong:   one{"/v1/runs/asks/logs?attempt=-1", "", 400, []string{"attempts count from 1"}},
		missing: one{"/v1/runs/none/logs", "", 404, nil},
	},
	"listAttempts": {
		sound:   one{"/v1/runs/ended/attempts", "", 200, []string{`"kind":"attempt","attempt":1,"status":"succeeded"`}},
		wrong:   one{"/v1/runs/ended/attempts?limit=1", "", 400, nil},
		missing: one{"/v1/runs/none/attempts", "", 404, nil},
	},
	"explainRun": {
		sound:   one{"/v1/runs/waits/explanation", "", 200, []string{`"kind":"explanation"`, `"wait":"time"`}},
		wrong:   one{"/v1/runs/waits/explanation?x", "", 400, nil},
		missing: one{"/v1/runs/none/explanation", "", 404, nil},
	},
	"getProgress": {
		sound:   one{"/v1/runs/ended/progress", "", 200, []string{`"kind":"progress","attempt":1,"note":"half way"`}},
		wrong:   one{"/v1/runs/ended/progress?x=1", "", 400, nil},
		missing: one{"/v1/runs/waits/progress", "", 404, []string{"no attempt of the run has left a note"}},
	},
	"listSteps": {
		sound:   one{"/v1/runs/asks/steps", "", 200, []string{`{"v":1,"kind":"step","name":"looked up","stepKind":"step","attempt":1,`}},
		wrong:   one{"/v1/runs/ended/steps?snapshots=maybe", "", 400, nil},
		missing: one{"/v1/runs/none/steps", "", 404, nil},
	},
	"listReceipts": {
		sound:   one{"/v1/runs/ended/receipts", "", 200, []string{`{"v":1,"kind":"receipt","attempt":1,"target":"http",`, `"request":"POST https://example.com","status":202`}},
		wrong:   one{"/v1/runs/ended/receipts?limit=1", "", 400, nil},
		missing: one{"/v1/runs/none/receipts", "", 404, nil},
	},
	"signalRun": {
		sound:   one{"/v1/runs/asks/signals", `{"name":"approved","body":{"by":"ada"}}`, 200, []string{`{"v":1,"kind":"change","runId":"asks","status":"queued"}`}},
		wrong:   one{"/v1/runs/ended/signals", `{"name":"approved"}`, 409, []string{`"code":"run_ended"`}},
		missing: one{"/v1/runs/none/signals", `{"name":"approved"}`, 404, nil},
	},
	"signalNode": {
		sound:   one{"/v1/flows/release/signals", `{"node":"build","name":"approved","body":{"by":"ada"}}`, 200, []string{`{"v":1,"kind":"change","runId":"run_`, `"status":"queued"}`}},
		wrong:   one{"/v1/flows/release/signals", `{"node":"build","name":"a:b"}`, 400, []string{`"code":"validation_failed"`}},
		missing: one{"/v1/flows/none/signals", `{"node":"a","name":"approved"}`, 404, []string{`"code":"flow_not_found"`}},
	},
	"answerRun": {
		sound: one{"/v1/answers", `{"token":"TOKEN","body":{"by":"ada"}}`, 200, []string{`{"v":1,"kind":"change","runId":"asks","status":"queued"}`}},
		wrong: one{"/v1/answers", `{"token":"rlt1.x.y"}`, 403, []string{`"code":"token_invalid"`}},
	},
	"claimRun": {
		sound:   one{"/v1/work/claim", `{"tasks":["work.resize"],"worker":"py-1","lease":"10s"}`, 200, []string{`{"v":1,"kind":"claim","token":"rlc1.`, `"taskId":"work.resize","queue":"default","attempt":1,"payload":{"n":1},"leaseUntil":`}},
		wrong:   one{"/v1/work/claim", `{"wait":"21s"}`, 400, []string{"wait is not from 0s to 20s"}},
		missing: one{"/v1/work/claim", `{"tasks":["work.none"]}`, 404, []string{`"code":"task_not_found"`}},
	},
	"heartbeat": {
		sound:   one{"/v1/work/heartbeat", `{"token":"CLAIM","lease":"30s"}`, 200, []string{`"kind":"lease","runId":"lent","leaseUntil":`, `"cancelRequested":false`}},
		wrong:   one{"/v1/work/heartbeat", `{"token":"rlc1.x"}`, 403, []string{`"code":"token_invalid"`}},
		missing: one{"/v1/work/heartbeat", `{"token":"rlc1.bGVudA.OTHER"}`, 409, []string{`"conflict":"lease_ownership"`}},
	},
	"completeRun": {
		sound: one{"/v1/work/complete", `{"token":"CLAIM","output":{"n": 12345678901234567890}}`, 200, []string{`"kind":"change","runId":"lent","status":"succeeded"`}},
		wrong: one{"/v1/work/complete", `{"output":1}`, 400, []string{"token is missing"}},
	},
	"failRun": {
		sound: one{"/v1/work/fail", `{"token":"CLAIM","code":"too_dark","message":"no light","permanent":true}`, 200, []string{`"status":"failed"`}},
		wrong: one{"/v1/work/fail", `{"token":"rlc1.bGVudA.OTHER"}`, 409, []string{`"code":"storage_conflict"`, `"retryable":false`}},
	},
	"releaseRun": {
		sound: one{"/v1/work/release", `{"token":"CLAIM","after":"5s","reason":"busy"}`, 200, []string{`"status":"released"`}},
		wrong: one{"/v1/work/release", `{"token":"rlc1.bGVudA.OTHER"}`, 409, nil},
	},
	"noteProgress": {
		sound: one{"/v1/work/progress", `{"token":"CLAIM","note":"half way"}`, 200, []string{`"kind":"lease"`}},
		wrong: one{"/v1/work/progress", `{"token":7}`, 400, nil},
	},
	"recallSteps": {
		sound: one{"/v1/work/steps", `{"token":"CLAIM"}`, 200, []string{`"items":[]`}},
		wrong: one{"/v1/work/steps", `{"token":"CLAIM"}`, 403, nil},
	},
	"keepStep": {
		sound: one{"/v1/work/step", `{"token":"CLAIM","name":"charged","result":{"id":7}}`, 200, []string{`"kind":"step","name":"charged"`, `"result":{"id":7}`}},
		wrong: one{"/v1/work/step", `{"token":"rlc1.bGVudA.OTHER","name":"charged"}`, 409, nil},
	},
	"sleepRun": {
		sound: one{"/v1/work/sleep", `{"token":"CLAIM","name":"nap","for":"1h"}`, 200, []string{`{"v":1,"kind":"waited","runId":"lent","suspended":true}`}},
		wrong: one{"/v1/work/sleep", `{"token":"rlc1.bGVudA.OTHER","name":"nap","for":"soon"}`, 400, nil},
	},
	"awaitSignal": {
		sound: one{"/v1/work/wait", `{"token":"CLAIM","signals":["approved"],"timeout":"1h"}`, 200, []string{`"suspended":true`}},
		wrong: one{"/v1/work/wait", `{"token":"rlc1.bGVudA.OTHER","signals":["approved"]}`, 409, nil},
	},
	"keepSnapshot": {
		sound: one{"/v1/work/snapshot", `{"token":"CLAIM","name":"seen","value":{"id":7}}`, 200, []string{`"kind":"step","name":"seen","stepKind":"snapshot"`, `"result":{"id":7}`}},
		wrong: one{"/v1/work/snapshot", `{"token":"rlc1.bGVudA.OTHER","name":"seen"}`, 409, nil},
	},
	"blockRun": {
		sound: one{"/v1/work/block", `{"token":"CLAIM","reason":"the disk is full"}`, 200, []string{`"kind":"change","runId":"lent","status":"released"`}},
		wrong: one{"/v1/work/block", `{"token":"rlc1.bGVudA.OTHER","reason":"x"}`, 409, nil},
	},
	"triggerByClaim": {
		sound:   one{"/v1/work/trigger", `{"token":"CLAIM","task":"mail.welcome","runId":"follows"}`, 201, []string{`"kind":"triggered","runId":"follows"`}},
		wrong:   one{"/v1/work/trigger", `{"token":"rlc1.bGVudA.OTHER","task":"mail.welcome"}`, 409, nil},
		missing: one{"/v1/work/trigger", `{"token":"rlc1.bm9uZQ.OTHER","task":"mail.welcome"}`, 409, []string{`"conflict":"lease_ownership"`}},
	},
	"signalByClaim": {
		sound: one{"/v1/work/signal", `{"token":"CLAIM","runId":"asks","name":"approved","body":1}`, 200, []string{`"kind":"change","runId":"asks","status":"queued"`}},
		wrong: one{"/v1/work/signal", `{"token":"rlc1.bGVudA.OTHER","name":"approved","runId":"asks"}`, 409, nil},
	},
	"callRuns": {
		sound: one{"/v1/work/call", `{"token":"CLAIM","task":"mail.welcome","payloads":[1,2]}`, 200, []string{`{"v":1,"kind":"called","runId":"lent","suspended":true}`}},
		wrong: one{"/v1/work/call", `{"token":"CLAIM","task":"mail.welcome","payloads":7}`, 400, nil},
	},
	"flowByClaim": {
		sound: one{"/v1/work/flow", `{"token":"CLAIM","flowId":"f","nodes":[{"name":"a","task":"mail.welcome"}]}`, 200, []string{`"kind":"flow","flowId":"f","status":"active"`}},
		wrong: one{"/v1/work/flow", `{"token":"rlc1.bGVudA.OTHER","flowId":"f","nodes":[]}`, 409, nil},
	},
	"startFlow": {
		sound: one{
			"/v1/flows", `{"flowId":"f","nodes":[{"name":"a","task":"mail.welcome","payload":{"n": 1}},{"name":"b","task":"mail.broken","after":["a"],"if":"always"}]}`, 200,
			[]string{`"kind":"flow","flowId":"f","status":"active","nodes":[{"name":"a",`, `"name":"b","after":["a"],"if":"always"`},
		},
		wrong:   one{"/v1/flows", `{"flowId":"f","nodes":[{"name":"a","task":"mail.welcome","after":["b"]}]}`, 400, []string{`"code":"validation_failed"`}},
		missing: one{"/v1/flows", `{"flowId":"f","nodes":[{"name":"a","task":"mail.no"}]}`, 404, []string{`"code":"task_not_found"`}},
	},
	"cancelRun": {
		sound:   one{"/v1/runs/waits/cancel", `{"reason":"too late"}`, 200, []string{`{"v":1,"kind":"change","runId":"waits","status":"cancelled"}`}},
		wrong:   one{"/v1/runs/waits/cancel", `{"reason":"` + strings.Repeat("x", 257) + `"}`, 400, []string{"more than 256 bytes"}},
		missing: one{"/v1/runs/none/cancel", "", 404, nil},
	},
	"resumeRun": {
		sound:   one{"/v1/runs/waits/resume", "", 200, []string{`"status":"queued"`}},
		wrong:   one{"/v1/runs/ended/resume", "", 409, []string{`"code":"validation_failed"`}},
		missing: one{"/v1/runs/none/resume", "", 404, nil},
	},
	"retryRun": {
		sound:   one{"/v1/runs/failed/retry", "", 201, []string{`"madeRunId":`, `"outcome":"created"`}},
		wrong:   one{"/v1/runs/ended/retry", "", 409, nil},
		missing: one{"/v1/runs/none/retry", "", 404, nil},
	},
	"rerunRun": {
		sound:   one{"/v1/runs/ended/rerun", "", 201, []string{`"madeRunId":`}},
		wrong:   one{"/v1/runs/waits/rerun", "", 409, nil},
		missing: one{"/v1/runs/none/rerun", "", 404, nil},
	},
	"listDeadLetters": {
		sound: one{"/v1/deadletters", "", 200, []string{`"items":[]`}},
		wrong: one{"/v1/deadletters?limit=0", "", 400, []string{"limit is not from 1 to 500"}},
	},
	"requeueRun": {
		sound:   one{"/v1/deadletters/waits/requeue", "", 409, []string{`"code":"validation_failed"`}}, // it has no dead letter
		wrong:   one{"/v1/deadletters/waits/requeue", `[1]`, 400, nil},
		missing: one{"/v1/deadletters/none/requeue", "", 404, nil},
	},
	"findKey": {
		sound:   one{"/v1/keys/find", `{"taskId":"mail.welcome","idempotencyKey":"owned"}`, 200, []string{`"runId":"owner"`}},
		wrong:   one{"/v1/keys/find", `{"taskId":"mail.welcome"}`, 400, []string{"give exactly one"}},
		missing: one{"/v1/keys/find", `{"taskId":"mail.alone","singletonKey":"ada"}`, 404, nil},
	},
	"resetKey": {
		sound:   one{"/v1/keys/reset", `{"taskId":"mail.welcome","idempotencyKey":"owned"}`, 200, []string{`{"v":1,"kind":"key.reset","taskId":"mail.welcome","idempotencyKey":"owned"}`}},
		wrong:   one{"/v1/keys/reset", `{"taskId":"mail.welcome"}`, 400, nil},
		missing: one{"/v1/keys/reset", `{"taskId":"mail.welcome","idempotencyKey":"free"}`, 404, nil},
	},
	"listFlows": {
		sound: one{"/v1/flows?status=pending,active&limit=2", "", 200, []string{`{"v":1,"kind":"page","items":[{"v":1,"kind":"flow","flowId":"release","status":"active","createdAt":`}},
		wrong: one{"/v1/flows?status=finished", "", 400, []string{"there is no status", "statuses are pending, active, waiting, completed"}},
	},
	"getFlow": {
		sound: one{"/v1/flows/release?sizes=true", "", 200, []string{
			`{"v":1,"kind":"flow","flowId":"release","status":"active","nodes":[{"name":"build","if":"succeeded","runId":"run_`, `"name":"undo","after":["build"],"if":"failed"`,
		}},
		wrong:   one{"/v1/flows/a%3Ab", "", 400, []string{"printable text without ':'"}},
		missing: one{"/v1/flows/none", "", 404, []string{`"code":"flow_not_found"`}},
	},
	"cancelFlow": {
		sound:   one{"/v1/flows/release/cancel", `{"reason":"wrong branch"}`, 200, []string{`{"v":1,"kind":"flow.change","flowId":"release","status":"cancelled"}`}},
		wrong:   one{"/v1/flows/release/cancel", `{"reason":"` + strings.Repeat("x", 257) + `"}`, 400, []string{"more than 256 bytes"}},
		missing: one{"/v1/flows/none/cancel", "", 404, nil},
	},
	"retryFlow": {
		sound:   one{"/v1/flows/release/retry", `{"dryRun":true}`, 200, []string{`{"v":1,"kind":"flow.change","flowId":"release","status":"cancelled","renewed":["build","undo"],"dryRun":true}`}},
		wrong:   one{"/v1/flows/release/retry", `{"dry":true}`, 400, []string{`there is no field \"dry\" here`}},
		missing: one{"/v1/flows/none/retry", "", 404, nil},
	},
	"getTree": {
		sound:   one{"/v1/runs/ended/tree?each=1", "", 200, []string{`{"v":1,"kind":"run.tree","runId":"ended"`}},
		wrong:   one{"/v1/runs/ended/tree?each=0", "", 400, []string{"each is not from 1 to 1000"}},
		missing: one{"/v1/runs/none/tree", "", 404, []string{`"code":"run_not_found"`}},
	},
	"cancelAll": {
		sound: one{"/v1/bulk/cancel", `{"task":"mail.welcome"}`, 200, []string{`{"v":1,"kind":"bulk","verb":"cancel","dryRun":false,"matched":1,"changed":1,"skipped":0,"failed":0}`}},
		wrong: one{"/v1/bulk/cancel", `{}`, 400, nil},
	},
	"resumeAll": {
		sound: one{"/v1/bulk/resume", `{"all":true}`, 200, []string{`"matched":2,"changed":2`}},
		wrong: one{"/v1/bulk/resume", `{"status":["done"]}`, 400, []string{"there is no status"}},
	},
	"retryAll": {
		sound: one{"/v1/bulk/retry", `{"queue":"slow"}`, 200, []string{`"matched":1,"changed":1`}},
		wrong: one{"/v1/bulk/retry", `{"queue":"slow","limit":1001}`, 400, nil},
	},
	"rerunAll": {
		sound: one{"/v1/bulk/rerun", `{"status":["finished"],"dryRun":true}`, 200, []string{`"dryRun":true,"matched":3,"changed":0`}},
		wrong: one{"/v1/bulk/rerun", `{"all":true,"task":"mail.welcome"}`, 400, nil},
	},
	"requeueAll": {
		sound: one{"/v1/bulk/requeue", `{"all":true}`, 200, []string{`"matched":0`}},
		wrong: one{"/v1/bulk/requeue", ``, 415, nil},
	},
	"pruneRuns": {
		sound: one{"/v1/bulk/prune", `{"olderThan":"0s","status":["failed"]}`, 200, []string{`"verb":"remove"`, `"matched":1,"changed":1`}},
		wrong: one{"/v1/bulk/prune", `{}`, 400, []string{"olderThan is missing"}},
	},
	"listSchedules": {
		sound: one{"/v1/schedules", "", 200, []string{`"kind":"schedule","scheduleId":"nightly"`}},
		wrong: one{"/v1/schedules?after=x", "", 400, nil},
	},
	"getSchedule": {
		sound:   one{"/v1/schedules/nightly", "", 200, []string{`"known":true`}},
		wrong:   one{"/v1/schedules/a%3Ab", "", 400, nil},
		missing: one{"/v1/schedules/none", "", 404, []string{`"code":"schedule_not_found"`}},
	},
	"nextFires": {
		sound:   one{"/v1/schedules/nightly/next?count=2", "", 200, []string{`"kind":"fire","scheduleId":"nightly"`}},
		wrong:   one{"/v1/schedules/nightly/next?count=0", "", 400, nil},
		missing: one{"/v1/schedules/none/next", "", 404, nil},
	},
	"listOccurrences": {
		sound: one{"/v1/schedules/nightly/occurrences?skipped=true", "", 200, []string{`"items":[]`}},
		wrong: one{"/v1/schedules/nigthly/occurrences", "", 404, []string{`"code":"schedule_not_found"`}},
	},
	"pauseSchedule": {
		sound:   one{"/v1/schedules/nightly/pause", `{"reason":"migration"}`, 200, []string{`"paused":true`, `"pauseReason":"migration"`}},
		wrong:   one{"/v1/schedules/nightly/pause", `{"why":"migration"}`, 400, nil},
		missing: one{"/v1/schedules/none/pause", "", 404, nil},
	},
	"resumeSchedule": {
		sound:   one{"/v1/schedules/nightly/resume", "", 200, []string{`"scheduleId":"nightly"`}},
		wrong:   one{"/v1/schedules/nightly/resume", `"now"`, 400, nil},
		missing: one{"/v1/schedules/none/resume", "", 404, nil},
	},
	"triggerSchedule": {
		sound:   one{"/v1/schedules/nightly/trigger", "", 201, []string{`"kind":"triggered"`, `"taskId":"mail.welcome"`}},
		wrong:   one{"/v1/schedules/nightly/trigger", `{"reason":1}`, 400, nil},
		missing: one{"/v1/schedules/none/trigger", "", 404, nil},
	},
	"listTasks": {
		sound: one{"/v1/tasks", "", 200, []string{`"kind":"task","taskId":"mail.alone"`, `"keys":["singleton"]`}},
		wrong: one{"/v1/tasks?limit=3", "", 400, nil},
	},
	"getTask": {
		sound:   one{"/v1/tasks/work.resize", "", 200, []string{`{"v":1,"kind":"task","taskId":"work.resize","queue":"default"`, `"known":true`}},
		wrong:   one{"/v1/tasks/a%3Ab", "", 400, []string{"printable text without ':'"}},
		missing: one{"/v1/tasks/none", "", 404, []string{`"code":"task_not_found"`}},
	},
	"listQueues": {
		sound: one{"/v1/queues", "", 200, []string{`"kind":"queue","queue":"default"`}},
		wrong: one{"/v1/queues?x=1", "", 400, nil},
	},
	"queueStats": {
		sound: one{"/v1/queues/default", "", 200, []string{`"kind":"queue.stats"`, `"delayed":2`}},
		wrong: one{"/v1/queues/emials", "", 404, []string{`"code":"queue_not_found"`}},
	},
	"pauseQueue": {
		sound: one{"/v1/queues/emails/pause", `{"reason":"migration","until":"2036-03-01T12:00:00Z"}`, 200, []string{
			`{"v":1,"kind":"pause","queue":"emails","since":`, `"until":"2036-03-01T12:00:00Z"`, `"reason":"migration"`,
		}},
		wrong: one{"/v1/queues/emails/pause", `{"until":"20:50"}`, 400, []string{`this is not a time: 20:50`}},
	},
	"resumeQueue": {
		sound: one{"/v1/queues/held/resume", "", 200, []string{`"queue":"held"`, `"resumedAt":`}},
		wrong: one{"/v1/queues/held/resume", `"now"`, 400, nil},
	},
	"pauseTask": {
		sound: one{"/v1/tasks/mail.welcome/pause", "", 200, []string{`"kind":"pause","taskId":"mail.welcome"`}},
		wrong: one{"/v1/tasks/mail.welcome/pause", `{"until":"2016-03-01T12:00:00Z"}`, 400, []string{"has passed"}},
	},
	"resumeTask": {
		sound: one{"/v1/tasks/held/resume", "", 200, []string{`"taskId":"held"`, `"resumedAt":`}},
		wrong: one{"/v1/tasks/held/resume", `"now"`, 400, nil},
	},
	"doctor": {
		sound: one{"/v1/doctor", "", 200, []string{
			`"kind":"finding","check":"durability","status":"warning","detail":"runs end with this process or its host","fix":"use a durable lane`,
			`"check":"writing","status":"ok","detail":"writes are allowed; nothing was written"`, `"check":"histories","status":"ok"`,
		}},
		wrong: one{"/v1/doctor", `{}`, 400, []string{"takes no body"}},
	},
	"tick": {
		sound: one{"/v1/tick", "", 200, []string{`"kind":"tick","stages":[{"name":"cancelled"`}},
		wrong: one{"/v1/tick", `{}`, 400, []string{"takes no body"}},
	},
	"streamEvents": {
		sound:   one{"/events?run=ended", "", 200, []string{"retry: 2000\nid: 1\nevent: run.created\ndata: {\"v\":1,\"kind\":\"event\"", "event: run.succeeded\n"}},
		wrong:   one{"/events?run=ended&after=99", "", 400, []string{"the run has no event 99 yet"}},
		missing: one{"/events?run=none", "", 404, nil},
	},
	"metrics": {
		sound: one{"/metrics", "", 200, []string{
			`runlane_queue_delayed{environment="default",queue="default"} 2`, "# TYPE runlane_storage_up gauge\nrunlane_storage_up 1\n",
		}},
		wrong: one{"/metrics?name=x", "", 400, nil},
	},
	"openapi": {
		sound: one{"/openapi.json", "", 200, []string{`"openapi": "3.1.0"`}},
		wrong: one{"/openapi.json?v=2", "", 400, nil},
	},
	"docs": {
		sound: one{"/docs", "", 200, []string{"<h1>Runlane API"}},
		wrong: one{"/docs?x=1", "", 400, nil},
	},
}

// furnished is a world with the runs that the cases name.
func furnished(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, &server.Options{Access: byScope})
	w.trigger(t, welcome, "ended", true)
	w.trigger(t, broken, "failed", true)
	w.trigger(t, welcome, "waits", false)
	w.trigger(t, asking, "asks", true)
	_, err := w.Trigger(t.Context(), welcome.With(json.RawMessage("1")), &runlane.TriggerOptions{RunID: "owner", IdempotencyKey: "owned"})
	if err == nil {
		_, err = w.ExecuteNext(t.Context(), nil)
	}
	if err == nil {
		_, err = w.Queues().Pause(t.Context(), "held", nil)
	}
	if err == nil {
		_, err = w.Tasks().Pause(t.Context(), "held", nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// sound is the line's sound request, after what has to be there before it.
func (w *world) sound(t *testing.T, line server.Line) one {
	t.Helper()
	if line.Scope == server.ScopeWork {
		w.lend(t, line.Name != "claimRun")
	}
	if strings.Contains(line.Path, "/flows") {
		w.startFlow(t)
	}
	if line.Name == "retryFlow" {
		w.ask(t, "POST", "/v1/flows/release/cancel", "").want(t, 200)
	}
	asked := cases[line.Name].sound
	asked.body = strings.NewReplacer("TOKEN", w.token, "CLAIM", w.claim).Replace(asked.body)
	return asked
}

// Every line of the table answers what is sound, wrong, and missing, and refuses callers without its scope.
func TestRoutes_EachLine(t *testing.T) {
	t.Parallel()
	for _, line := range server.Lines() {
		c, ok := cases[line.Name]
		if !ok {
			t.Errorf("%s has no cases", line.Name)
		}
		t.Run(line.Name, func(t *testing.T) {
			t.Parallel()
			w := furnished(t)
			for _, asked := range []one{c.wrong, c.missing} {
				if asked.path != "" {
					w.ask(t, line.Method, asked.path, asked.body).want(t, asked.status, asked.says...)
				}
			}
			for _, needed := range line.Scopes {
				others := without(server.Scopes(), needed)
				w.ask(t, line.Method, c.sound.path, c.sound.body, others...).want(t, 403, "the caller has no scope "+string(needed))
			}
			c.sound = w.sound(t, line)
			w.ask(t, line.Method, c.sound.path, c.sound.body, without(line.Scopes, "")...).want(t, c.sound.status, c.sound.says...)
		})
	}
	for name := range cases {
		if !slices.ContainsFunc(server.Lines(), func(l server.Line) bool { return l.Name == name }) {
			t.Errorf("there is no line %s", name)
		}
	}
}

func TestRoutes_OtherPathsAndMethods(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.ask(t, "GET", "/", "").want(t, 404, `"code":"no_route"`)
	w.ask(t, "GET", "/v1/nothing", "").want(t, 404)
	got := w.ask(t, "DELETE", "/v1/runs", "")
	got.want(t, 405, `"code":"no_method"`)
	if allow := got.header.Get("Allow"); allow != "GET, HEAD, POST" {
		t.Errorf("Allow is %q", allow)
	}
	if got := w.ask(t, "HEAD", "/v1/runs", ""); got.status != 200 || got.text != "" || got.header.Get("Content-Length") == "0" {
		t.Errorf("HEAD: %d %q", got.status, got.text)
	}
	w.ask(t, "POST", "/healthz", "").want(t, 405)
	for _, path := range []string{"/healthz", "/readyz"} { // a probe has no token, and any host
		w.ask(t, "GET", path, "", "Host: 10.1.2.3", "Peer: 10.0.0.1:1").want(t, 200, "ok\n")
	}
}

func TestPrefix_MountsEverythingBelow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &server.Options{Prefix: "/runlane"})
	w.ask(t, "GET", "/v1/runs", "").want(t, 404)
	w.ask(t, "GET", "/runlanes/v1/runs", "").want(t, 404)
	w.ask(t, "GET", "/runlane/v1/runs", "").want(t, 200)
	w.ask(t, "GET", "/runlane/healthz", "").want(t, 200)
	w.ask(t, "GET", "/runlane/openapi.json", "").want(t, 200, `"url": "/runlane/"`)
	made := w.ask(t, "POST", "/runlane/v1/runs", `{"task":"mail.welcome","runId":"a/b c"}`)
	made.want(t, 201)
	place := made.header.Get("Location")
	if place != "/runlane/v1/runs/a%2Fb%20c" {
		t.Errorf("Location is %q", place)
	}
	w.ask(t, "GET", place, "").want(t, 200, `"runId":"a/b c"`)
	for _, prefix := range []string{"runlane", "/runlane/", "/"} {
		if _, err := server.New(w.Runtime, &server.Options{Prefix: prefix}); runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
			t.Errorf("%q: %v", prefix, err)
		}
	}
	if _, err := server.New(nil, nil); runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
		t.Errorf("no runtime: %v", err)
	}
}
