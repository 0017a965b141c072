"""The client against the real server: RUNLANE_BIN names the program."""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import subprocess
import tempfile
import threading
import time
import unittest
from typing import Any

from runlane import (
    AsyncAttempt, AsyncClient, AsyncWorker, Attempt, ClaimLost, Client, Permanent, Problem, Release, RetryAfter, TaskError, Worker,
)

SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
TASKS = {"tasks": [
    {"task": "t.echo", "queue": "py", "maxAttempts": 3, "backoff": "10ms", "schema": SCHEMA},
    {"task": "t.aio", "queue": "aio", "maxAttempts": 3, "backoff": "10ms"},
    {"task": "t.raw", "queue": "raw"},
]}


class Server:
    """The program, on a file."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        path = pathlib.Path(self.folder.name)
        (path / "tasks.json").write_text(json.dumps(TASKS))
        self.start("127.0.0.1:0")

    def start(self, listen: str) -> None:
        self.process = subprocess.Popen(
            [os.environ["RUNLANE_BIN"], "serve", "--lane", "sqlite:state.db", "--tasks", "tasks.json", "--listen", listen],
            cwd=self.folder.name, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().removeprefix("listening on ").strip()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def restart(self) -> None:
        listen = self.url.removeprefix("http://")
        self.stop()
        self.start(listen)


class ClientTest(unittest.TestCase):
    server: Server
    client: Client

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server()
        cls.client = Client(cls.server.url)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.client.disconnect()
        cls.server.stop()
        cls.server.folder.cleanup()

    def works(self, handler: Any, *payloads: Any) -> list[dict[str, Any]]:
        """The runs of the payloads, once a worker has executed them."""
        worker = Worker(self.client, concurrency=2, name="py", grace=5)
        worker.task("t.echo")(handler)
        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            ids = [self.client.trigger("t.echo", payload)["runId"] for payload in payloads]
            return [self.client.wait(run, 20) for run in ids]
        finally:
            began = time.monotonic()
            worker.stop()
            thread.join()
            self.assertLess(time.monotonic() - began, 5)

    def test_executes(self) -> None:
        runs = self.works(lambda attempt, payload: {"n": payload["n"] + 1}, {"n": 1}, {"n": 2})
        self.assertEqual([(r["status"], r["output"]) for r in runs], [("succeeded", {"n": 2}), ("succeeded", {"n": 3})])

    def test_failures(self) -> None:
        def handler(attempt: Attempt, payload: Any) -> Any:
            match payload["n"]:
                case 0:
                    raise Permanent("no light", code="too_dark")
                case 1 if attempt.number == 1:
                    raise RetryAfter(0.01, "again")
                case 2 if attempt.number == 1:
                    raise Release(0.01, "busy")
                case 3:
                    raise ValueError("secret")
                case 4:
                    return object()  # no JSON
                case 5:
                    raise TaskError("told")
            return attempt.number

        runs = self.works(handler, *({"n": n} for n in range(6)))
        self.assertEqual([r["status"] for r in runs], ["failed", "succeeded", "succeeded", "failed", "failed", "failed"])
        self.assertEqual((runs[0]["failure"]["code"], runs[0]["failure"]["message"]), ("too_dark", "no light"))
        self.assertEqual([r["counters"]["failures"] for r in runs], [1, 1, 0, 3, 3, 3])
        self.assertNotIn("secret", json.dumps(runs))
        self.assertEqual(runs[5]["failure"]["message"], "told")

    def test_remembers_and_waits(self) -> None:
        done: list[str] = []

        def handler(attempt: Attempt, payload: Any) -> Any:
            def charge() -> int:
                done.append(attempt.run_id)
                return len(done)

            first = attempt.step("charge", charge)
            attempt.progress("charged")
            answers = attempt.wait("approved", timeout=60)
            attempt.sleep("nap", 0.01)
            return [first, answers[0]["body"], attempt.number]

        worker = Worker(self.client, concurrency=1)
        worker.task("t.echo")(handler)
        thread = threading.Thread(target=worker.run)
        thread.start()
        run = self.client.trigger("t.echo", {"n": 1})["runId"]
        while self.client.get(run)["status"] != "released":
            time.sleep(0.02)
        self.client.signal(run, "approved", "ada")
        ended = self.client.wait(run, 20)
        worker.stop()
        thread.join()
        self.assertEqual(ended["output"], [1, "ada", 2])
        self.assertEqual(done, [run])

    def test_payload_that_does_not_fit(self) -> None:
        with self.assertRaises(Problem) as caught:
            self.client.trigger("t.echo", {"n": "secret"})
        self.assertEqual((caught.exception.status, caught.exception.code), (400, "validation_failed"))
        self.assertNotIn("secret", str(caught.exception))

    def test_trigger_finds_its_run(self) -> None:
        first = self.client.trigger("t.raw", 1, idempotency_key="k", delay=3600)
        again = self.client.trigger("t.raw", 1, idempotency_key="k", delay=3600)
        self.assertEqual((again["runId"], again["outcome"]), (first["runId"], "returned_existing"))
        self.client.cancel(first["runId"], "a test")
        self.assertEqual(self.client.wait(first["runId"], 1)["status"], "cancelled")

    def test_claim_outlives_the_server_and_dies_with_its_end(self) -> None:
        run = self.client.trigger("t.raw", {"n": 1})["runId"]
        claim = self.client.request("POST", "/v1/work/claim", {"tasks": ["t.raw"]})
        assert claim is not None
        self.server.restart()
        attempt = Attempt(self.client, claim)
        attempt.call("heartbeat", {"lease": "30s"})
        attempt.call("complete", {"output": 7})
        self.assertEqual(self.client.get(run)["output"], 7)
        with self.assertRaises(ClaimLost):
            attempt.heartbeat(30)
        self.assertTrue(attempt.stopped.is_set())

    def test_asyncio(self) -> None:
        async def all_of_it() -> dict[str, Any]:
            client = AsyncClient(self.server.url)
            worker = AsyncWorker(client, concurrency=3, lease=5)

            @worker.task("t.aio")
            async def echo(attempt: AsyncAttempt, payload: Any) -> Any:
                if attempt.number == 1:
                    raise RetryAfter(0.01)

                async def work() -> int:
                    await asyncio.sleep(0)
                    return 7

                return [await attempt.step("seven", work), payload]

            working = asyncio.create_task(worker.run(signals=False))
            made = await client.trigger("t.aio", {"n": 1})
            run = await client.wait(made["runId"], 20)
            worker.stop()
            await working
            return run

        run = asyncio.run(all_of_it())
        self.assertEqual((run["status"], run["output"]), ("succeeded", [7, {"n": 1}]))


if __name__ == "__main__":
    unittest.main()
