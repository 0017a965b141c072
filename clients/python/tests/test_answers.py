"""Workers of a server whose answers cannot be read, or do not come."""

from __future__ import annotations

import asyncio
import http.server
import json
import threading
import unittest
from typing import Any

from runlane import AsyncAttempt, AsyncClient, AsyncWorker, Attempt, Client, Worker
from runlane.errors import duration

Answer = tuple[int, Any]
SILENCE: Answer = (0, None)
GARBLED: list[Answer] = [(200, "<html>"), (502, ["bad"]), (200, []), (200, {}), (404, "<html>")]


def claim(run: str) -> Answer:
    return 200, {"kind": "claim", "token": run, "runId": run, "taskId": "t", "attempt": 1, "payload": None}


class Stub(http.server.ThreadingHTTPServer):
    """Answers what it was given, then properly."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.over = threading.Event()
        self.asked = threading.Event()
        self.said: list[tuple[str, dict[str, Any]]] = []  # of releases, by run
        self.alive = {run: threading.Event() for run in "ab"}  # a sign of life was answered
        self.ended = {run: threading.Event() for run in "ab"}
        self.answers = {
            "claim": [*GARBLED[:3], claim("a"), claim("b")],
            "a/heartbeat": [SILENCE, *GARBLED],
            "a/complete": GARBLED[:4],
        }
        threading.Thread(target=self.serve_forever).start()

    def close(self) -> None:
        self.over.set()
        self.shutdown()
        self.server_close()

    def reply(self, path: str, run: str, body: dict[str, Any]) -> Answer:
        if path == "release":
            self.said.append((run, body))
        left = self.answers.get(path if path == "claim" else f"{run}/{path}")
        if left:
            return left.pop(0)
        match path:
            case "claim":
                return SILENCE
            case "heartbeat":
                self.alive[run].set()
                return 200, {"kind": "lease", "cancelRequested": False}
        self.ended[run].set()
        return 200, {"kind": "change", "runId": run}


class Handler(http.server.BaseHTTPRequestHandler):
    server: Stub
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, said = self.server.reply(self.path.rsplit("/", 1)[1], body.pop("token", ""), body)
        if status == 1:  # as the server: when the client says no more
            self.server.asked.set()
            self.rfile.read()
            status = 200
        if not status:
            self.server.over.wait(60)
            self.close_connection = True
            return
        text = said.encode() if isinstance(said, str) else json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        pass


class DurationTest(unittest.TestCase):
    def test_rounds_up(self) -> None:
        times = {0: "0ms", 0.0001: "1ms", 1e-12: "1ms", 0.07: "70ms", 1.0001: "1001ms", 90: "90000ms"}
        self.assertEqual({seconds: duration(seconds) for seconds in times}, times)


class AnswersTest(unittest.TestCase):
    def setUp(self) -> None:
        self.stub = Stub()
        self.addCleanup(self.stub.close)

    def judge(self) -> None:
        """Both runs have ended: less than the 30 seconds after which a request is given up."""
        for run, ended in self.stub.ended.items():
            self.assertTrue(ended.wait(25), f"run {run} has not ended: {self.stub.answers}")
        self.assertEqual([left for left in self.stub.answers.values() if left], [])

    def test_worker(self) -> None:
        def handler(attempt: Attempt, payload: Any) -> None:
            self.assertTrue(self.stub.alive[attempt.run_id].wait(25))

        worker = Worker(Client(self.stub.url), concurrency=2, lease=1.2)
        worker.task("t")(handler)
        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            self.judge()
        finally:
            worker.stop()
            thread.join()

    def test_asyncio(self) -> None:
        async def handler(attempt: AsyncAttempt, payload: Any) -> None:
            while not self.stub.alive[attempt.run_id].is_set():
                await asyncio.sleep(0.01)

        async def all_of_it() -> None:
            worker = AsyncWorker(AsyncClient(self.stub.url), concurrency=2, lease=1.2, grace=1)
            worker.task("t")(handler)
            working = asyncio.create_task(worker.run(signals=False))
            try:
                await asyncio.to_thread(self.judge)
            finally:
                worker.stop()
                await working

        asyncio.run(all_of_it())

    def test_stop_releases_what_a_claim_under_way_brings(self) -> None:
        self.stub.answers = {"claim": [(1, claim("a")[1])]}
        worker = Worker(Client(self.stub.url), concurrency=1)
        worker.task("t")(lambda attempt, payload: self.fail("it is executed"))
        thread = threading.Thread(target=worker.run)
        thread.start()
        self.stub.asked.wait()
        worker.stop()
        thread.join()
        self.assertEqual(self.stub.said, [("a", {})])

    def test_grace_ends(self) -> None:
        """Others go on at once with what ended when it was asked to, and later with what did not."""
        self.stub.answers = {"claim": [claim("a"), claim("b")]}
        begun, never = threading.Semaphore(0), threading.Event()
        self.addCleanup(never.set)

        def handler(attempt: Attempt, payload: Any) -> None:
            begun.release()
            (never if attempt.run_id == "a" else attempt.stopped).wait()
            raise RuntimeError

        worker = Worker(Client(self.stub.url), concurrency=2, lease=1.2, grace=0)
        worker.task("t")(handler)
        thread = threading.Thread(target=worker.run)
        thread.start()
        begun.acquire()
        begun.acquire()
        worker.stop()
        thread.join()
        self.assertEqual(self.stub.said, [("b", {}), ("a", {"after": "1200ms", "reason": "shutdown"})])

    def test_asyncio_grace_ends(self) -> None:
        self.stub.answers = {"claim": [claim("a"), claim("b")]}

        async def all_of_it() -> None:
            begun, never = asyncio.Semaphore(0), asyncio.Event()
            worker = AsyncWorker(AsyncClient(self.stub.url), concurrency=2, lease=1.2, grace=0)

            @worker.task("t")
            async def handler(attempt: AsyncAttempt, payload: Any) -> None:
                begun.release()
                try:
                    await never.wait()
                except asyncio.CancelledError:
                    if attempt.run_id == "b":
                        raise
                    await never.wait()

            working = asyncio.create_task(worker.run(signals=False))
            await begun.acquire()
            await begun.acquire()
            worker.stop()
            await working
            never.set()

        asyncio.run(all_of_it())
        self.assertEqual(self.stub.said, [("b", {}), ("a", {"after": "1200ms", "reason": "shutdown"})])


if __name__ == "__main__":
    unittest.main()
