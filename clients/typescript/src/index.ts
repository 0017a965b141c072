/* Client and worker of a Runlane server. */

/** What requests take and what is answered, made of the API's description. */
export type * as api from "./api.js";
export type { CallEnd, ReceivedSignal, Run, Task, Triggered } from "./api.js";
export { Client, type ClientOptions, type FollowOptions, type TriggerOptions } from "./client.js";
export { ClaimLost, Permanent, Problem, Release, RetryAfter, Suspended, TaskError } from "./errors.js";
export { type Attempt, type Handler, Worker, type WorkerOptions } from "./worker.js";
