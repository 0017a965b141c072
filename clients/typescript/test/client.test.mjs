// The client against the real server: RUNLANE_BIN names the program.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { ClaimLost, Client, Permanent, Problem, Release, RetryAfter, TaskError, Worker } from "runlane";

const tasks = {
  tasks: [
    {
      task: "t.echo", queue: "ts", maxAttempts: 3, backoff: "10ms",
      schema: { type: "object", required: ["n"], properties: { n: { type: "integer" } } },
    },
    { task: "t.waits", queue: "waits" },
    { task: "t.raw", queue: "raw" },
  ],
};
let folder, server, url, client;

async function start(listen) {
  const flags = ["serve", "--lane", "sqlite:state.db", "--tasks", "tasks.json", "--listen", listen];
  server = spawn(process.env.RUNLANE_BIN, flags, { cwd: folder, stdio: ["ignore", "pipe", "ignore"] });
  const [line] = await once(createInterface({ input: server.stdout }), "line");
  url = line.replace("listening on ", "");
}

async function stop() {
  const ended = once(server, "exit");
  server.kill("SIGKILL");
  await ended;
}

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "runlane-"));
  writeFileSync(join(folder, "tasks.json"), JSON.stringify(tasks));
  await start("127.0.0.1:0");
  client = new Client({ url });
});

after(async () => {
  await stop();
  rmSync(folder, { recursive: true });
});

/** Executes the runs of the payloads and returns them. */
async function works(task, handler, ...payloads) {
  const worker = new Worker(client, { concurrency: 2, name: "ts", log: () => {} });
  worker.task(task, handler);
  const working = worker.run({ signals: false });
  const made = await Promise.all(payloads.map((payload) => client.trigger(task, payload)));
  const runs = await Promise.all(made.map((run) => client.wait(run.runId, 20_000)));
  worker.stop();
  await working;
  return runs;
}

test("executes, and keeps outputs", async () => {
  const runs = await works("t.echo", async (_, payload) => ({ n: payload.n + 1 }), { n: 1 }, { n: 2 });
  assert.deepEqual(runs.map((r) => [r.status, r.output]), [["succeeded", { n: 2 }], ["succeeded", { n: 3 }]]);
});

test("failures follow the handler's error", async () => {
  const handler = (attempt, { n }) => {
    if (n === 0) throw new Permanent("no light", "too_dark");
    if (n === 1 && attempt.number === 1) throw new RetryAfter(10, "again");
    if (n === 2 && attempt.number === 1) throw new Release(10, "busy");
    if (n === 3) throw new RangeError("secret");
    if (n === 4) return { n: 1n }; // no JSON
    if (n === 5) throw new TaskError("told");
    return attempt.number;
  };
  const runs = await works("t.echo", handler, ...[0, 1, 2, 3, 4, 5].map((n) => ({ n })));
  assert.deepEqual(runs.map((r) => r.status), ["failed", "succeeded", "succeeded", "failed", "failed", "failed"]);
  assert.deepEqual(runs.map((r) => r.counters.failures), [1, 1, 0, 3, 3, 3]);
  assert.deepEqual([runs[0].failure.code, runs[0].failure.message], ["too_dark", "no light"]);
  assert.equal(runs[5].failure.message, "told");
  assert.ok(!JSON.stringify(runs).includes("secret"));
});

test("remembers and waits", async () => {
  let charges = 0;
  const worker = new Worker(client, { log: () => {} });
  worker.task("t.waits", async (attempt) => {
    const first = await attempt.step("charge", () => ++charges);
    await attempt.progress("charged");
    const [answer] = await attempt.wait("approved", { timeout: 60_000 });
    await attempt.sleep("nap", 10);
    return [first, answer.body, attempt.number];
  });
  const working = worker.run({ signals: false });
  const { runId } = await client.trigger("t.waits");
  while ((await client.get(runId)).status !== "released") await new Promise((again) => setTimeout(again, 20));
  await client.signal(runId, "approved", "ada");
  assert.deepEqual((await client.wait(runId, 20_000)).output, [1, "ada", 2]);
  worker.stop();
  await working;
});

test("a payload that does not fit is refused", async () => {
  await assert.rejects(client.trigger("t.echo", { n: "secret" }), (error) => {
    assert.ok(error instanceof Problem && !error.message.includes("secret"));
    assert.deepEqual([error.status, error.code], [400, "validation_failed"]);
    return true;
  });
});

test("a claim outlives the server, and nothing is taken after its end", async () => {
  const { runId } = await client.trigger("t.raw", 1);
  const { token } = await client.request("POST", "/v1/work/claim", { tasks: ["t.raw"] });
  await stop();
  await start(new URL(url).host);
  await client.request("POST", "/v1/work/heartbeat", { token });
  await client.request("POST", "/v1/work/complete", { token, output: 7 });
  assert.equal((await client.get(runId)).output, 7);
  await assert.rejects(client.request("POST", "/v1/work/complete", { token }), ClaimLost);
});

test("a cancelled run stops its handler", async () => {
  const worker = new Worker(client, { lease: 5000, log: () => {} });
  const begun = new Promise((resolve) => {
    worker.task("t.raw", async (attempt) => {
      resolve();
      await once(attempt.signal, "abort");
      attempt.signal.throwIfAborted();
    });
  });
  const working = worker.run({ signals: false });
  const { runId } = await client.trigger("t.raw", 2);
  await begun;
  await client.cancel(runId);
  assert.equal((await client.wait(runId, 20_000)).status, "cancelled");
  worker.stop();
  await working;
});
