"""Requests to a Runlane server."""

from __future__ import annotations

import http.client
import json
import os
import random
import socket
import ssl
import threading
import time
import urllib.parse
import uuid
from typing import Any, Iterator

from .api import Batch, Event, Flow, Log, NodeBody, Run, RunSummary, Schedule, Task, TriggerBody, Triggered
from .errors import ClaimLost, Problem, duration

_PAUSES = (0.0, 0.1, 0.3, 1.0, 2.0, 4.0)  # before the tries of a request; together less than half of a usual lease
_ENDED = ("succeeded", "failed", "cancelled")
_AGAIN = (0, 429, 502, 503, 504)  # statuses after which there is another try; 0 is no answer of the API


class Client:
    """Calls a server. It may be used by many threads: each has its own connection. Requests that got no answer, one that
    cannot be read, or one of _AGAIN, are repeated for some seconds. That is safe for all of them, since triggers always
    name their run."""

    def __init__(self, url: str | None = None, token: str | None = None, timeout: float = 30.0) -> None:
        given = url or os.environ.get("RUNLANE_URL", "http://127.0.0.1:8080")
        self._url = urllib.parse.urlsplit(given)
        if self._url.scheme not in ("http", "https") or not self._url.hostname:
            raise ValueError(f"{given!r} is no http or https address")
        self._token = token or os.environ.get("RUNLANE_TOKEN", "")
        self._timeout = timeout
        self._local = threading.local()

    def trigger(
        self, task: str, payload: Any = None, *, run_id: str | None = None, idempotency_key: str | None = None,
        delay: float | None = None, **options: Any,
    ) -> Triggered:
        """Makes a run, or finds the one of the key or id: see "outcome". options are other fields of POST /v1/runs."""
        body = {"task": task, "payload": payload, "runId": run_id or "run_" + uuid.uuid4().hex, **options}
        if idempotency_key is not None:
            body["idempotencyKey"] = idempotency_key
        if delay is not None:
            body["delay"] = duration(delay)
        made: Triggered = self.request("POST", "/v1/runs", body, "triggered")
        return made

    def trigger_many(self, runs: list[TriggerBody]) -> Batch:
        """Makes up to 10,000 runs; each has the fields of POST /v1/runs. The answer has one result for each."""
        body = {"runs": [{"runId": "run_" + uuid.uuid4().hex, **r} for r in runs]}
        made: Batch = self.request("POST", "/v1/batch", body, "batch")
        return made

    def get(self, run_id: str) -> Run:
        """The run as it is now."""
        run: Run = self.request("GET", "/v1/runs/" + urllib.parse.quote(run_id, safe=""), kind="run")
        return run

    def task(self, name: str) -> Task:
        """What is known of a task: its rules, and as schema the JSON Schema of its payloads, where the server has one."""
        task: Task = self.request("GET", "/v1/tasks/" + urllib.parse.quote(name, safe=""), kind="task")
        return task

    def wait(self, run_id: str, timeout: float = 60.0) -> Run:
        """The run when it has ended. TimeoutError comes first when it has not in that time."""
        end = time.monotonic() + timeout
        while True:
            left = max(0.0, min(20.0, end - time.monotonic()))
            path = f"/v1/runs/{urllib.parse.quote(run_id, safe='')}?wait={duration(left)}"
            run: Run = self.request("GET", path, kind="run")
            if run["status"] in _ENDED:
                return run
            if time.monotonic() >= end:
                raise TimeoutError(f"run {run_id} is {run['status']}")

    def runs(self, **filters: Any) -> Iterator[RunSummary]:
        """Lists runs, page by page. filters are those of GET /v1/runs, such as status="failed", task="images.resize"."""
        yield from self._pages("/v1/runs", filters)

    def events(self, run_id: str, *, after: str = "", follow: bool = False) -> Iterator[Event]:
        """What happened to a run, from the beginning or behind the cursor of an event. With follow until it has ended."""
        yield from self._followed(run_id, "events", {"after": after}, follow)

    def logs(self, run_id: str, *, attempt: int = 0, after: str = "", follow: bool = False) -> Iterator[Log]:
        """What the attempts of a run logged, or only one of them. after and follow are as of events."""
        query: dict[str, Any] = {"after": after}
        if attempt:
            query["attempt"] = attempt
        yield from self._followed(run_id, "logs", query, follow)

    def flow(self, flow_id: str, nodes: list[NodeBody], **options: Any) -> Flow:
        """Starts a flow of nodes, once for its id; each has the fields of POST /v1/flows."""
        flow: Flow = self.request("POST", "/v1/flows", {"flowId": flow_id, "nodes": nodes, **options}, "flow")
        return flow

    def schedules(self) -> Iterator[Schedule]:
        """Lists the schedules."""
        yield from self._pages("/v1/schedules", {})

    def pause_schedule(self, schedule_id: str, reason: str = "") -> Schedule:
        """Stops a schedule until it is resumed."""
        return self._switch(schedule_id, "pause", reason)

    def resume_schedule(self, schedule_id: str, reason: str = "") -> Schedule:
        """Lets a paused schedule fire again. What came due meanwhile is skipped."""
        return self._switch(schedule_id, "resume", reason)

    def trigger_schedule(self, schedule_id: str) -> Triggered:
        """Makes a run of a schedule at once. It is asked once only: each request makes a run."""
        made: Triggered = self.once("POST", f"/v1/schedules/{urllib.parse.quote(schedule_id, safe='')}/trigger", None, "triggered")
        return made

    def _switch(self, schedule_id: str, verb: str, reason: str) -> Schedule:
        path = f"/v1/schedules/{urllib.parse.quote(schedule_id, safe='')}/{verb}"
        schedule: Schedule = self.request("POST", path, {"reason": reason} if reason else None, "schedule")
        return schedule

    def _pages(self, path: str, query: dict[str, Any]) -> Iterator[Any]:
        query = dict(query)
        while True:
            page = self.request("GET", path + "?" + urllib.parse.urlencode(query), kind="page")
            yield from page["items"]
            if "next" not in page:
                return
            query["after"] = page["next"]

    def _followed(self, run_id: str, what: str, query: dict[str, Any], follow: bool) -> Iterator[Any]:
        path = f"/v1/runs/{urllib.parse.quote(run_id, safe='')}"
        while True:
            over = not follow or self.get(run_id)["status"] in _ENDED  # before the last look
            for item in self._pages(path + "/" + what, {k: v for k, v in query.items() if v}):
                query["after"] = item["cursor"]
                yield item
            if over:
                return
            time.sleep(1)

    def signal(self, run_id: str, name: str, body: Any = None, signal_id: str | None = None) -> None:
        """Sends a signal to a run, once: a repeated request has the same id."""
        path = f"/v1/runs/{urllib.parse.quote(run_id, safe='')}/signals"
        self.request("POST", path, {"name": name, "body": body, "id": signal_id or uuid.uuid4().hex}, "change")

    def cancel(self, run_id: str, reason: str = "") -> None:
        """Asks a run to stop. One that waits ends at once."""
        path = f"/v1/runs/{urllib.parse.quote(run_id, safe='')}/cancel"
        self.request("POST", path, {"reason": reason} if reason else None, "change")

    def request(self, method: str, path: str, body: Any = None, kind: str = "") -> Any:
        """One request of the API, whose answers are in runlane.api; None for one without a body. An error is a Problem.
        With a kind, as in docs/json.md, any other answer counts as none. Where the storage is overloaded, the next try
        comes after the time that the server says."""
        told = 0.0
        for last, pause in ((pause == _PAUSES[-1], pause) for pause in _PAUSES):
            time.sleep(max(pause * random.uniform(0.5, 1.5), told * random.uniform(1.0, 1.5)))
            try:
                return self.once(method, path, body, kind)
            except Problem as problem:
                if last or problem.code and problem.status not in _AGAIN:  # without a code it is none of the API
                    raise
                told = problem.retry_after if problem.code == "overloaded" else 0.0
        return None  # not reached

    def once(self, method: str, path: str, body: Any = None, kind: str = "", timeout: float | None = None) -> Any:
        """One try of a request, in another time than the client's."""
        headers = {"Authorization": "Bearer " + self._token} if self._token else {}
        text = None
        if body is not None:
            text, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        connection = self._connection(self._timeout if timeout is None else timeout)
        try:
            if connection.sock is None:
                connection.connect()
            connection.request(method, self._url.path.rstrip("/") + path, text, headers)
            answer = connection.getresponse()
            status, content = answer.status, answer.read()
            told = answer.getheader("Retry-After", "")
        except (OSError, http.client.HTTPException) as fault:
            self.disconnect()
            raise Problem(0, {"code": "no_answer", "detail": type(fault).__name__, "retryable": True}) from fault
        try:
            said, readable = json.loads(content) if content else None, True
        except (ValueError, RecursionError):
            said, readable = None, False
        if status >= 300:
            fields = said if isinstance(said, dict) else {}
            wait = float(told) if told.isdecimal() else 0.0
            raise (ClaimLost if fields.get("conflict") == "lease_ownership" else Problem)(status, fields, wait)
        if not readable or kind and status != 204 and not (isinstance(said, dict) and said.get("kind") == kind):
            raise Problem(0, {"code": "no_answer", "detail": "the answer is none of the API", "retryable": True})
        return said

    def disconnect(self) -> None:
        """Closes the connection of this thread."""
        connection: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        self._local.connection = None
        if connection is not None:
            connection.close()

    def hang_up(self, connection: http.client.HTTPConnection, how: int) -> None:
        """Ends what another thread waits for on its connection. With SHUT_WR an answer is still read."""
        if connection.sock is not None:
            try:
                socket.socket.shutdown(connection.sock, how)  # that of TLS would read no more
            except OSError:
                pass  # it has ended

    def connected(self, timeout: float) -> http.client.HTTPConnection:
        """The connection of this thread, for another one to hang up."""
        connection = self._connection(timeout)
        if connection.sock is None:
            connection.connect()
        return connection

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            host, port = self._url.hostname or "", self._url.port
            if self._url.scheme == "https":
                connection = http.client.HTTPSConnection(host, port, context=ssl.create_default_context())
            else:
                connection = http.client.HTTPConnection(host, port)
            self._local.connection = connection
        connection.timeout = timeout
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        return connection
