// Executes the task "words.count" of tasks.json: node worker.mjs, with RUNLANE_URL where the server is not at 8080.
import { Client, Permanent, Worker } from "runlane";

const worker = new Worker(new Client(), { concurrency: 4 });

worker.task("words.count", async (attempt, payload) => {
  if (typeof payload.text !== "string") throw new Permanent("text is no text", "no_text");
  const words = await attempt.step("split", () => payload.text.split(/\s+/));
  return { words: words.length };
});

await worker.run();
