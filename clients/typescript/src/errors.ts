/** An answer that is an error: the fields of RFC 9457, with code, hint and retryability. Status 0: no answer of the API came. retryAfter are the milliseconds of the header Retry-After, 0 without it. */
export class Problem extends Error {
  readonly code: string;
  readonly conflict: string;
  readonly hint: string;
  readonly retryable: boolean;

  constructor(readonly status: number, body: Record<string, unknown>, readonly retryAfter = 0) {
    super(`${String(body["code"] ?? status)}: ${String(body["detail"] ?? "no answer")}`);
    this.name = new.target.name;
    this.code = String(body["code"] ?? "");
    this.conflict = String(body["conflict"] ?? "");
    this.hint = String(body["hint"] ?? "");
    this.retryable = body["retryable"] === true;
  }
}

/** The attempt is not this worker's any more: another one owns the run, or it has an outcome. Stop the work. */
export class ClaimLost extends Problem {}

/** A failure whose text is kept in the run. The retries of the task follow. */
export class TaskError extends Error {
  constructor(message = "", readonly code = "", readonly meta: Record<string, string> = {}) {
    super(message);
    this.name = new.target.name;
  }
}

/** A failure that is not tried again. */
export class Permanent extends TaskError {}

/** A failure that is tried again after a time of its choice, in milliseconds. */
export class RetryAfter extends TaskError {
  constructor(readonly ms: number, message = "", code = "") {
    super(message, code);
  }
}

/** The run goes on after a time, in milliseconds. This is no failure, and costs no retry. */
export class Release extends Error {
  constructor(readonly ms: number, readonly reason = "") {
    super(reason);
    this.name = new.target.name;
  }
}

/** The attempt has ended to wait: let it pass. */
export class Suspended extends Error {
  constructor() {
    super("the attempt has ended to wait");
    this.name = new.target.name;
  }
}

/** The request below /v1/work that a handler's error leads to. */
export function failure(error: unknown): [path: string, body: Record<string, unknown>] {
  if (error instanceof Release) return ["release", { after: duration(error.ms), reason: error.reason }];
  if (!(error instanceof TaskError)) {
    const name = error instanceof Error ? error.constructor.name : typeof error;
    return ["fail", { message: `${name} was thrown.` }];
  }
  const body: Record<string, unknown> = { permanent: error instanceof Permanent };
  if (error.message) body["message"] = error.message;
  if (error.code) body["code"] = error.code;
  if (Object.keys(error.meta).length > 0) body["meta"] = error.meta;
  if (error instanceof RetryAfter) body["after"] = duration(error.ms);
  return ["fail", body];
}

/** A time as the server reads it, in whole milliseconds: what is left of one counts as one. */
export function duration(ms: number): string {
  const whole = Math.ceil(Number(ms.toFixed(6))); // 70.00000000000001 is 70
  return `${ms > 0 ? Math.max(whole, 1) : whole}ms`;
}
