// Made of docs/openapi.json: go test ./internal/tools/clienttypes -update

export interface Actor {
  id?: string;
  type: string;
}

export interface AnswerBody {
  /** any JSON, kept byte by byte; null unless given */
  body?: unknown;
  /** the token of a link */
  token: string;
}

export interface AwaitBody {
  /** true: a signal of each name is needed */
  all?: boolean;
  /** the identity of the wait for the life of the run; the signals unless given */
  name?: string;
  /** the question to a person */
  prompt?: string;
  /** JSON Schemas of bodies by the names of their signals: a body that does not fit is refused to its sender */
  schemas?: Record<string, unknown>;
  /** their names */
  signals: string[];
  /** how long to wait, from the first time on; for ever unless given; 0s: not at all */
  timeout?: string;
  /** the token of the claim */
  token: string;
}

export interface BatchBody {
  /** the runs to make, 1 to 10,000 */
  runs: TriggerBody[];
}

export interface BlockBody {
  /** what is to be done before an operator resumes the run */
  reason: string;
  /** the token of the claim */
  token: string;
}

export interface BodyApart {
  bytes: number;
  sha256: string;
}

export interface BulkBody {
  /** the field next of the call before, with the same body */
  after?: string;
  /** every run there is, in place of a filter */
  all?: boolean;
  /** count what matches, and change nothing */
  dryRun?: boolean;
  /** runs whose last failure has this code */
  failureCode?: string;
  /** runs in one call; 0 means 1,000 */
  limit?: number;
  /** runs of this queue */
  queue?: string;
  /** for people, at most 256 bytes; kept with the change */
  reason?: string;
  /** runs that this schedule made */
  schedule?: string;
  /** runs created from this time on */
  since?: string;
  /** runs that repeat this one, or that its handler triggered */
  source?: string;
  /** statuses; active and finished stand for several */
  status?: ("active" | "finished" | "queued" | "scheduled" | "running" | "cancellation_requested" | "retrying" | "released" | "succeeded" | "failed" | "cancelled")[];
  /** runs of this task */
  task?: string;
  /** runs created before this time */
  until?: string;
  /** suspended runs that wait for this */
  waiting?: ("signal" | "input" | "children" | "ends" | "time" | "blocked" | "anything");
}

export interface CallBody {
  /** take the name of the task without looking it up */
  foreign?: boolean;
  /** kept with each of the runs */
  meta?: Record<string, string>;
  /** the identity of the call in its run; task unless given */
  name?: string;
  /** one of each run, any JSON */
  payloads: unknown[];
  /** a queue in place of the task's */
  queue?: string;
  /** the task of the runs */
  task: string;
  /** the token of the claim */
  token: string;
}

export interface CallEnd {
  failure?: Failure;
  output?: unknown;
  runId: string;
  status: string;
}

export interface Called {
  calledAt: string;
  count: number;
  ended: number;
  name: string;
  runs?: Tree[];
  statuses?: Record<string, number>;
  taskId: string;
}

export interface ClaimBody {
  /** random, of 20 to 100 characters, new for each claim: asking again with it after a lost answer gets the same claim */
  claimId?: string;
  /** until the client gives a sign of life; 5s to 15m, or 1m */
  lease?: string;
  /** queues to take from; those of the tasks unless given */
  queues?: string[];
  /** the run of a wakeup that the client has received itself */
  runId?: string;
  /** what the client executes; all there are unless given */
  tasks?: string[];
  /** how long to wait for a run, 20s at most; 20s unless given */
  wait?: string;
  /** name of the client in leases and events */
  worker?: string;
}

export interface ClaimFlowBody {
  /** your own id; a second start changes nothing */
  flowId: string;
  /** kept with each of the runs */
  meta?: Record<string, string>;
  /** 1 to 1,000 runs */
  nodes: NodeBody[];
  /** the token of the claim */
  token: string;
}

export interface ClaimSignalBody {
  /** any JSON, kept byte by byte; null unless given */
  body?: unknown;
  /** the flow of the node */
  flow?: string;
  /** a second request with it and the same body changes nothing */
  id?: string;
  /** the name that the run waits for */
  name: string;
  /** the name of the node; its latest run gets the signal */
  node?: string;
  /** the run; or flow and node */
  runId?: string;
  /** the token of the claim */
  token: string;
}

export interface ClaimTriggerBody {
  /** partitions a bounded queue; empty is none */
  concurrencyKey?: string;
  /** the last trigger of this time makes the run, like 10s */
  debounce?: string;
  /** one for all triggers of the task unless given */
  debounceKey?: string;
  /** from the first trigger on, at the latest */
  debounceMax?: string;
  /** leave the wakeup to the relay or the tick */
  deferred?: boolean;
  /** before the run starts, like 90s or 2d; this or runAt */
  delay?: string;
  /** take the name of the task without looking it up */
  foreign?: boolean;
  /** a second trigger returns the first run */
  idempotencyKey?: string;
  /** how long it is kept: 30d, or while-active */
  idempotencyTtl?: string;
  /** kept with the run */
  meta?: Record<string, string>;
  /** any JSON, kept byte by byte; null unless given */
  payload?: unknown;
  /** -8 to 8 among those that wait; the highest goes first */
  priority?: number;
  /** a queue in place of the task's */
  queue?: string;
  /** a held singleton key returns its holder */
  returnActive?: boolean;
  /** the run does not start before */
  runAt?: string;
  /** your own id; a second trigger returns the run */
  runId?: string;
  /** one run at a time is active; empty is none */
  singletonKey?: string;
  /** refuse another payload (scope payloads) */
  strictPayload?: boolean;
  /** the task */
  task: string;
  /** the first trigger of this time makes the run, like 1h */
  throttle?: string;
  /** one for all triggers of the task unless given */
  throttleKey?: string;
  /** the token of the claim */
  token: string;
  /** for example a W3C traceparent; the request's unless given */
  traceCarrier?: Record<string, string>;
}

export interface CompleteBody {
  /** any JSON, kept byte by byte; none unless given */
  output?: unknown;
  /** the token of the claim */
  token: string;
}

export interface Counters {
  attempts: number;
  failures: number;
  releases: number;
  retries: number;
}

export interface Debounced {
  latest?: string;
  triggers: number;
}

export interface FailBody {
  /** when it is tried again, in place of the task's backoff */
  after?: string;
  /** a code of your own; task_failed unless given */
  code?: string;
  /** kept in the run for people: leave payloads and secrets out */
  message?: string;
  /** kept beside it */
  meta?: Record<string, string>;
  /** true: the run is not tried again */
  permanent?: boolean;
  /** the token of the claim */
  token: string;
}

export interface Failure {
  code: string;
  message: string;
  meta?: Record<string, string>;
}

export interface FlowBody {
  /** your own id; a second start changes nothing */
  flowId: string;
  /** kept with each of the runs */
  meta?: Record<string, string>;
  /** 1 to 1,000 runs */
  nodes: NodeBody[];
}

export interface FlowCancelBody {
  /** true: end nodes that undo, too */
  everything?: boolean;
  /** for people, at most 256 bytes; kept with the change */
  reason?: string;
}

export interface FlowRetryBody {
  /** true: say which nodes would get new runs, and make none */
  dryRun?: boolean;
  /** true: nodes that ran because others failed undid nothing */
  nothingUndone?: boolean;
  /** the retry to make, at most once: the flow's retries plus one; 0: the next */
  number?: number;
  /** for people, at most 256 bytes; kept with the change */
  reason?: string;
}

export interface FreeBody {
  /** the key to free */
  idempotencyKey: string;
  /** the task */
  taskId: string;
}

export interface HeartbeatBody {
  /** how long the lease lasts from now on, 5s to 15m; 1m unless given */
  lease?: string;
  /** the token of the claim */
  token: string;
}

export interface Keep {
  cancelled?: string;
  failed?: string;
  succeeded?: string;
}

export interface KeyBody {
  /** the key whose owner to find; this or singletonKey */
  idempotencyKey?: string;
  /** the key whose active run to find */
  singletonKey?: string;
  /** the task */
  taskId: string;
}

export type KeyRetention = Record<string, unknown>;

export interface KeyStats {
  delayed: number;
  key: string;
  reserved?: number;
  running: number;
  waiting: number;
}

export interface Lease {
  expiresAt: string;
  token: string;
  workerId: string;
}

export interface NodeBody {
  /** names of nodes that have to end before; none: at once */
  after?: string[];
  /** take the name of the task without looking it up */
  foreign?: boolean;
  /** the required ends of these: succeeded, failed, always */
  if?: string;
  /** kept with the run */
  meta?: Record<string, string>;
  /** unique in the flow */
  name: string;
  /** any JSON, kept byte by byte; null unless given */
  payload?: unknown;
  /** -8 to 8 among those that wait; the highest goes first */
  priority?: number;
  /** a queue in place of the task's */
  queue?: string;
  /** the task of the run */
  task: string;
}

export interface NodeSignalBody {
  /** any JSON, kept byte by byte; null unless given */
  body?: unknown;
  /** a second request with it and the same body changes nothing */
  id?: string;
  /** the name that the run waits for */
  name: string;
  /** the name of the node; its latest run gets the signal */
  node: string;
}

export interface NodeState {
  after?: string[];
  attempts?: number;
  failure?: Failure;
  if?: string;
  name: string;
  outputBytes?: number;
  retries?: number;
  runId: string;
  status?: string;
  taskId: string;
  waiting?: Waiting;
}

export interface OneResult {
  error?: Problem;
  line?: number;
  outcome?: string;
  payloadDiffers?: boolean;
  runId?: string;
  status?: string;
  taskId?: string;
}

export interface Pause {
  actor: Actor;
  queue?: string;
  reason?: string;
  resumedAt?: string;
  since: string;
  taskId?: string;
  until?: string;
}

export interface PauseBody {
  /** for people, at most 256 bytes; kept with the change */
  reason?: string;
  /** when the pause ends; without it, it lasts until someone resumes */
  until?: string;
}

export interface Problem {
  code: string;
  conflict?: string;
  detail: string;
  hint?: string;
  retryable: boolean;
  runId?: string;
  status: number;
  title: string;
}

export interface ProgressBody {
  /** what operators see of the attempt */
  note: string;
  /** the token of the claim */
  token: string;
}

export interface PruneBody {
  /** the field next of the call before, with the same body */
  after?: string;
  /** count what would be removed, and remove nothing */
  dryRun?: boolean;
  /** runs in one call; 0 means 100 */
  limit?: number;
  /** since they ended, like 90d; 0s: all that did */
  olderThan: string;
  /** also runs that retain an idempotency key */
  releaseOwners?: boolean;
  /** statuses of finished runs; all three unless given */
  status?: ("active" | "finished" | "queued" | "scheduled" | "running" | "cancellation_requested" | "retrying" | "released" | "succeeded" | "failed" | "cancelled")[];
}

export interface Question {
  name?: string;
  prompt: string;
}

export interface ReasonBody {
  /** for people, at most 256 bytes; kept with the change */
  reason?: string;
}

export interface RecallBody {
  /** the token of the claim */
  token: string;
}

export interface ReceivedSignal {
  body: unknown;
  id: string;
  name: string;
}

export interface ReleaseBody {
  /** when the run goes on; at once unless given, as for a client that stops */
  after?: string;
  /** kept with the run; only with after */
  reason?: string;
  /** the token of the claim */
  token: string;
}

export interface RunProblem {
  code: string;
  conflict?: string;
  detail: string;
  hint?: string;
  retryable: boolean;
  runId: string;
}

export interface Sealed {
  outputApart?: BodyApart;
  outputFault?: string;
  outputKey?: string;
  payloadApart?: BodyApart;
  payloadFault?: string;
  payloadKey?: string;
}

export interface SignalBody {
  /** any JSON, kept byte by byte; null unless given */
  body?: unknown;
  /** a second request with it and the same body changes nothing */
  id?: string;
  /** the name that the run waits for */
  name: string;
}

export interface SleepBody {
  /** how long, from the first time on */
  for: string;
  /** the identity of the pause for the life of the run */
  name: string;
  /** the token of the claim */
  token: string;
}

export interface SnapshotBody {
  /** the identity of the snapshot for the life of the run */
  name: string;
  /** the token of the claim */
  token: string;
  /** any JSON, kept byte by byte; none unless given */
  value?: unknown;
}

export interface Source {
  call?: string;
  createdAt?: string;
  depth?: number;
  fireTime?: string;
  flowId?: string;
  node?: string;
  originId?: string;
  round?: number;
  runId?: string;
  scheduleId?: string;
  type: string;
}

export interface Stage {
  done: number;
  failed: number;
  more: boolean;
  name: string;
  skipped: number;
}

export interface StepBody {
  /** the identity of the step for the life of the run */
  name: string;
  /** any JSON, kept byte by byte; none unless given */
  result?: unknown;
  /** the token of the claim */
  token: string;
}

export interface Tree {
  calls?: Called[];
  concurrencyKey?: string;
  counters: Counters;
  createdAt: string;
  dispatchExpiresAt?: string;
  failure?: Failure;
  failureCode?: string;
  finishedAt?: string;
  priority?: number;
  queue: string;
  runAt?: string;
  runId: string;
  source: Source;
  status: string;
  taskId: string;
  waiting?: Waiting;
}

export interface TriggerBody {
  /** partitions a bounded queue; empty is none */
  concurrencyKey?: string;
  /** the last trigger of this time makes the run, like 10s */
  debounce?: string;
  /** one for all triggers of the task unless given */
  debounceKey?: string;
  /** from the first trigger on, at the latest */
  debounceMax?: string;
  /** leave the wakeup to the relay or the tick */
  deferred?: boolean;
  /** before the run starts, like 90s or 2d; this or runAt */
  delay?: string;
  /** take the name of the task without looking it up */
  foreign?: boolean;
  /** a second trigger returns the first run */
  idempotencyKey?: string;
  /** how long it is kept: 30d, or while-active */
  idempotencyTtl?: string;
  /** kept with the run */
  meta?: Record<string, string>;
  /** any JSON, kept byte by byte; null unless given */
  payload?: unknown;
  /** -8 to 8 among those that wait; the highest goes first */
  priority?: number;
  /** a queue in place of the task's */
  queue?: string;
  /** a held singleton key returns its holder */
  returnActive?: boolean;
  /** the run does not start before */
  runAt?: string;
  /** your own id; a second trigger returns the run */
  runId?: string;
  /** one run at a time is active; empty is none */
  singletonKey?: string;
  /** refuse another payload (scope payloads) */
  strictPayload?: boolean;
  /** the task */
  task: string;
  /** the first trigger of this time makes the run, like 1h */
  throttle?: string;
  /** one for all triggers of the task unless given */
  throttleKey?: string;
  /** for example a W3C traceparent; the request's unless given */
  traceCarrier?: Record<string, string>;
}

export interface Waiting {
  all?: boolean;
  for: string[];
  names?: string[];
  need?: number;
  prompt?: string;
  questions?: Question[];
  schemas?: Record<string, unknown>;
  until?: string;
}

export interface Attempt {
  attempt: number;
  failure?: Failure;
  finishedAt?: string;
  kind: "attempt";
  startedAt: string;
  status: string;
  /** version of the contract */
  v: 1;
  workerId: string;
}

export interface Batch {
  created: number;
  existing: number;
  failed: number;
  kind: "batch";
  results: OneResult[];
  /** version of the contract */
  v: 1;
}

export interface Bulk {
  atLeast?: boolean;
  changed: number;
  dryRun: boolean;
  errors?: RunProblem[];
  failed: number;
  kind: "bulk";
  matched: number;
  next?: string;
  skipped: number;
  /** version of the contract */
  v: 1;
  verb: string;
}

export interface CalledObject {
  kind: "called";
  runId: string;
  runs?: CallEnd[];
  suspended: boolean;
  /** version of the contract */
  v: 1;
}

export interface Change {
  dryRun?: boolean;
  existing?: boolean;
  kind: "change";
  madeRunId?: string;
  outcome?: string;
  runId: string;
  status?: string;
  /** version of the contract */
  v: 1;
}

export interface Claim {
  attempt: number;
  createdAt: string;
  deadline?: string;
  kind: "claim";
  leaseUntil: string;
  meta?: Record<string, string>;
  payload: unknown;
  queue: string;
  runId: string;
  taskId: string;
  token: string;
  traceCarrier?: Record<string, string>;
  /** version of the contract */
  v: 1;
}

export interface Deadletter {
  attempts: number;
  failure: Failure;
  kind: "deadletter";
  outboxId: string;
  queue: string;
  runId: string;
  since: string;
  /** version of the contract */
  v: 1;
}

export interface Event {
  actor: Record<string, unknown>;
  /** resumes behind this event, with after */
  cursor: string;
  /** depends on the type */
  data: Record<string, unknown>;
  environment: string;
  id: string;
  kind: "event";
  meta?: Record<string, string>;
  occurredAt: string;
  runId: string;
  /** counted from 1 */
  sequence: number;
  traceCarrier?: Record<string, string>;
  /** docs/internals/contract.md lists them; new ones may come */
  type: string;
  /** version of the contract */
  v: 1;
}

export interface Explanation {
  failure?: Failure;
  holders?: string[];
  kind: "explanation";
  next: string;
  owner?: Lease;
  runId: string;
  status: string;
  until?: string;
  /** version of the contract */
  v: 1;
  wait: string;
  waiting?: Waiting;
}

export interface Finding {
  cause?: string;
  check: string;
  code?: string;
  detail?: string;
  fix?: string;
  kind: "finding";
  status: string;
  /** version of the contract */
  v: 1;
}

export interface Fire {
  fireTime: string;
  kind: "fire";
  scheduleId: string;
  /** version of the contract */
  v: 1;
}

export interface Flow {
  cancelled?: boolean;
  createdAt: string;
  finishedAt?: string;
  flowId: string;
  kind: "flow";
  nodes?: NodeState[];
  retries?: number;
  status: string;
  /** version of the contract */
  v: 1;
}

export interface FlowChange {
  dryRun?: boolean;
  flowId: string;
  kind: "flow.change";
  open?: string[];
  renewed?: string[];
  status: string;
  /** version of the contract */
  v: 1;
}

export interface KeyReset {
  idempotencyKey: string;
  kind: "key.reset";
  taskId: string;
  /** version of the contract */
  v: 1;
}

export interface LeaseObject {
  cancelRequested: boolean;
  kind: "lease";
  leaseUntil: string;
  runId: string;
  /** version of the contract */
  v: 1;
}

export interface Log {
  attempt: number;
  cursor: string;
  dropped?: number;
  fault?: string;
  kind: "log";
  line?: unknown;
  /** version of the contract */
  v: 1;
}

export interface Occurrence {
  count?: number;
  fireTime: string;
  first?: string;
  kind: "occurrence";
  runId?: string;
  scheduleId: string;
  skipped?: string;
  /** version of the contract */
  v: 1;
}

export interface AttemptPage {
  items: Attempt[];
  kind: "page";
  /** for after; absent on the last page */
  next?: string;
  /** version of the contract */
  v: 1;
}

export interface DeadletterPage {
  items: Deadletter[];
  kind: "page";
  /** for after; absent on the last page */
  next?: string;
  /** version of the contract */
  v: 1;
}

export interface EventPage {
  items: Event[];
  kind: "page";
  /** for after; absent on the last page */
  next?: string;
  /** version of the contract */
  v: 1;
}

export interface FindingPage {
  items: Finding[];
  kind: "page";
  /** for after; absent on the last page */
  next?: string;
  /** version of the contract */
  v: 1;
}

export interface FirePage {
  items: Fire[];
  kind: "page";
  /** for after; absent on the last page */
  next?: string;
  /** version of the contract */
  v: 1;
}

export interface FlowPage {
  items: Flow[];
  kind: "page";
  /** for after; absent on the last page */
  next?: string;
  /** version of the contract */
  v: 1;
}

export interface LogPage {
  items: Log[];
  kind: "page";
  /** for after; absent on the last page */
  next?: string;
  /** version of the contract */
  v: 1;
}

export interface OccurrencePage {
  items: Occurrence[];
  kind: "page";
  /** for after; absent on the last page */
  next?: string;
  /** version of the contract */
  v: 1;
}

export interface QueuePage {
  items: Queue[];
  kind: "page";
  /** for after; absent on the last page */
  next?: string;
  /** version of the contract */
  v: 1;
}

export interface ReceiptPage {
  items: Receipt[];
  kind: "page";
  /** for after; absent on the last page */
  next?: string;
  /** version of the contract */
  v: 1;
}

export interface RunSummaryPage {
  items: RunSummary[];
  kind: "page";
  /** for after; absent on the last page */
  next?: string;
  /** version of the contract */
  v: 1;
}

export interface SchedulePage {
  items: Schedule[];
  kind: "page";
  /** for after; absent on the last page */
  next?: string;
  /** version of the contract */
  v: 1;
}

export interface StepPage {
  items: Step[];
  kind: "page";
  /** for after; absent on the last page */
  next?: string;
  /** version of the contract */
  v: 1;
}

export interface TaskPage {
  items: Task[];
  kind: "page";
  /** for after; absent on the last page */
  next?: string;
  /** version of the contract */
  v: 1;
}

export interface PauseObject {
  actor: Actor;
  kind: "pause";
  queue?: string;
  reason?: string;
  resumedAt?: string;
  since: string;
  taskId?: string;
  until?: string;
  /** version of the contract */
  v: 1;
}

export interface ProblemObject {
  code: string;
  conflict?: string;
  detail: string;
  hint?: string;
  retryable: boolean;
  runId?: string;
  status: number;
  title: string;
}

export interface Progress {
  at: string;
  attempt: number;
  kind: "progress";
  note: string;
  /** version of the contract */
  v: 1;
}

export interface Queue {
  bound: boolean;
  burst?: number;
  carrier?: string;
  concurrency: number;
  dispatchTimeout?: string;
  kind: "queue";
  known: boolean;
  ordered?: boolean;
  pause?: Pause;
  queue: string;
  rate?: string;
  stored?: boolean;
  /** version of the contract */
  v: 1;
}

export interface QueueStats {
  at: string;
  atLeast?: boolean;
  backlog: number;
  bound: boolean;
  burst?: number;
  carrier?: string;
  concurrency: number;
  delayed: number;
  dispatchTimeout?: string;
  inFlight: number;
  keys?: KeyStats[];
  keysAtLeast?: boolean;
  kind: "queue.stats";
  known: boolean;
  moreKeys?: number;
  nextDue?: string;
  oldestWaiting?: string;
  ordered?: boolean;
  pause?: Pause;
  queue: string;
  rate?: string;
  reserved?: number;
  running: number;
  stored?: boolean;
  /** version of the contract */
  v: 1;
  waiting: number;
}

export interface Receipt {
  attempt: number;
  body?: string;
  bodyBytes?: number;
  command?: string;
  cut?: boolean;
  endedAt: string;
  exitCode?: number;
  fault?: string;
  headers?: Record<string, string>;
  kind: "receipt";
  request?: string;
  signal?: string;
  startedAt: string;
  status?: number;
  stderr?: string;
  stdout?: string;
  target: string;
  /** version of the contract */
  v: 1;
}

export interface Run {
  concurrencyKey?: string;
  counters: Counters;
  createdAt: string;
  debounced?: Debounced;
  dispatchExpiresAt?: string;
  dispatchedAt?: string;
  environment: string;
  eventSequence: number;
  failure?: Failure;
  finishedAt?: string;
  idempotencyKey?: string;
  idempotencyRetention?: KeyRetention;
  kind: "run";
  lease?: Lease;
  meta?: Record<string, string>;
  output?: unknown;
  payload?: unknown;
  priority?: number;
  queue: string;
  runAt?: string;
  runId: string;
  sealed?: Sealed;
  singletonKey?: string;
  source: Source;
  startedAt?: string;
  status: string;
  taskId: string;
  traceCarrier?: Record<string, string>;
  updatedAt: string;
  /** version of the contract */
  v: 1;
  waiting?: Waiting;
}

export interface RunSummary {
  concurrencyKey?: string;
  counters: Counters;
  createdAt: string;
  dispatchExpiresAt?: string;
  failureCode?: string;
  finishedAt?: string;
  kind: "run.summary";
  priority?: number;
  queue: string;
  runAt?: string;
  runId: string;
  source: Source;
  status: string;
  taskId: string;
  /** version of the contract */
  v: 1;
  waiting?: Waiting;
}

export interface RunTree {
  calls?: Called[];
  concurrencyKey?: string;
  counters: Counters;
  createdAt: string;
  dispatchExpiresAt?: string;
  failure?: Failure;
  failureCode?: string;
  finishedAt?: string;
  kind: "run.tree";
  priority?: number;
  queue: string;
  runAt?: string;
  runId: string;
  source: Source;
  status: string;
  taskId: string;
  /** version of the contract */
  v: 1;
  waiting?: Waiting;
}

export interface Schedule {
  definitionHash: string;
  kind: "schedule";
  known: boolean;
  lastEvaluated?: string;
  lastFire?: string;
  lastRunId?: string;
  manualRunIds?: string[];
  next?: string;
  pauseReason?: string;
  paused?: boolean;
  pendingFire?: string;
  registeredAt: string;
  scheduleId: string;
  /** version of the contract */
  v: 1;
  version: number;
}

export interface Step {
  at: string;
  attempt: number;
  fault?: string;
  kind: "step";
  name: string;
  result?: unknown;
  startedAt?: string;
  stepKind: string;
  type?: string;
  /** version of the contract */
  v: 1;
}

export interface Task {
  backoff?: string;
  burst?: number;
  concurrency: number;
  dispatchTimeout?: string;
  errorMessages: boolean;
  gone?: boolean;
  idempotencyTtl: string;
  keep?: Keep;
  keepLogs?: boolean;
  keys: string[];
  kind: "task";
  known: boolean;
  maxAttempts: number;
  pause?: Pause;
  queue: string;
  rate?: string;
  schema?: unknown;
  seenAt?: string;
  taskId: string;
  timeout?: string;
  /** version of the contract */
  v: 1;
  version?: number;
}

export interface Tick {
  kind: "tick";
  more: boolean;
  stages: Stage[];
  /** version of the contract */
  v: 1;
}

export interface Triggered {
  kind: "triggered";
  line?: number;
  outcome: string;
  payloadDiffers?: boolean;
  runId: string;
  status: string;
  taskId: string;
  /** version of the contract */
  v: 1;
}

export interface Waited {
  kind: "waited";
  runId: string;
  signals?: ReceivedSignal[];
  suspended: boolean;
  timedOut?: boolean;
  /** version of the contract */
  v: 1;
}
