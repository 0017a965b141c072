import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import type {
  CalledObject, CallEnd, Claim, Flow, LeaseObject, NodeBody, ReceivedSignal, Step, StepPage, Triggered, Waited,
} from "./api.js";
import type { Client, TriggerOptions } from "./client.js";
import { ClaimLost, duration, failure, Problem, Suspended } from "./errors.js";

export interface WorkerOptions {
  /** Attempts at once; 8 unless given. */
  concurrency?: number;
  /** Name in leases and events; host and process unless given. */
  name?: string;
  /** How long a run is this worker's without a sign of life, in milliseconds; a minute unless given, at least 5 seconds. */
  lease?: number;
  /** How long attempts may take to finish after stop, in milliseconds; 30 seconds unless given. */
  grace?: number;
  /** Takes what an operator may have to act on; console.warn unless given. */
  log?: (message: string) => void;
}

/** Of the answers below /v1/work. */
const kinds: Record<string, string> = {
  block: "change", call: "called", complete: "change", fail: "change", flow: "flow", heartbeat: "lease",
  progress: "lease", release: "change", signal: "change", sleep: "waited", snapshot: "step", step: "step",
  steps: "page", trigger: "triggered", wait: "waited",
};

export type Handler<P = unknown> = (attempt: Attempt, payload: P) => unknown;

/** One execution of a run's handler. */
export class Attempt {
  readonly runId: string;
  readonly task: string;
  /** From 1. */
  readonly number: number;
  readonly meta: Record<string, string>;
  readonly trace: Record<string, string>;
  readonly deadline: string | undefined;
  /** Aborted when the handler should return: the run was cancelled, the lease was lost, or the worker stops. */
  readonly signal: AbortSignal;
  /** The lease is lost, or left: nothing more is recorded. */
  lost = false;

  readonly #client: Client;
  readonly #token: string;
  readonly #ends = new AbortController();
  #known: Map<string, unknown> | undefined;

  constructor(client: Client, claim: Claim) {
    this.#client = client;
    this.#token = claim.token;
    this.#known = claim.attempt === 1 ? new Map() : undefined;
    this.runId = claim.runId;
    this.task = claim.taskId;
    this.number = claim.attempt;
    this.meta = claim.meta ?? {};
    this.trace = claim.traceCarrier ?? {};
    this.deadline = claim.deadline;
    this.signal = this.#ends.signal;
  }

  /** A request with the token of the claim. */
  async call(path: string, body: Record<string, unknown> = {}): Promise<unknown> {
    return this.#judged(this.#client.request("POST", `/v1/work/${path}`, { token: this.#token, ...body }, kinds[path]));
  }

  async #judged(answer: Promise<unknown>): Promise<unknown> {
    try {
      return await answer;
    } catch (error) {
      if (error instanceof ClaimLost) {
        this.lost = true;
        this.stop();
      }
      throw error;
    }
  }

  /** Asks the handler to return. */
  stop(): void {
    this.#ends.abort();
  }

  /** Extends the lease. It waits for the answer for a sixth of it, so that there is time for others. */
  async heartbeat(lease: number): Promise<void> {
    const body = { token: this.#token, lease: duration(lease) };
    const options = { kind: "lease", timeout: Math.ceil(lease / 6) };
    const sent = this.#client.once("POST", "/v1/work/heartbeat", body, options);
    const answer = (await this.#judged(sent)) as LeaseObject;
    if (answer.cancelRequested) this.stop();
  }

  /** Does work once for the run: later attempts get its recorded result, which is JSON. It runs at least once. */
  async step<T>(name: string, work: () => T | Promise<T>): Promise<T> {
    if (!this.#known) {
      const { items } = (await this.call("steps")) as StepPage;
      this.#known = new Map(items.filter((s) => s.stepKind === "step").map((s) => [s.name, s.result]));
    }
    if (!this.#known.has(name)) {
      const result = await work();
      const kept = (await this.call("step", result === undefined ? { name } : { name, result })) as Step;
      this.#known.set(name, kept.result);
    }
    return this.#known.get(name) as T;
  }

  /** Returns once the time since the first call has passed; until then the attempt ends here. */
  async sleep(name: string, ms: number): Promise<void> {
    const answer = (await this.call("sleep", { name, for: duration(ms) })) as Waited;
    if (answer.suspended) throw new Suspended();
  }

  /**
   * The signal of one of the names, or of each. Without any the attempt ends here. An empty list: the time is over; a
   * timeout of 0 does not wait, and without one there is no limit. schemas are JSON Schemas by the names of signals: a
   * body that does not fit is refused to its sender.
   */
  async wait(
    signals: string | string[],
    options: { name?: string; timeout?: number; prompt?: string; all?: boolean; schemas?: Record<string, unknown> } = {},
  ): Promise<ReceivedSignal[]> {
    const { timeout, ...others } = options;
    const body: Record<string, unknown> = { signals: [signals].flat(), ...others };
    if (timeout !== undefined) body["timeout"] = duration(timeout);
    const answer = (await this.call("wait", body)) as Waited;
    if (answer.suspended) throw new Suspended();
    return answer.signals ?? [];
  }

  /** Shows operators a note. */
  async progress(note: string): Promise<void> {
    await this.call("progress", { note });
  }

  /** Records a value as it is now, for operators and later attempts. Returns the one that was recorded first. */
  async snapshot(name: string, value: unknown = null): Promise<unknown> {
    return ((await this.call("snapshot", { name, value })) as Step).result;
  }

  /** Ends the attempt here. The handler is called again when an operator resumes the run. */
  async block(reason: string): Promise<never> {
    await this.call("block", { reason });
    throw new Suspended();
  }

  /** Makes a run of each payload once, and returns them when all have ended; until then the attempt ends here. */
  async runAll(task: string, payloads: unknown[], options: Record<string, unknown> = {}): Promise<CallEnd[]> {
    const answer = (await this.call("call", { task, payloads, ...options })) as CalledObject;
    if (answer.suspended) throw new Suspended();
    return answer.runs ?? [];
  }

  /** Makes a run whose source is this one. An attempt may be repeated, so that its id has to be the same each time. */
  async trigger(task: string, payload: unknown, options: TriggerOptions & { runId: string }): Promise<Triggered> {
    return (await this.call("trigger", { task, payload, ...options })) as Triggered;
  }

  /** Sends a signal to another run, once for each id. */
  async sendSignal(runId: string, name: string, body: unknown, id: string): Promise<void> {
    await this.call("signal", { runId, name, body, id });
  }

  /** Starts a flow of nodes, once for its id; each has the fields of POST /v1/flows. */
  async flow(flowId: string, nodes: NodeBody[]): Promise<Flow> {
    return (await this.call("flow", { flowId, nodes })) as Flow;
  }
}

/** Claims runs of the tasks that have handlers, and executes them. */
export class Worker {
  readonly #client: Client;
  readonly #options: Required<WorkerOptions>;
  readonly #handlers = new Map<string, Handler>();
  readonly #active = new Set<Attempt>();
  readonly #stop = new AbortController();

  constructor(client: Client, options: WorkerOptions = {}) {
    this.#client = client;
    this.#options = {
      concurrency: 8,
      name: `${hostname()}-${process.pid}`,
      lease: 60_000,
      grace: 30_000,
      log: (message) => console.warn(message),
      ...options,
    };
  }

  /** Gives a task its handler. */
  task<P = unknown>(task: string, handler: Handler<P>): this {
    this.#handlers.set(task, handler as Handler);
    return this;
  }

  /** Takes no more runs. run returns when those in progress have ended, or a few seconds after the grace. */
  stop(): void {
    this.#stop.abort();
  }

  /** Works until stop is called; with signals also by SIGTERM and SIGINT. */
  async run({ signals = true } = {}): Promise<void> {
    const stop = () => this.stop();
    if (signals) for (const name of ["SIGTERM", "SIGINT"]) process.once(name, stop);
    const stopped = new Promise<void>((resolve) => {
      this.#stop.signal.addEventListener("abort", () => resolve(), { once: true });
    });
    const loops = Promise.all(Array.from({ length: this.#options.concurrency }, () => this.#loop()));
    await stopped;
    await within(loops, this.#options.grace);
    for (const attempt of this.#active) attempt.stop();
    await within(loops, Math.min(5000, this.#options.lease / 3)); // before a lease ends that nothing extends
    await Promise.all([...this.#active].map((attempt) => this.#leave(attempt)));
    if (signals) for (const name of ["SIGTERM", "SIGINT"]) process.removeListener(name, stop);
  }

  async #loop(): Promise<void> {
    const { lease, name, log } = this.#options;
    const stopped = this.#stop.signal;
    let claimId = randomUUID();
    while (!stopped.aborted) {
      const body = { tasks: [...this.#handlers.keys()], worker: name, lease: duration(lease), wait: "20s", claimId };
      try {
        const claim = await this.#client.once("POST", "/v1/work/claim", body, { kind: "claim", enough: stopped });
        claimId = randomUUID(); // without an answer, the next request gets the same claim
        if (claim && stopped.aborted) await this.#settle(new Attempt(this.#client, claim as Claim), "release", {});
        else if (claim) await this.#execute(claim as Claim);
      } catch (error) {
        if (stopped.aborted) return;
        log(`runlane: no run could be claimed: ${String(error)}`);
        await pause(1000, undefined, { signal: stopped }).catch(() => {});
      }
    }
  }

  async #execute(claim: Claim): Promise<void> {
    const attempt = new Attempt(this.#client, claim);
    const { log } = this.#options;
    const over = new AbortController();
    void this.#beat(attempt, over.signal);
    this.#active.add(attempt);
    let path = "complete";
    let body: Record<string, unknown> = {};
    try {
      const output = await this.#handlers.get(attempt.task)?.(attempt, claim.payload);
      if (output !== undefined) body = { output };
    } catch (error) {
      if (error instanceof Suspended || error instanceof ClaimLost) return;
      log(`runlane: run ${attempt.runId}, attempt ${attempt.number}: ${String(error)}`);
      [path, body] = attempt.signal.aborted ? ["release", {}] : failure(error);
    } finally {
      over.abort();
      this.#active.delete(attempt);
    }
    if (!attempt.lost) await this.#settle(attempt, path, body);
  }

  /** Goes on without a handler that does not return. It may still work: others wait for the time of a lease. */
  async #leave(attempt: Attempt): Promise<void> {
    const { lease, log } = this.#options;
    attempt.lost = true; // no signs of life, and no outcome
    log(`runlane: run ${attempt.runId}, attempt ${attempt.number}: its handler did not return, and is left`);
    await this.#settle(attempt, "release", { after: duration(lease), reason: "shutdown" });
  }

  /** Gives the signs of life of an attempt. One that failed is repeated soon. */
  async #beat(attempt: Attempt, over: AbortSignal): Promise<void> {
    const { lease, log } = this.#options;
    for (let wait = lease / 3; !attempt.lost; ) {
      await pause(wait, undefined, { signal: over }).catch(() => {});
      if (over.aborted || attempt.lost) return;
      const began = performance.now();
      try {
        await attempt.heartbeat(lease);
        wait = Math.max(0, began + lease / 3 - performance.now());
      } catch (error) {
        log(`runlane: no sign of life of run ${attempt.runId}: ${String(error)}`);
        wait = lease / 12;
      }
    }
  }

  /** Records how an attempt has ended. */
  async #settle(attempt: Attempt, path: string, body: Record<string, unknown>): Promise<void> {
    try {
      await attempt.call(path, body);
    } catch (error) {
      this.#options.log(`runlane: run ${attempt.runId}: its outcome is not recorded: ${String(error)}`);
      const refused = !(error instanceof Problem) || [400, 413].includes(error.status); // or it is no JSON
      if (path === "complete" && refused) await this.#settle(attempt, "fail", { message: "The output was refused." });
    }
  }
}

/** Waits for an end, and no longer than a time. */
async function within(end: Promise<unknown>, ms: number): Promise<void> {
  const over = new AbortController();
  await Promise.race([end, pause(ms, undefined, { signal: over.signal }).catch(() => {})]);
  over.abort();
}
