// The client against the real server: RUNLANE_BIN names the program.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import typescript from "typescript";
import { ClaimLost, Client, Permanent, Problem, Release, RetryAfter, TaskError, Worker } from "runlane";

const tasks = {
  tasks: [
    {
      task: "t.echo", queue: "ts", maxAttempts: 3, backoff: "10ms",
      schema: { type: "object", required: ["n"], properties: { n: { type: "integer" } } },
    },
    { task: "t.waits", queue: "waits" },
    { task: "t.raw", queue: "raw" },
    { task: "t.idle", queue: "idle" },
    { task: "t.parent", queue: "family" },
    { task: "t.child", queue: "family" },
    { task: "t.waiter", queue: "family" },
    { task: "images.resize", queue: "images" },
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

test("lists walk their pages, and what is followed ends with its run", async () => {
  const [run, later] = await Promise.all([1, 2].map((n) => client.trigger("t.echo", { n }, { delay: "10m" })));
  const listed = await all(client.runs({ task: "t.echo", status: "scheduled", limit: 1 }));
  assert.deepEqual(listed.map((r) => r.runId).sort(), [run.runId, later.runId].sort());
  const followed = client.events(run.runId, { follow: true });
  const first = (await followed.next()).value;
  await Promise.all([run, later].map((r) => client.cancel(r.runId)));
  const types = (await all(followed)).map((e) => e.type);
  assert.deepEqual([first.type, types.at(-1)], ["run.created", "run.cancelled"]);
  assert.deepEqual((await all(client.events(run.runId, { after: first.cursor, follow: true }))).map((e) => e.type), types);
  assert.deepEqual(await all(client.logs(run.runId, { attempt: 1, follow: true })), []);
  assert.deepEqual(await all(client.schedules()), []);
  for (const change of ["pauseSchedule", "resumeSchedule", "triggerSchedule"]) {
    await assert.rejects(client[change]("none"), (error) => error.code === "schedule_not_found");
  }
  const nodes = [{ name: "a", task: "t.idle" }, { name: "b", task: "t.idle", after: ["a"] }];
  assert.deepEqual((await client.flow({ flowId: "lists", nodes })).nodes.map((n) => n.name), ["a", "b"]);
});

async function all(items) {
  const found = [];
  for await (const item of items) found.push(item);
  return found;
}

test("the program of the README works as it stands there, until SIGTERM", async () => {
  const root = join(import.meta.dirname, "..");
  const address = "http://127.0.0.1:8080";
  const typed = readFileSync(join(root, "README.md"), "utf8").split("```ts\n")[1].split("```")[0];
  assert.ok(typed.includes(address));
  const { outputText } = typescript.transpileModule(typed.replace(address, url), {
    compilerOptions: { module: typescript.ModuleKind.ESNext, target: typescript.ScriptTarget.ES2022 },
  });
  const program = "const store = async (url) => url.length;\n" + outputText;
  const worker = spawn(process.execPath, ["--input-type=module", "-e", program], { cwd: root, stdio: "inherit" });
  const ended = once(worker, "exit");
  try {
    const made = await client.trigger("images.resize", { url: "https://example.com/b.png" });
    const run = await client.wait(made.runId, 20_000);
    assert.deepEqual([run.status, run.output], ["succeeded", { stored: 25 }]);
  } finally {
    worker.kill("SIGTERM");
    assert.deepEqual(await ended, [0, null]);
  }
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
    assert.deepEqual(await attempt.wait("never", { timeout: 0 }), []);
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

test("a task has its schema", async () => {
  assert.deepEqual((await client.task("t.echo")).schema, tasks.tasks[0].schema);
  assert.equal((await client.task("t.raw")).schema, undefined);
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

test("makes runs, flows and signals", async () => {
  const other = await client.trigger("t.waiter");
  const worker = new Worker(client, { concurrency: 3, log: () => {} });
  worker.task("t.parent", async (attempt) => {
    const first = await attempt.snapshot("first", attempt.number);
    const called = await attempt.runAll("t.child", [1, 2]);
    const made = await attempt.trigger("t.child", 3, { runId: `${attempt.runId}-next` });
    const flow = await attempt.flow(`${attempt.runId}-flow`, [{ name: "a", task: "t.child", payload: 4 }]);
    await attempt.sendSignal(other.runId, "go", "ada", attempt.runId);
    if (attempt.number === 2) await attempt.block("the disk is full");
    return [first, called.map((run) => run.output), made.outcome, flow.flowId];
  });
  worker.task("t.child", async (_, payload) => payload * 2);
  worker.task("t.waiter", async (attempt) => (await attempt.wait("go"))[0].body);
  const working = worker.run({ signals: false });
  const { runId } = await client.trigger("t.parent");
  for (const end = Date.now() + 20_000; ; await new Promise((again) => setTimeout(again, 20))) {
    const { status, counters } = await client.get(runId);
    if (status === "released" && counters.attempts === 2) break;
    assert.ok(Date.now() < end, `${status} after ${counters.attempts} attempts`);
  }
  await client.request("POST", `/v1/runs/${runId}/resume`);
  const ended = await client.wait(runId, 20_000);
  assert.deepEqual(ended.output, [1, [2, 4], "returned_existing", `${runId}-flow`]);
  assert.equal((await client.wait(`${runId}-next`, 20_000)).output, 6);
  assert.equal((await client.wait(other.runId, 20_000)).output, "ada");
  worker.stop();
  await working;
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
