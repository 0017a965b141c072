"""Made of docs/openapi.json: go test ./internal/tools/clienttypes -update"""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class _ActorNeeded(TypedDict):
    type: str


class Actor(_ActorNeeded, total=False):
    id: str


class _AnswerBodyNeeded(TypedDict):
    token: str
    """the token of a link"""


class AnswerBody(_AnswerBodyNeeded, total=False):
    body: Any
    """any JSON, kept byte by byte; null unless given"""


class _AwaitBodyNeeded(TypedDict):
    signals: list[str]
    """their names"""
    token: str
    """the token of the claim"""


class AwaitBody(_AwaitBodyNeeded, total=False):
    all: bool
    """true: a signal of each name is needed"""
    name: str
    """the identity of the wait for the life of the run; the signals unless given"""
    prompt: str
    """the question to a person"""
    schemas: dict[str, Any]
    """JSON Schemas of bodies by the names of their signals: a body that does not fit is refused to its sender"""
    timeout: str
    """how long to wait, from the first time on; for ever unless given; 0s: not at all"""


class BatchBody(TypedDict):
    runs: list[TriggerBody]
    """the runs to make, 1 to 10,000"""


class BlockBody(TypedDict):
    reason: str
    """what is to be done before an operator resumes the run"""
    token: str
    """the token of the claim"""


class BodyApart(TypedDict):
    bytes: int
    sha256: str


class BulkBody(TypedDict, total=False):
    after: str
    """the field next of the call before, with the same body"""
    all: bool
    """every run there is, in place of a filter"""
    dryRun: bool
    """count what matches, and change nothing"""
    failureCode: str
    """runs whose last failure has this code"""
    limit: int
    """runs in one call; 0 means 1,000"""
    queue: str
    """runs of this queue"""
    reason: str
    """for people, at most 256 bytes; kept with the change"""
    schedule: str
    """runs that this schedule made"""
    since: str
    """runs created from this time on"""
    source: str
    """runs that repeat this one, or that its handler triggered"""
    status: list[Literal["active", "finished", "queued", "scheduled", "running", "cancellation_requested", "retrying", "released", "succeeded", "failed", "cancelled"]]
    """statuses; active and finished stand for several"""
    task: str
    """runs of this task"""
    until: str
    """runs created before this time"""
    waiting: Literal["signal", "input", "children", "ends", "time", "blocked", "anything"]
    """suspended runs that wait for this"""


class _CallBodyNeeded(TypedDict):
    payloads: list[Any]
    """one of each run, any JSON"""
    task: str
    """the task of the runs"""
    token: str
    """the token of the claim"""


class CallBody(_CallBodyNeeded, total=False):
    foreign: bool
    """take the name of the task without looking it up"""
    meta: dict[str, str]
    """kept with each of the runs"""
    name: str
    """the identity of the call in its run; task unless given"""
    queue: str
    """a queue in place of the task's"""


class _CallEndNeeded(TypedDict):
    runId: str
    status: str


class CallEnd(_CallEndNeeded, total=False):
    failure: Failure
    output: Any


class _CalledNeeded(TypedDict):
    calledAt: str
    count: int
    ended: int
    name: str
    taskId: str


class Called(_CalledNeeded, total=False):
    runs: list[Tree]
    statuses: dict[str, int]


class ClaimBody(TypedDict, total=False):
    claimId: str
    """random, of 20 to 100 characters, new for each claim: asking again with it after a lost answer gets the same claim"""
    lease: str
    """until the client gives a sign of life; 5s to 15m, or 1m"""
    queues: list[str]
    """queues to take from; those of the tasks unless given"""
    runId: str
    """the run of a wakeup that the client has received itself"""
    tasks: list[str]
    """what the client executes; all there are unless given"""
    wait: str
    """how long to wait for a run, 20s at most; 20s unless given"""
    worker: str
    """name of the client in leases and events"""


class _ClaimFlowBodyNeeded(TypedDict):
    flowId: str
    """your own id; a second start changes nothing"""
    nodes: list[NodeBody]
    """1 to 1,000 runs"""
    token: str
    """the token of the claim"""


class ClaimFlowBody(_ClaimFlowBodyNeeded, total=False):
    meta: dict[str, str]
    """kept with each of the runs"""


class _ClaimSignalBodyNeeded(TypedDict):
    name: str
    """the name that the run waits for"""
    token: str
    """the token of the claim"""


class ClaimSignalBody(_ClaimSignalBodyNeeded, total=False):
    body: Any
    """any JSON, kept byte by byte; null unless given"""
    flow: str
    """the flow of the node"""
    id: str
    """a second request with it and the same body changes nothing"""
    node: str
    """the name of the node; its latest run gets the signal"""
    runId: str
    """the run; or flow and node"""


class _ClaimTriggerBodyNeeded(TypedDict):
    task: str
    """the task"""
    token: str
    """the token of the claim"""


class ClaimTriggerBody(_ClaimTriggerBodyNeeded, total=False):
    concurrencyKey: str
    """partitions a bounded queue; empty is none"""
    debounce: str
    """the last trigger of this time makes the run, like 10s"""
    debounceKey: str
    """one for all triggers of the task unless given"""
    debounceMax: str
    """from the first trigger on, at the latest"""
    deferred: bool
    """leave the wakeup to the relay or the tick"""
    delay: str
    """before the run starts, like 90s or 2d; this or runAt"""
    foreign: bool
    """take the name of the task without looking it up"""
    idempotencyKey: str
    """a second trigger returns the first run"""
    idempotencyTtl: str
    """how long it is kept: 30d, or while-active"""
    meta: dict[str, str]
    """kept with the run"""
    payload: Any
    """any JSON, kept byte by byte; null unless given"""
    priority: int
    """-8 to 8 among those that wait; the highest goes first"""
    queue: str
    """a queue in place of the task's"""
    returnActive: bool
    """a held singleton key returns its holder"""
    runAt: str
    """the run does not start before"""
    runId: str
    """your own id; a second trigger returns the run"""
    singletonKey: str
    """one run at a time is active; empty is none"""
    strictPayload: bool
    """refuse another payload (scope payloads)"""
    throttle: str
    """the first trigger of this time makes the run, like 1h"""
    throttleKey: str
    """one for all triggers of the task unless given"""
    traceCarrier: dict[str, str]
    """for example a W3C traceparent; the request's unless given"""


class _CompleteBodyNeeded(TypedDict):
    token: str
    """the token of the claim"""


class CompleteBody(_CompleteBodyNeeded, total=False):
    output: Any
    """any JSON, kept byte by byte; none unless given"""


class Counters(TypedDict):
    attempts: int
    failures: int
    releases: int
    retries: int


class _DebouncedNeeded(TypedDict):
    triggers: int


class Debounced(_DebouncedNeeded, total=False):
    latest: str


class _FailBodyNeeded(TypedDict):
    token: str
    """the token of the claim"""


class FailBody(_FailBodyNeeded, total=False):
    after: str
    """when it is tried again, in place of the task's backoff"""
    code: str
    """a code of your own; task_failed unless given"""
    message: str
    """kept in the run for people: leave payloads and secrets out"""
    meta: dict[str, str]
    """kept beside it"""
    permanent: bool
    """true: the run is not tried again"""


class _FailureNeeded(TypedDict):
    code: str
    message: str


class Failure(_FailureNeeded, total=False):
    meta: dict[str, str]


class _FlowBodyNeeded(TypedDict):
    flowId: str
    """your own id; a second start changes nothing"""
    nodes: list[NodeBody]
    """1 to 1,000 runs"""


class FlowBody(_FlowBodyNeeded, total=False):
    meta: dict[str, str]
    """kept with each of the runs"""


class FlowCancelBody(TypedDict, total=False):
    everything: bool
    """true: end nodes that undo, too"""
    reason: str
    """for people, at most 256 bytes; kept with the change"""


class FlowRetryBody(TypedDict, total=False):
    dryRun: bool
    """true: say which nodes would get new runs, and make none"""
    nothingUndone: bool
    """true: nodes that ran because others failed undid nothing"""
    number: int
    """the retry to make, at most once: the flow's retries plus one; 0: the next"""
    reason: str
    """for people, at most 256 bytes; kept with the change"""


class FreeBody(TypedDict):
    idempotencyKey: str
    """the key to free"""
    taskId: str
    """the task"""


class _HeartbeatBodyNeeded(TypedDict):
    token: str
    """the token of the claim"""


class HeartbeatBody(_HeartbeatBodyNeeded, total=False):
    lease: str
    """how long the lease lasts from now on, 5s to 15m; 1m unless given"""


class Keep(TypedDict, total=False):
    cancelled: str
    failed: str
    succeeded: str


class _KeyBodyNeeded(TypedDict):
    taskId: str
    """the task"""


class KeyBody(_KeyBodyNeeded, total=False):
    idempotencyKey: str
    """the key whose owner to find; this or singletonKey"""
    singletonKey: str
    """the key whose active run to find"""


KeyRetention = dict[str, Any]


class _KeyStatsNeeded(TypedDict):
    delayed: int
    key: str
    running: int
    waiting: int


class KeyStats(_KeyStatsNeeded, total=False):
    reserved: int


class Lease(TypedDict):
    expiresAt: str
    token: str
    workerId: str


class _NodeBodyNeeded(TypedDict):
    name: str
    """unique in the flow"""
    task: str
    """the task of the run"""


_NodeBodyWords = TypedDict("_NodeBodyWords", {
    "if": "str",
}, total=False)


class NodeBody(_NodeBodyNeeded, _NodeBodyWords, total=False):
    after: list[str]
    """names of nodes that have to end before; none: at once"""
    foreign: bool
    """take the name of the task without looking it up"""
    meta: dict[str, str]
    """kept with the run"""
    payload: Any
    """any JSON, kept byte by byte; null unless given"""
    priority: int
    """-8 to 8 among those that wait; the highest goes first"""
    queue: str
    """a queue in place of the task's"""


class _NodeSignalBodyNeeded(TypedDict):
    name: str
    """the name that the run waits for"""
    node: str
    """the name of the node; its latest run gets the signal"""


class NodeSignalBody(_NodeSignalBodyNeeded, total=False):
    body: Any
    """any JSON, kept byte by byte; null unless given"""
    id: str
    """a second request with it and the same body changes nothing"""


class _NodeStateNeeded(TypedDict):
    name: str
    runId: str
    taskId: str


_NodeStateWords = TypedDict("_NodeStateWords", {
    "if": "str",
}, total=False)


class NodeState(_NodeStateNeeded, _NodeStateWords, total=False):
    after: list[str]
    attempts: int
    failure: Failure
    outputBytes: int
    retries: int
    status: str
    waiting: Waiting


class OneResult(TypedDict, total=False):
    error: Problem
    line: int
    outcome: str
    payloadDiffers: bool
    runId: str
    status: str
    taskId: str


class _PauseNeeded(TypedDict):
    actor: Actor
    since: str


class Pause(_PauseNeeded, total=False):
    queue: str
    reason: str
    resumedAt: str
    taskId: str
    until: str


class PauseBody(TypedDict, total=False):
    reason: str
    """for people, at most 256 bytes; kept with the change"""
    until: str
    """when the pause ends; without it, it lasts until someone resumes"""


class _ProblemNeeded(TypedDict):
    code: str
    detail: str
    retryable: bool
    status: int
    title: str


class Problem(_ProblemNeeded, total=False):
    conflict: str
    hint: str
    runId: str


class ProgressBody(TypedDict):
    note: str
    """what operators see of the attempt"""
    token: str
    """the token of the claim"""


class _PruneBodyNeeded(TypedDict):
    olderThan: str
    """since they ended, like 90d; 0s: all that did"""


class PruneBody(_PruneBodyNeeded, total=False):
    after: str
    """the field next of the call before, with the same body"""
    dryRun: bool
    """count what would be removed, and remove nothing"""
    limit: int
    """runs in one call; 0 means 100"""
    releaseOwners: bool
    """also runs that retain an idempotency key"""
    status: list[Literal["active", "finished", "queued", "scheduled", "running", "cancellation_requested", "retrying", "released", "succeeded", "failed", "cancelled"]]
    """statuses of finished runs; all three unless given"""


class _QuestionNeeded(TypedDict):
    prompt: str


class Question(_QuestionNeeded, total=False):
    name: str


class ReasonBody(TypedDict, total=False):
    reason: str
    """for people, at most 256 bytes; kept with the change"""


class RecallBody(TypedDict):
    token: str
    """the token of the claim"""


class ReceivedSignal(TypedDict):
    body: Any
    id: str
    name: str


class _ReleaseBodyNeeded(TypedDict):
    token: str
    """the token of the claim"""


class ReleaseBody(_ReleaseBodyNeeded, total=False):
    after: str
    """when the run goes on; at once unless given, as for a client that stops"""
    reason: str
    """kept with the run; only with after"""


class _RunProblemNeeded(TypedDict):
    code: str
    detail: str
    retryable: bool
    runId: str


class RunProblem(_RunProblemNeeded, total=False):
    conflict: str
    hint: str


class Sealed(TypedDict, total=False):
    outputApart: BodyApart
    outputFault: str
    outputKey: str
    payloadApart: BodyApart
    payloadFault: str
    payloadKey: str


class _SignalBodyNeeded(TypedDict):
    name: str
    """the name that the run waits for"""


class SignalBody(_SignalBodyNeeded, total=False):
    body: Any
    """any JSON, kept byte by byte; null unless given"""
    id: str
    """a second request with it and the same body changes nothing"""


SleepBody = TypedDict("SleepBody", {
    "for": "str",
    "name": "str",
    "token": "str",
})


class _SnapshotBodyNeeded(TypedDict):
    name: str
    """the identity of the snapshot for the life of the run"""
    token: str
    """the token of the claim"""


class SnapshotBody(_SnapshotBodyNeeded, total=False):
    value: Any
    """any JSON, kept byte by byte; none unless given"""


class _SourceNeeded(TypedDict):
    type: str


class Source(_SourceNeeded, total=False):
    call: str
    createdAt: str
    depth: int
    fireTime: str
    flowId: str
    node: str
    originId: str
    round: int
    runId: str
    scheduleId: str


class Stage(TypedDict):
    done: int
    failed: int
    more: bool
    name: str
    skipped: int


class _StepBodyNeeded(TypedDict):
    name: str
    """the identity of the step for the life of the run"""
    token: str
    """the token of the claim"""


class StepBody(_StepBodyNeeded, total=False):
    result: Any
    """any JSON, kept byte by byte; none unless given"""


class _TreeNeeded(TypedDict):
    counters: Counters
    createdAt: str
    queue: str
    runId: str
    source: Source
    status: str
    taskId: str


class Tree(_TreeNeeded, total=False):
    calls: list[Called]
    concurrencyKey: str
    dispatchExpiresAt: str
    failure: Failure
    failureCode: str
    finishedAt: str
    priority: int
    runAt: str
    waiting: Waiting


class _TriggerBodyNeeded(TypedDict):
    task: str
    """the task"""


class TriggerBody(_TriggerBodyNeeded, total=False):
    concurrencyKey: str
    """partitions a bounded queue; empty is none"""
    debounce: str
    """the last trigger of this time makes the run, like 10s"""
    debounceKey: str
    """one for all triggers of the task unless given"""
    debounceMax: str
    """from the first trigger on, at the latest"""
    deferred: bool
    """leave the wakeup to the relay or the tick"""
    delay: str
    """before the run starts, like 90s or 2d; this or runAt"""
    foreign: bool
    """take the name of the task without looking it up"""
    idempotencyKey: str
    """a second trigger returns the first run"""
    idempotencyTtl: str
    """how long it is kept: 30d, or while-active"""
    meta: dict[str, str]
    """kept with the run"""
    payload: Any
    """any JSON, kept byte by byte; null unless given"""
    priority: int
    """-8 to 8 among those that wait; the highest goes first"""
    queue: str
    """a queue in place of the task's"""
    returnActive: bool
    """a held singleton key returns its holder"""
    runAt: str
    """the run does not start before"""
    runId: str
    """your own id; a second trigger returns the run"""
    singletonKey: str
    """one run at a time is active; empty is none"""
    strictPayload: bool
    """refuse another payload (scope payloads)"""
    throttle: str
    """the first trigger of this time makes the run, like 1h"""
    throttleKey: str
    """one for all triggers of the task unless given"""
    traceCarrier: dict[str, str]
    """for example a W3C traceparent; the request's unless given"""


_WaitingNeeded = TypedDict("_WaitingNeeded", {
    "for": "list[str]",
})


class Waiting(_WaitingNeeded, total=False):
    all: bool
    names: list[str]
    need: int
    prompt: str
    questions: list[Question]
    schemas: dict[str, Any]
    until: str


class _AttemptNeeded(TypedDict):
    attempt: int
    kind: Literal["attempt"]
    startedAt: str
    status: str
    v: Literal[1]
    """version of the contract"""
    workerId: str


class Attempt(_AttemptNeeded, total=False):
    failure: Failure
    finishedAt: str


class Batch(TypedDict):
    created: int
    existing: int
    failed: int
    kind: Literal["batch"]
    results: list[OneResult]
    v: Literal[1]
    """version of the contract"""


class _BulkNeeded(TypedDict):
    changed: int
    dryRun: bool
    failed: int
    kind: Literal["bulk"]
    matched: int
    skipped: int
    v: Literal[1]
    """version of the contract"""
    verb: str


class Bulk(_BulkNeeded, total=False):
    atLeast: bool
    errors: list[RunProblem]
    next: str


class _CalledObjectNeeded(TypedDict):
    kind: Literal["called"]
    runId: str
    suspended: bool
    v: Literal[1]
    """version of the contract"""


class CalledObject(_CalledObjectNeeded, total=False):
    runs: list[CallEnd]


class _ChangeNeeded(TypedDict):
    kind: Literal["change"]
    runId: str
    v: Literal[1]
    """version of the contract"""


class Change(_ChangeNeeded, total=False):
    dryRun: bool
    existing: bool
    madeRunId: str
    outcome: str
    status: str


class _ClaimNeeded(TypedDict):
    attempt: int
    createdAt: str
    kind: Literal["claim"]
    leaseUntil: str
    payload: Any
    queue: str
    runId: str
    taskId: str
    token: str
    v: Literal[1]
    """version of the contract"""


class Claim(_ClaimNeeded, total=False):
    deadline: str
    meta: dict[str, str]
    traceCarrier: dict[str, str]


class Deadletter(TypedDict):
    attempts: int
    failure: Failure
    kind: Literal["deadletter"]
    outboxId: str
    queue: str
    runId: str
    since: str
    v: Literal[1]
    """version of the contract"""


class _EventNeeded(TypedDict):
    actor: dict[str, Any]
    cursor: str
    """resumes behind this event, with after"""
    data: dict[str, Any]
    """depends on the type"""
    environment: str
    id: str
    kind: Literal["event"]
    occurredAt: str
    runId: str
    sequence: int
    """counted from 1"""
    type: str
    """docs/internals/contract.md lists them; new ones may come"""
    v: Literal[1]
    """version of the contract"""


class Event(_EventNeeded, total=False):
    meta: dict[str, str]
    traceCarrier: dict[str, str]


class _ExplanationNeeded(TypedDict):
    kind: Literal["explanation"]
    next: str
    runId: str
    status: str
    v: Literal[1]
    """version of the contract"""
    wait: str


class Explanation(_ExplanationNeeded, total=False):
    failure: Failure
    holders: list[str]
    owner: Lease
    until: str
    waiting: Waiting


class _FindingNeeded(TypedDict):
    check: str
    kind: Literal["finding"]
    status: str
    v: Literal[1]
    """version of the contract"""


class Finding(_FindingNeeded, total=False):
    cause: str
    code: str
    detail: str
    fix: str


class Fire(TypedDict):
    fireTime: str
    kind: Literal["fire"]
    scheduleId: str
    v: Literal[1]
    """version of the contract"""


class _FlowNeeded(TypedDict):
    createdAt: str
    flowId: str
    kind: Literal["flow"]
    status: str
    v: Literal[1]
    """version of the contract"""


class Flow(_FlowNeeded, total=False):
    cancelled: bool
    finishedAt: str
    nodes: list[NodeState]
    retries: int


class _FlowChangeNeeded(TypedDict):
    flowId: str
    kind: Literal["flow.change"]
    status: str
    v: Literal[1]
    """version of the contract"""


class FlowChange(_FlowChangeNeeded, total=False):
    dryRun: bool
    open: list[str]
    renewed: list[str]


class KeyReset(TypedDict):
    idempotencyKey: str
    kind: Literal["key.reset"]
    taskId: str
    v: Literal[1]
    """version of the contract"""


class LeaseObject(TypedDict):
    cancelRequested: bool
    kind: Literal["lease"]
    leaseUntil: str
    runId: str
    v: Literal[1]
    """version of the contract"""


class _LogNeeded(TypedDict):
    attempt: int
    cursor: str
    kind: Literal["log"]
    v: Literal[1]
    """version of the contract"""


class Log(_LogNeeded, total=False):
    dropped: int
    fault: str
    line: Any


class _OccurrenceNeeded(TypedDict):
    fireTime: str
    kind: Literal["occurrence"]
    scheduleId: str
    v: Literal[1]
    """version of the contract"""


class Occurrence(_OccurrenceNeeded, total=False):
    count: int
    first: str
    runId: str
    skipped: str


class _AttemptPageNeeded(TypedDict):
    items: list[Attempt]
    kind: Literal["page"]
    v: Literal[1]
    """version of the contract"""


class AttemptPage(_AttemptPageNeeded, total=False):
    next: str
    """for after; absent on the last page"""


class _DeadletterPageNeeded(TypedDict):
    items: list[Deadletter]
    kind: Literal["page"]
    v: Literal[1]
    """version of the contract"""


class DeadletterPage(_DeadletterPageNeeded, total=False):
    next: str
    """for after; absent on the last page"""


class _EventPageNeeded(TypedDict):
    items: list[Event]
    kind: Literal["page"]
    v: Literal[1]
    """version of the contract"""


class EventPage(_EventPageNeeded, total=False):
    next: str
    """for after; absent on the last page"""


class _FindingPageNeeded(TypedDict):
    items: list[Finding]
    kind: Literal["page"]
    v: Literal[1]
    """version of the contract"""


class FindingPage(_FindingPageNeeded, total=False):
    next: str
    """for after; absent on the last page"""


class _FirePageNeeded(TypedDict):
    items: list[Fire]
    kind: Literal["page"]
    v: Literal[1]
    """version of the contract"""


class FirePage(_FirePageNeeded, total=False):
    next: str
    """for after; absent on the last page"""


class _FlowPageNeeded(TypedDict):
    items: list[Flow]
    kind: Literal["page"]
    v: Literal[1]
    """version of the contract"""


class FlowPage(_FlowPageNeeded, total=False):
    next: str
    """for after; absent on the last page"""


class _LogPageNeeded(TypedDict):
    items: list[Log]
    kind: Literal["page"]
    v: Literal[1]
    """version of the contract"""


class LogPage(_LogPageNeeded, total=False):
    next: str
    """for after; absent on the last page"""


class _OccurrencePageNeeded(TypedDict):
    items: list[Occurrence]
    kind: Literal["page"]
    v: Literal[1]
    """version of the contract"""


class OccurrencePage(_OccurrencePageNeeded, total=False):
    next: str
    """for after; absent on the last page"""


class _QueuePageNeeded(TypedDict):
    items: list[Queue]
    kind: Literal["page"]
    v: Literal[1]
    """version of the contract"""


class QueuePage(_QueuePageNeeded, total=False):
    next: str
    """for after; absent on the last page"""


class _ReceiptPageNeeded(TypedDict):
    items: list[Receipt]
    kind: Literal["page"]
    v: Literal[1]
    """version of the contract"""


class ReceiptPage(_ReceiptPageNeeded, total=False):
    next: str
    """for after; absent on the last page"""


class _RunSummaryPageNeeded(TypedDict):
    items: list[RunSummary]
    kind: Literal["page"]
    v: Literal[1]
    """version of the contract"""


class RunSummaryPage(_RunSummaryPageNeeded, total=False):
    next: str
    """for after; absent on the last page"""


class _SchedulePageNeeded(TypedDict):
    items: list[Schedule]
    kind: Literal["page"]
    v: Literal[1]
    """version of the contract"""


class SchedulePage(_SchedulePageNeeded, total=False):
    next: str
    """for after; absent on the last page"""


class _StepPageNeeded(TypedDict):
    items: list[Step]
    kind: Literal["page"]
    v: Literal[1]
    """version of the contract"""


class StepPage(_StepPageNeeded, total=False):
    next: str
    """for after; absent on the last page"""


class _TaskPageNeeded(TypedDict):
    items: list[Task]
    kind: Literal["page"]
    v: Literal[1]
    """version of the contract"""


class TaskPage(_TaskPageNeeded, total=False):
    next: str
    """for after; absent on the last page"""


class _PauseObjectNeeded(TypedDict):
    actor: Actor
    kind: Literal["pause"]
    since: str
    v: Literal[1]
    """version of the contract"""


class PauseObject(_PauseObjectNeeded, total=False):
    queue: str
    reason: str
    resumedAt: str
    taskId: str
    until: str


class _ProblemObjectNeeded(TypedDict):
    code: str
    detail: str
    retryable: bool
    status: int
    title: str


class ProblemObject(_ProblemObjectNeeded, total=False):
    conflict: str
    hint: str
    runId: str


class Progress(TypedDict):
    at: str
    attempt: int
    kind: Literal["progress"]
    note: str
    v: Literal[1]
    """version of the contract"""


class _QueueNeeded(TypedDict):
    bound: bool
    concurrency: int
    kind: Literal["queue"]
    known: bool
    queue: str
    v: Literal[1]
    """version of the contract"""


class Queue(_QueueNeeded, total=False):
    burst: int
    carrier: str
    dispatchTimeout: str
    ordered: bool
    pause: Pause
    rate: str
    stored: bool


class _QueueStatsNeeded(TypedDict):
    at: str
    backlog: int
    bound: bool
    concurrency: int
    delayed: int
    inFlight: int
    kind: Literal["queue.stats"]
    known: bool
    queue: str
    running: int
    v: Literal[1]
    """version of the contract"""
    waiting: int


class QueueStats(_QueueStatsNeeded, total=False):
    atLeast: bool
    burst: int
    carrier: str
    dispatchTimeout: str
    keys: list[KeyStats]
    keysAtLeast: bool
    moreKeys: int
    nextDue: str
    oldestWaiting: str
    ordered: bool
    pause: Pause
    rate: str
    reserved: int
    stored: bool


class _ReceiptNeeded(TypedDict):
    attempt: int
    endedAt: str
    kind: Literal["receipt"]
    startedAt: str
    target: str
    v: Literal[1]
    """version of the contract"""


class Receipt(_ReceiptNeeded, total=False):
    body: str
    bodyBytes: int
    command: str
    cut: bool
    exitCode: int
    fault: str
    headers: dict[str, str]
    request: str
    signal: str
    status: int
    stderr: str
    stdout: str


class _RunNeeded(TypedDict):
    counters: Counters
    createdAt: str
    environment: str
    eventSequence: int
    kind: Literal["run"]
    queue: str
    runId: str
    source: Source
    status: str
    taskId: str
    updatedAt: str
    v: Literal[1]
    """version of the contract"""


class Run(_RunNeeded, total=False):
    concurrencyKey: str
    debounced: Debounced
    dispatchExpiresAt: str
    dispatchedAt: str
    failure: Failure
    finishedAt: str
    idempotencyKey: str
    idempotencyRetention: KeyRetention
    lease: Lease
    meta: dict[str, str]
    output: Any
    payload: Any
    priority: int
    runAt: str
    sealed: Sealed
    singletonKey: str
    startedAt: str
    traceCarrier: dict[str, str]
    waiting: Waiting


class _RunSummaryNeeded(TypedDict):
    counters: Counters
    createdAt: str
    kind: Literal["run.summary"]
    queue: str
    runId: str
    source: Source
    status: str
    taskId: str
    v: Literal[1]
    """version of the contract"""


class RunSummary(_RunSummaryNeeded, total=False):
    concurrencyKey: str
    dispatchExpiresAt: str
    failureCode: str
    finishedAt: str
    priority: int
    runAt: str
    waiting: Waiting


class _RunTreeNeeded(TypedDict):
    counters: Counters
    createdAt: str
    kind: Literal["run.tree"]
    queue: str
    runId: str
    source: Source
    status: str
    taskId: str
    v: Literal[1]
    """version of the contract"""


class RunTree(_RunTreeNeeded, total=False):
    calls: list[Called]
    concurrencyKey: str
    dispatchExpiresAt: str
    failure: Failure
    failureCode: str
    finishedAt: str
    priority: int
    runAt: str
    waiting: Waiting


class _ScheduleNeeded(TypedDict):
    definitionHash: str
    kind: Literal["schedule"]
    known: bool
    registeredAt: str
    scheduleId: str
    v: Literal[1]
    """version of the contract"""
    version: int


class Schedule(_ScheduleNeeded, total=False):
    lastEvaluated: str
    lastFire: str
    lastRunId: str
    manualRunIds: list[str]
    next: str
    pauseReason: str
    paused: bool
    pendingFire: str


class _StepNeeded(TypedDict):
    at: str
    attempt: int
    kind: Literal["step"]
    name: str
    stepKind: str
    v: Literal[1]
    """version of the contract"""


class Step(_StepNeeded, total=False):
    fault: str
    result: Any
    startedAt: str
    type: str


class _TaskNeeded(TypedDict):
    concurrency: int
    errorMessages: bool
    idempotencyTtl: str
    keys: list[str]
    kind: Literal["task"]
    known: bool
    maxAttempts: int
    queue: str
    taskId: str
    v: Literal[1]
    """version of the contract"""


class Task(_TaskNeeded, total=False):
    backoff: str
    burst: int
    dispatchTimeout: str
    gone: bool
    keep: Keep
    keepLogs: bool
    pause: Pause
    rate: str
    schema: Any
    seenAt: str
    timeout: str
    version: int


class Tick(TypedDict):
    kind: Literal["tick"]
    more: bool
    stages: list[Stage]
    v: Literal[1]
    """version of the contract"""


class _TriggeredNeeded(TypedDict):
    kind: Literal["triggered"]
    outcome: str
    runId: str
    status: str
    taskId: str
    v: Literal[1]
    """version of the contract"""


class Triggered(_TriggeredNeeded, total=False):
    line: int
    payloadDiffers: bool


class _WaitedNeeded(TypedDict):
    kind: Literal["waited"]
    runId: str
    suspended: bool
    v: Literal[1]
    """version of the contract"""


class Waited(_WaitedNeeded, total=False):
    signals: list[ReceivedSignal]
    timedOut: bool
