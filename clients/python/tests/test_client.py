"""The client against the real server: RUNLANE_BIN names the program."""

from __future__ import annotations

import asyncio
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
from typing import Any

from runlane import (
    AsyncAttempt, AsyncClient, AsyncWorker, Attempt, ClaimLost, Client, Permanent, Problem, Release, RetryAfter, TaskError, Worker,
)
from runlane.api import Run

SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
TASKS = {"tasks": [
    {"task": "t.echo", "queue": "py", "maxAttempts": 3, "backoff": "10ms", "schema": SCHEMA},
    {"task": "t.aio", "queue": "aio", "maxAttempts": 3, "backoff": "10ms"},
    {"task": "t.raw", "queue": "raw"},
    {"task": "t.idle", "queue": "idle"},
    {"task": "t.parent", "queue": "family"},
    {"task": "t.child", "queue": "family"},
    {"task": "t.waiter", "queue": "family"},
    {"task": "images.resize", "queue": "images"},
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

    def works(self, handler: Any, *payloads: Any) -> list[Run]:
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

    def test_lists(self) -> None:
        """Pages are walked, and what is followed ends with its run."""
        run = self.client.trigger("t.echo", {"n": 1}, delay=600)["runId"]
        later = self.client.trigger("t.echo", {"n": 1}, delay=600)["runId"]
        listed = [r["runId"] for r in self.client.runs(task="t.echo", status="scheduled", limit=1)]
        self.assertEqual(sorted(listed), sorted([run, later]))
        followed = self.client.events(run, follow=True)
        first = next(followed)
        self.client.cancel(run)
        types = [e["type"] for e in followed]
        self.assertEqual((first["type"], types[-1]), ("run.created", "run.cancelled"))
        behind = self.client.events(run, after=first["cursor"], follow=True)
        self.assertEqual([e["type"] for e in behind], types)
        self.assertEqual(list(self.client.logs(run, attempt=1, follow=True)), [])
        self.client.cancel(later)
        self.assertEqual(list(self.client.schedules()), [])
        for change in (self.client.pause_schedule, self.client.resume_schedule, self.client.trigger_schedule):
            with self.assertRaises(Problem) as refused:
                change("none")
            self.assertEqual(refused.exception.code, "schedule_not_found")
        flow = self.client.flow("lists", [{"name": "a", "task": "t.idle"}, {"name": "b", "task": "t.idle", "after": ["a"]}])
        self.assertEqual([n["name"] for n in flow["nodes"]], ["a", "b"])

        async def alike() -> list[str]:
            return [e["type"] async for e in AsyncClient(self.server.url).events(run)]

        self.assertEqual(asyncio.run(alike()), ["run.created", *types])

    def test_readme(self) -> None:
        """The program of the README, as it stands there, until SIGTERM."""
        text = (pathlib.Path(__file__).parent.parent / "README.md").read_text()
        code = text.split("```python\n", 1)[1].split("```", 1)[0]
        address = "http://127.0.0.1:8080"
        self.assertIn(address, code)
        program = "store = lambda url: len(url)\n" + code.replace(address, self.server.url)
        process = subprocess.Popen([sys.executable, "-c", program])
        try:
            run = self.client.wait(self.client.trigger("images.resize", {"url": "https://example.com/b.png"})["runId"], 20)
            self.assertEqual((run["status"], run["output"]), ("succeeded", {"stored": 25}))
        finally:
            process.terminate()
            self.assertEqual(process.wait(20), 0)

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
            self.assertEqual(attempt.wait("never", timeout=0), [])
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

    def test_task_has_its_schema(self) -> None:
        self.assertEqual(self.client.task("t.echo")["schema"], SCHEMA)
        self.assertNotIn("schema", self.client.task("t.raw"))
        self.assertEqual(asyncio.run(AsyncClient(self.server.url).task("t.raw"))["queue"], "raw")

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

    def test_makes_runs_flows_and_signals(self) -> None:
        other = self.client.trigger("t.waiter")["runId"]

        def parent(attempt: Attempt, payload: Any) -> Any:
            first = attempt.snapshot("first", attempt.number)
            called = attempt.run_all("t.child", [1, 2])
            made = attempt.trigger("t.child", 3, run_id=attempt.run_id + "-next")
            flow = attempt.flow(attempt.run_id + "-flow", [{"name": "a", "task": "t.child", "payload": 4}])
            attempt.send_signal(other, "go", "ada", signal_id=attempt.run_id)
            if attempt.number == 2:
                attempt.block("the disk is full")
            return [first, [run["output"] for run in called], made["outcome"], flow["flowId"]]

        worker = Worker(self.client, concurrency=3)
        worker.task("t.parent")(parent)
        worker.task("t.child")(lambda attempt, payload: payload * 2)
        worker.task("t.waiter")(lambda attempt, payload: attempt.wait("go")[0]["body"])
        thread = threading.Thread(target=worker.run)
        thread.start()
        run = self.client.trigger("t.parent")["runId"]
        try:
            self.blocked(run)
            self.client.request("POST", f"/v1/runs/{run}/resume")
            ended = self.client.wait(run, 20)
            self.assertEqual(ended["output"], [1, [2, 4], "returned_existing", run + "-flow"])
            self.assertEqual(self.client.wait(run + "-next", 20)["output"], 6)
            self.assertEqual(self.client.wait(other, 20)["output"], "ada")
        finally:
            worker.stop()
            thread.join()

    def blocked(self, run: str) -> None:
        """Waits until the second attempt of a run has ended."""
        end = time.monotonic() + 20
        while True:
            now = self.client.get(run)
            if now["status"] == "released" and now["counters"]["attempts"] == 2:
                return
            self.assertLess(time.monotonic(), end, now)
            time.sleep(0.02)

    def test_asyncio_makes_runs_flows_and_signals(self) -> None:
        async def all_of_it() -> Run:
            client = AsyncClient(self.server.url)
            worker = AsyncWorker(client, concurrency=3)

            async def parent(attempt: AsyncAttempt, payload: Any) -> Any:
                first = await attempt.snapshot("first", attempt.number)
                called = await attempt.run_all("t.child", [1, 2])
                made = await attempt.trigger("t.raw", 3, run_id=attempt.run_id + "-next", delay="1h")
                flow = await attempt.flow(attempt.run_id + "-flow", [{"name": "a", "task": "t.child", "payload": 4}])
                await attempt.send_signal(made["runId"], "go", "ada", signal_id=attempt.run_id)
                if attempt.number == 2:
                    await attempt.block("the disk is full")
                return [first, [run["output"] for run in called], made["outcome"], flow["flowId"]]

            async def child(attempt: AsyncAttempt, payload: Any) -> Any:
                return payload * 2

            worker.task("t.parent")(parent)
            worker.task("t.child")(child)
            working = asyncio.create_task(worker.run(signals=False))
            run = (await client.trigger("t.parent"))["runId"]
            await client.call(self.blocked, run)
            await client.call(self.client.request, "POST", f"/v1/runs/{run}/resume")
            ended = await client.wait(run, 20)
            await client.cancel(run + "-next")
            worker.stop()
            await working
            return ended

        run = asyncio.run(all_of_it())
        self.assertEqual(run["output"], [1, [2, 4], "returned_existing", run["runId"] + "-flow"])

    def test_asyncio(self) -> None:
        async def all_of_it() -> Run:
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

    def test_asyncio_what_a_handler_cancels_itself_is_a_failure(self) -> None:
        async def all_of_it() -> Run:
            client = AsyncClient(self.server.url)
            worker = AsyncWorker(client, concurrency=1)

            @worker.task("t.aio")
            async def gives_up(attempt: AsyncAttempt, payload: Any) -> None:
                if attempt.number > 3:
                    return  # or it would go on for ever
                part = asyncio.ensure_future(asyncio.sleep(60))
                part.cancel()
                await part

            working = asyncio.create_task(worker.run(signals=False))
            run = await client.wait((await client.trigger("t.aio"))["runId"], 20)
            worker.stop()
            await working
            return run

        run = asyncio.run(all_of_it())
        self.assertEqual((run["status"], run["counters"]["failures"]), ("failed", 3))
        self.assertEqual(run["failure"]["message"], "CancelledError was raised.")


class Refusing(http.server.BaseHTTPRequestHandler):
    """Answers that the storage is overloaded."""

    def do_POST(self) -> None:
        self.send_response(503)
        self.send_header("Retry-After", "3")
        self.end_headers()
        self.wfile.write(b'{"code": "overloaded", "retryable": true}')

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


class RefusedTest(unittest.TestCase):
    def test_waits_as_long_as_the_server_says(self) -> None:
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
            threading.Thread(target=server.serve_forever).start()
            try:
                with unittest.mock.patch("runlane.client.time.sleep") as sleep, self.assertRaises(Problem) as refused:
                    Client(f"http://127.0.0.1:{server.server_port}").trigger("t.echo")
            finally:
                server.shutdown()
        self.assertEqual((refused.exception.code, refused.exception.retry_after), ("overloaded", 3.0))
        self.assertTrue(all(call.args[0] >= 3 for call in sleep.call_args_list[1:]))


if __name__ == "__main__":
    unittest.main()
