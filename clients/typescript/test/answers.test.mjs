// A worker of a server whose answers cannot be read, or do not come.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { Client, Worker } from "runlane";
import { duration } from "../dist/errors.js";

const silence = [0];
const garbled = [[200, "<html>"], [502, ["bad"]], [200, []], [200, {}], [404, "<html>"], [502, null]];
const claim = (runId) => [200, { kind: "claim", token: runId, runId, taskId: "t", attempt: 1, payload: null }];

test("durations are rounded up", () => {
  const times = [0, 0.1, 1e-9, 70.00000000000001, 1000.1];
  assert.deepEqual(times.map(duration), ["0ms", "1ms", "1ms", "70ms", "1001ms"]);
});

test("a refusal says when to try again", async () => {
  const server = createServer((_, response) => response.writeHead(503, { "Retry-After": "3" }).end('{"code":"overloaded"}'));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = new Client({ url: `http://127.0.0.1:${server.address().port}` });
  try {
    await assert.rejects(client.once("POST", "/v1/runs", {}), { code: "overloaded", retryAfter: 3000 });
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test("a worker goes on whatever is answered", { timeout: 25_000 }, async () => {
  const answers = {
    claim: [...garbled.slice(0, 3), claim("a"), claim("b")],
    "a/heartbeat": [silence, ...garbled],
    "a/complete": garbled.slice(0, 4),
  };
  const alive = { a: deferred(), b: deferred() };
  const ended = { a: deferred(), b: deferred() };
  const reply = (path, run) => {
    const given = answers[path === "claim" ? path : `${run}/${path}`]?.shift();
    if (given) return given;
    if (path === "claim") return silence;
    (path === "heartbeat" ? alive : ended)[run].resolve();
    return [200, path === "heartbeat" ? { kind: "lease", cancelRequested: false } : { kind: "change" }];
  };
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const part of request) text += part;
    const [status, said] = reply(request.url.split("/").at(-1), JSON.parse(text).token);
    if (!status) return;
    response.writeHead(status).end(typeof said === "string" ? said : JSON.stringify(said));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = new Client({ url: `http://127.0.0.1:${server.address().port}` });
  const worker = new Worker(client, { concurrency: 2, lease: 1200, log: () => {} });
  worker.task("t", (attempt) => alive[attempt.runId].promise);
  const working = worker.run({ signals: false });
  try {
    await Promise.all([ended.a.promise, ended.b.promise]);
    assert.deepEqual(Object.values(answers), [[], [], []]);
  } finally {
    worker.stop();
    await working;
    server.closeAllConnections();
    server.close();
  }
});

test("a handler that outlives the grace keeps its run from others for a lease", { timeout: 25_000 }, async () => {
  const claims = [claim("a"), claim("b")];
  const said = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const part of request) text += part;
    const path = request.url.split("/").at(-1);
    if (path === "release") said.push(JSON.parse(text));
    const [status, answer] = path === "claim" ? (claims.shift() ?? silence) : [200, { kind: "change" }];
    if (status) response.writeHead(status).end(JSON.stringify(answer));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = new Client({ url: `http://127.0.0.1:${server.address().port}` });
  const begun = { a: deferred(), b: deferred() };
  const worker = new Worker(client, { concurrency: 2, lease: 1200, grace: 0, log: () => {} });
  worker.task("t", async ({ runId, signal }) => {
    begun[runId].resolve();
    await (runId === "a" ? deferred().promise : once(signal, "abort"));
    signal.throwIfAborted();
  });
  const working = worker.run({ signals: false });
  await Promise.all([begun.a.promise, begun.b.promise]);
  worker.stop();
  await working;
  assert.deepEqual(said, [{ token: "b" }, { token: "a", after: "1200ms", reason: "shutdown" }]);
  server.closeAllConnections();
  server.close();
});

test("a stop releases what a claim under way brings", { timeout: 25_000 }, async () => {
  const asked = deferred();
  const said = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const part of request) text += part;
    if (!request.url.endsWith("/claim")) {
      said.push([request.url, JSON.parse(text)]);
      response.end(JSON.stringify({ kind: "change" }));
      return;
    }
    request.socket.once("end", () => response.end(JSON.stringify(claim("a")[1]))); // as the server does
    asked.resolve();
  });
  server.httpAllowHalfOpen = true;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const worker = new Worker(new Client({ url: `http://127.0.0.1:${server.address().port}` }), { concurrency: 1, log: () => {} });
  worker.task("t", () => assert.fail("it is executed"));
  const working = worker.run({ signals: false });
  await asked.promise;
  worker.stop();
  await working;
  assert.deepEqual(said, [["/v1/work/release", { token: "a" }]]);
  server.closeAllConnections();
  server.close();
});

function deferred() {
  const made = {};
  made.promise = new Promise((resolve) => (made.resolve = resolve));
  return made;
}
