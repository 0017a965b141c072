import { randomUUID } from "node:crypto";
import { once as event } from "node:events";
import { request as http } from "node:http";
import { request as https } from "node:https";
import type { Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type { Event, Flow, FlowBody, Log, Run, RunSummary, Schedule, Task, TriggerBody, Triggered } from "./api.js";
import { ClaimLost, duration, Problem } from "./errors.js";

/** Before the tries of a request, in milliseconds; together less than half of a usual lease. */
const pauses = [0, 100, 300, 1000, 2000, 4000];
/** Statuses after which there is another try; 0 is no answer of the API. */
const passing = [0, 429, 502, 503, 504];

const ended = ["succeeded", "failed", "cancelled"];

export interface ClientOptions {
  /** Where the server is; RUNLANE_URL, or this machine's port 8080, unless given. */
  url?: string;
  /** The token of the caller; RUNLANE_TOKEN unless given. */
  token?: string;
}

/** Fields of POST /v1/runs. */
export type TriggerOptions = Omit<TriggerBody, "task" | "payload">;

/** What of a run's events or lines is wanted. */
export interface FollowOptions {
  /** The cursor behind which to begin. */
  after?: string;
  /** Goes on until the run has ended. */
  follow?: boolean;
}

type Query = Record<string, string | number | boolean | undefined>;

/** What one try of a request needs beside its body. */
export interface Try {
  /** Of the answer, as in docs/json.md: any other counts as none. */
  kind?: string;
  /** In milliseconds; 30 seconds unless given. */
  timeout?: number;
  /** Ends a wait: this side says no more, upon which the server answers with what it has. */
  enough?: AbortSignal;
}

/**
 * Calls a server. Requests that got no answer, one that cannot be read, or one of passing, are repeated for some seconds.
 * That is safe for all of them, since triggers always name their run.
 */
export class Client {
  readonly #url: string;
  readonly #token: string;

  constructor(options: ClientOptions = {}) {
    this.#url = (options.url ?? process.env["RUNLANE_URL"] ?? "http://127.0.0.1:8080").replace(/\/+$/, "");
    this.#token = options.token ?? process.env["RUNLANE_TOKEN"] ?? "";
    new URL(this.#url);
  }

  /** Makes a run, or finds the one of the key or id: see outcome. */
  async trigger(task: string, payload: unknown = null, options: TriggerOptions = {}): Promise<Triggered> {
    const body = { task, payload, runId: newRun(), ...options };
    return (await this.request("POST", "/v1/runs", body, "triggered")) as Triggered;
  }

  /** The run as it is now. */
  async get(run: string): Promise<Run> {
    return (await this.request("GET", `/v1/runs/${encodeURIComponent(run)}`, undefined, "run")) as Run;
  }

  /** What is known of a task: its rules, and the JSON Schema of its payloads where the server has one. */
  async task(name: string): Promise<Task> {
    return (await this.request("GET", `/v1/tasks/${encodeURIComponent(name)}`, undefined, "task")) as Task;
  }

  /** The run when it has ended; an error when it has not in that time. */
  async wait(run: string, ms = 60_000): Promise<Run> {
    const end = Date.now() + ms;
    for (;;) {
      const left = Math.max(0, Math.min(20_000, end - Date.now()));
      const path = `/v1/runs/${encodeURIComponent(run)}?wait=${duration(left)}`;
      const found = (await this.request("GET", path, undefined, "run")) as Run;
      if (ended.includes(found.status)) return found;
      if (Date.now() >= end) throw new Error(`run ${run} is ${found.status}`);
    }
  }

  /** Lists runs, page by page. The filters are those of GET /v1/runs, such as { status: "failed" }. */
  runs(filters: Query = {}): AsyncGenerator<RunSummary> {
    return this.#pages<RunSummary>("/v1/runs", filters);
  }

  /** What happened to a run, from the beginning or behind the cursor of an event. */
  events(run: string, options: FollowOptions = {}): AsyncGenerator<Event> {
    return this.#followed<Event>(run, "events", {}, options);
  }

  /** What the attempts of a run logged, or only one of them. */
  logs(run: string, options: FollowOptions & { attempt?: number } = {}): AsyncGenerator<Log> {
    return this.#followed<Log>(run, "logs", { attempt: options.attempt }, options);
  }

  /** Starts a flow of nodes, once for its id. */
  async flow(flow: FlowBody): Promise<Flow> {
    return (await this.request("POST", "/v1/flows", flow, "flow")) as Flow;
  }

  /** Lists the schedules. */
  schedules(): AsyncGenerator<Schedule> {
    return this.#pages<Schedule>("/v1/schedules", {});
  }

  /** Stops a schedule until it is resumed. */
  async pauseSchedule(schedule: string, reason = ""): Promise<Schedule> {
    return this.#switch(schedule, "pause", reason);
  }

  /** Lets a paused schedule fire again. What came due meanwhile is skipped. */
  async resumeSchedule(schedule: string, reason = ""): Promise<Schedule> {
    return this.#switch(schedule, "resume", reason);
  }

  /** Makes a run of a schedule at once. It is asked once only: each request makes a run. */
  async triggerSchedule(schedule: string): Promise<Triggered> {
    const path = `/v1/schedules/${encodeURIComponent(schedule)}/trigger`;
    return (await this.once("POST", path, undefined, { kind: "triggered" })) as Triggered;
  }

  async #switch(schedule: string, verb: string, reason: string): Promise<Schedule> {
    const path = `/v1/schedules/${encodeURIComponent(schedule)}/${verb}`;
    return (await this.request("POST", path, reason ? { reason } : undefined, "schedule")) as Schedule;
  }

  async *#pages<T>(path: string, query: Query): AsyncGenerator<T> {
    const given = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined) given.set(name, String(value));
    for (;;) {
      const page = (await this.request("GET", `${path}?${given}`, undefined, "page")) as { items: T[]; next?: string };
      yield* page.items;
      if (page.next === undefined) return;
      given.set("after", page.next);
    }
  }

  async *#followed<T extends { cursor: string }>(
    run: string, what: string, query: Query, options: FollowOptions,
  ): AsyncGenerator<T> {
    let after = options.after;
    for (;;) {
      const over = !options.follow || ended.includes((await this.get(run)).status); // before the last look
      for await (const item of this.#pages<T>(`/v1/runs/${encodeURIComponent(run)}/${what}`, { ...query, after })) {
        after = item.cursor;
        yield item;
      }
      if (over) return;
      await pause(1000);
    }
  }

  /** Sends a signal to a run, once: a repeated request has the same id. */
  async signal(run: string, name: string, body: unknown = null, id: string = randomUUID()): Promise<void> {
    await this.request("POST", `/v1/runs/${encodeURIComponent(run)}/signals`, { name, body, id }, "change");
  }

  /** Asks a run to stop. One that waits ends at once. */
  async cancel(run: string, reason = ""): Promise<void> {
    const path = `/v1/runs/${encodeURIComponent(run)}/cancel`;
    await this.request("POST", path, reason ? { reason } : undefined, "change");
  }

  /**
   * One request of the API; undefined for an answer without a body. An error is a Problem. With a kind, as in
   * docs/json.md, any other answer counts as none. Where the storage is overloaded, the next try comes after the time
   * that the server says.
   */
  async request(method: string, path: string, body?: unknown, kind = ""): Promise<unknown> {
    let told = 0;
    for (let i = 0; ; i++) {
      await pause(Math.max((pauses[i] ?? 0) * (0.5 + Math.random()), told * (1 + Math.random() / 2)));
      try {
        return await this.once(method, path, body, { kind });
      } catch (error) {
        if (!(error instanceof Problem) || i === pauses.length - 1) throw error;
        if (error.code && !passing.includes(error.status)) throw error; // without a code it is none of the API
        told = error.code === "overloaded" ? error.retryAfter : 0;
      }
    }
  }

  /** One try of a request. */
  async once(method: string, path: string, body?: unknown, options: Try = {}): Promise<unknown> {
    const { kind = "", timeout = 30_000, enough } = options;
    const headers: Record<string, string> = {};
    if (this.#token) headers["Authorization"] = `Bearer ${this.#token}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const init: RequestInit = { method, headers, signal: AbortSignal.timeout(timeout) };
    if (body !== undefined) init.body = JSON.stringify(body);
    let status: number;
    let text: string;
    let wait = 0;
    try {
      if (enough) {
        [status, text] = await waits(this.#url + path, init, enough);
      } else {
        const answer = await fetch(this.#url + path, init);
        [status, text] = [answer.status, await answer.text()];
        wait = 1000 * (Number(answer.headers.get("Retry-After")) || 0);
      }
    } catch (fault) {
      throw noAnswer(fault instanceof Error ? fault.name : "the request failed");
    }
    let said: unknown;
    let readable = true;
    try {
      said = text ? JSON.parse(text) : undefined;
    } catch {
      readable = false;
    }
    const fields = (typeof said === "object" && said !== null ? said : {}) as Record<string, unknown>;
    if (status >= 300) {
      throw fields["conflict"] === "lease_ownership" ? new ClaimLost(status, fields) : new Problem(status, fields, wait);
    }
    if (!readable || (kind && status !== 204 && fields["kind"] !== kind)) throw noAnswer("the answer is none of the API");
    return said;
  }
}

/** A request whose wait another signal ends. fetch can only drop it, with the run that its answer has. */
async function waits(url: string, init: RequestInit, enough: AbortSignal): Promise<[number, string]> {
  const { method, headers, signal, body } = init as { method: string; headers: Record<string, string>; signal: AbortSignal; body: string };
  const request = (url.startsWith("https:") ? https : http)(url, { method, headers, signal });
  request.on("error", () => {}); // the answer's readers hear of it, too
  let connection: Socket | undefined;
  let late: NodeJS.Timeout | undefined;
  const stop = () => {
    connection?.end();
    late = setTimeout(() => request.destroy(), 3000);
  };
  request.once("socket", (socket) => {
    connection = socket;
    if (enough.aborted) socket.end();
  });
  enough.addEventListener("abort", stop, { once: true });
  try {
    const answered = event(request, "response");
    request.end(body);
    const [answer] = await answered;
    let text = "";
    for await (const part of answer.setEncoding("utf8")) text += String(part);
    return [Number(answer.statusCode), text];
  } finally {
    enough.removeEventListener("abort", stop);
    clearTimeout(late);
  }
}

function noAnswer(detail: string): Problem {
  return new Problem(0, { code: "no_answer", detail, retryable: true });
}

function newRun(): string {
  return `run_${randomUUID().replaceAll("-", "")}`;
}
