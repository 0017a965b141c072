// The worker in TypeScript, as Node executes it.
import { setTimeout as pause } from "node:timers/promises";

const { Client, Worker } = await import(process.env.CLIENT);
const { CONCURRENCY, LEASE_MS, ATTEMPT_MS } = process.env;
const worker = new Worker(new Client(), { concurrency: Number(CONCURRENCY), lease: Number(LEASE_MS), name: "typescript" });

worker.task("words.count", async (_, payload) => {
  await pause(Number(ATTEMPT_MS));
  return { words: payload.text.trim().split(/\s+/).length, by: "typescript" };
});

await worker.run();
