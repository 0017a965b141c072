/** Client and worker of a Runlane server. */
export { Client, type ClientOptions, type Run, type Triggered, type TriggerOptions } from "./client.js";
export { ClaimLost, Permanent, Problem, Release, RetryAfter, Suspended, TaskError } from "./errors.js";
export { type Attempt, type Handler, type Signal, Worker, type WorkerOptions } from "./worker.js";
