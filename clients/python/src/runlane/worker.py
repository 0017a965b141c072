"""A worker that executes runs in threads."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import threading
import time
from typing import Any, Callable, NoReturn, TypeVar

from .api import (
    CalledObject, CallEnd, Claim, Flow, LeaseObject, NodeBody, ReceivedSignal, Step, StepPage, Triggered,
    Waited,
)
from .client import Client
from .errors import ClaimLost, Problem, Suspended, duration, failure

T = TypeVar("T")
Handler = Callable[["Attempt", Any], Any]
log = logging.getLogger("runlane")
_KINDS = {
    "block": "change", "call": "called", "complete": "change", "fail": "change", "flow": "flow", "heartbeat": "lease",
    "progress": "lease", "release": "change", "signal": "change", "sleep": "waited", "snapshot": "step", "step": "step",
    "steps": "page", "trigger": "triggered", "wait": "waited",
}  # of the answers below /v1/work
_CLAIM_TIME = 30.0  # of a request that waits for 20 seconds


class Attempt:
    """One execution of a run's handler."""

    def __init__(self, client: Client, claim: Claim) -> None:
        self._client, self._token = client, str(claim["token"])
        self._known: dict[str, Any] | None = {} if claim["attempt"] == 1 else None
        self.run_id: str = claim["runId"]
        self.task: str = claim["taskId"]
        self.number: int = claim["attempt"]
        self.meta: dict[str, str] = claim.get("meta", {})
        self.trace: dict[str, str] = claim.get("traceCarrier", {})
        self.deadline: str | None = claim.get("deadline")
        self.lost = False
        self.stopped = threading.Event()
        """Set when the handler should return: the run was cancelled, the lease was lost, or the worker stops."""

    def call(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """A request with the token of the claim."""
        try:
            return self._client.request(
                "POST", "/v1/work/" + path, {"token": self._token, **(body or {})}, _KINDS.get(path, ""))
        except ClaimLost:
            self.ended()
            raise

    def ended(self) -> None:
        """The lease is lost, or left."""
        self.lost = True
        self.stopped.set()

    def heartbeat(self, lease: float) -> None:
        """Extends the lease. It waits for the answer for a sixth of it, so that there is time for others."""
        body = {"token": self._token, "lease": duration(lease)}
        try:
            answer: LeaseObject = self._client.once("POST", "/v1/work/heartbeat", body, "lease", lease / 6)
        except ClaimLost:
            self.ended()
            raise
        if answer["cancelRequested"]:
            self.stopped.set()

    def step(self, name: str, work: Callable[[], T]) -> T:
        """Does work once for the run: later attempts get its recorded result, which is JSON. It runs at least once."""
        known = self.recall()
        return known[name] if name in known else self.keep(name, work())

    def recall(self) -> dict[str, Any]:
        """The results that the run remembers, by name."""
        if self._known is None:
            page: StepPage = self.call("steps")
            self._known = {r["name"]: r.get("result") for r in page["items"] if r["stepKind"] == "step"}
        return self._known

    def keep(self, name: str, result: T) -> T:
        """Records a result, and returns the one that was recorded first."""
        step: Step = self.call("step", {"name": name, "result": result})
        kept: T = step.get("result")  # type: ignore[assignment]
        self.recall()[name] = kept
        return kept

    def sleep(self, name: str, seconds: float) -> None:
        """Returns once the time since the first call has passed; until then the attempt ends here."""
        answer: Waited = self.call("sleep", {"name": name, "for": duration(seconds)})
        if answer["suspended"]:
            raise Suspended

    def wait(
        self, *signals: str, name: str = "", timeout: float | None = None, prompt: str = "", every: bool = False,
        schemas: dict[str, Any] | None = None,
    ) -> list[ReceivedSignal]:
        """The signal of one of the names, or of each. Without any the attempt ends here. An empty list: the time is over;
        a timeout of 0 does not wait, and without one there is no limit. schemas are JSON Schemas by the names of signals:
        a body that does not fit is refused to its sender."""
        body: dict[str, Any] = {"signals": list(signals), "all": every}
        if name:
            body["name"] = name
        if prompt:
            body["prompt"] = prompt
        if timeout is not None:
            body["timeout"] = duration(timeout)
        if schemas is not None:
            body["schemas"] = schemas
        answer: Waited = self.call("wait", body)
        if answer["suspended"]:
            raise Suspended
        return answer.get("signals", [])

    def progress(self, note: str) -> None:
        """Shows operators a note."""
        self.call("progress", {"note": note})

    def snapshot(self, name: str, value: Any = None) -> Any:
        """Records a value as it is now, for operators and later attempts. Returns the one that was recorded first."""
        step: Step = self.call("snapshot", {"name": name, "value": value})
        return step.get("result")

    def block(self, reason: str) -> NoReturn:
        """Ends the attempt here. The handler is called again when an operator resumes the run."""
        self.call("block", {"reason": reason})
        raise Suspended

    def run_all(self, task: str, payloads: list[Any], **options: Any) -> list[CallEnd]:
        """Makes a run of each payload once, and returns them when all have ended; until then the attempt ends here.
        options are other fields of POST /v1/work/call."""
        answer: CalledObject = self.call("call", {"task": task, "payloads": payloads, **options})
        if answer["suspended"]:
            raise Suspended
        return answer.get("runs", [])

    def trigger(self, task: str, payload: Any = None, *, run_id: str, **options: Any) -> Triggered:
        """Makes a run whose source is this one. An attempt may be repeated, so that run_id has to be the same each time."""
        made: Triggered = self.call("trigger", {"task": task, "payload": payload, "runId": run_id, **options})
        return made

    def send_signal(self, run_id: str, name: str, body: Any = None, *, signal_id: str) -> None:
        """Sends a signal to another run, once for each signal_id."""
        self.call("signal", {"runId": run_id, "name": name, "body": body, "id": signal_id})

    def flow(self, flow_id: str, nodes: list[NodeBody], **options: Any) -> Flow:
        """Starts a flow of nodes, once for its id; each has the fields of POST /v1/flows."""
        flow: Flow = self.call("flow", {"flowId": flow_id, "nodes": nodes, **options})
        return flow


class Worker:
    """Claims runs of the tasks that have handlers, and executes them in threads."""

    def __init__(
        self, client: Client, *, concurrency: int = 4, name: str = "", lease: float = 60.0, grace: float = 30.0,
    ) -> None:
        self.client, self.concurrency, self.lease, self.grace = client, concurrency, lease, grace
        self.name = name or f"{socket.gethostname()}-{os.getpid()}"
        self._handlers: dict[str, Handler] = {}
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._active: set[Attempt] = set()
        self._waiting: set[Any] = set()  # connections of claims that wait

    def task(self, task: str) -> Callable[[Handler], Handler]:
        """Makes a function the handler of a task."""

        def add(handler: Handler) -> Handler:
            self._handlers[task] = handler
            return handler

        return add

    def stop(self) -> None:
        """Takes no more runs. run returns when those in progress have ended, or a few seconds after the grace."""
        self._stop.set()
        self._hang_up(socket.SHUT_WR)  # upon which the server answers: with a run, where it was claimed
        late = threading.Timer(3.0, self._hang_up, [socket.SHUT_RDWR])
        late.daemon = True
        late.start()

    def _hang_up(self, how: int) -> None:
        with self._lock:
            for connection in self._waiting:
                self.client.hang_up(connection, how)

    def run(self) -> None:
        """Works until stop is called. In the main thread SIGTERM and SIGINT call it."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: threading.Thread(target=self.stop, daemon=True).start())
        threads = [threading.Thread(target=self._loop, daemon=True) for _ in range(self.concurrency)]
        for thread in threads:
            thread.start()
        while not self._stop.wait(0.5):
            pass  # signals come between two waits
        _join(threads, self.grace)
        for attempt in self._left():
            attempt.stopped.set()
        _join(threads, self.unwinding())
        self.leave(self._left())

    def _left(self) -> list[Attempt]:
        with self._lock:
            return list(self._active)

    def unwinding(self) -> float:
        """How long handlers that were asked to stop may take to return. It ends before a lease that nothing extends."""
        return min(5.0, self.lease / 3)

    def leave(self, attempts: list[Attempt]) -> None:
        """Goes on without handlers that do not return. They may still work: others wait for the time of a lease."""
        for attempt in attempts:
            attempt.ended()  # no signs of life, and no outcome
        for attempt in attempts:
            log.warning("run %s, attempt %d: its handler did not return, and is left", attempt.run_id, attempt.number)
            self.settle(attempt, "release", {"after": duration(self.lease), "reason": "shutdown"})

    def _loop(self) -> None:
        claim_id = secrets.token_hex()
        while not self._stop.is_set():
            try:
                claim = self.claim(claim_id)
                claim_id = secrets.token_hex()  # without an answer, the next request gets the same claim
                if claim:
                    self._execute(claim)
            except Exception as fault:  # noqa: BLE001: whatever a server answers, the loop goes on
                if not self._stop.is_set():
                    log.warning("no run could be claimed: %r", fault)
                    self._stop.wait(1.0)
        self.client.disconnect()

    def claims(self, handlers: dict[str, Any]) -> None:
        """Sets the tasks whose runs are claimed."""
        self._handlers = handlers

    def claim(self, claim_id: str) -> Claim | None:
        """Waits for a run of the tasks; None when none came in 20 seconds. After a lost answer the same id gets the same claim."""
        connection = self.client.connected(_CLAIM_TIME)
        with self._lock:
            self._waiting.add(connection)
        claim: Claim | None = None
        try:
            if self._stop.is_set():
                return None
            claim = self.client.once("POST", "/v1/work/claim", {
                "tasks": list(self._handlers), "worker": self.name, "lease": duration(self.lease), "wait": "20s",
                "claimId": claim_id,
            }, "claim", _CLAIM_TIME)
        finally:
            with self._lock:
                self._waiting.discard(connection)
            if self._stop.is_set():
                self.client.disconnect()  # it takes no other request
        if claim and self._stop.is_set():
            self.settle(Attempt(self.client, claim), "release", {})
            return None
        return claim

    def _execute(self, claim: Claim) -> None:
        attempt, over = Attempt(self.client, claim), threading.Event()
        with self._lock:
            self._active.add(attempt)
        threading.Thread(target=self._beat, args=(attempt, over), daemon=True).start()
        try:
            output = self._handlers[attempt.task](attempt, claim["payload"])
            path, body = "complete", {} if output is None else {"output": output}
        except Suspended:
            return  # it ended when it was asked for
        except ClaimLost:
            return
        except BaseException as error:  # noqa: BLE001: whatever a handler raises is a failure of its run
            log.warning("run %s, attempt %d: %r", attempt.run_id, attempt.number, error)
            path, body = failure(error)
            if attempt.stopped.is_set():
                path, body = "release", {}
        finally:
            over.set()
            with self._lock:
                self._active.discard(attempt)
        if not attempt.lost:
            self.settle(attempt, path, body)

    def settle(self, attempt: Attempt, path: str, body: dict[str, Any]) -> None:
        """Records how an attempt has ended."""
        try:
            attempt.call(path, body)
        except ClaimLost:
            log.warning("run %s, attempt %d: its lease was lost, nothing is recorded", attempt.run_id, attempt.number)
        except Problem as problem:
            log.error("run %s, attempt %d: the outcome is not recorded: %s", attempt.run_id, attempt.number, problem)
            if problem.status in (400, 413) and path == "complete":  # an output that cannot be
                self.settle(attempt, "fail", {"message": "The output was refused.", "permanent": False})
        except (TypeError, ValueError, RecursionError):
            self.settle(attempt, "fail", {"message": "The output is no JSON.", "permanent": False})

    def _beat(self, attempt: Attempt, over: threading.Event) -> None:
        """Gives the signs of life of an attempt. Each attempt has a thread, so that none waits for another's answer."""
        pause = self.lease / 3
        while not over.wait(pause) and not attempt.lost:
            pause = self.beat(attempt)
        self.client.disconnect()

    def beat(self, attempt: Attempt) -> float:
        """Gives a sign of life. It returns the time until the next, which comes soon when this one failed."""
        began = time.monotonic()
        try:
            attempt.heartbeat(self.lease)
            return max(0.0, began + self.lease / 3 - time.monotonic())
        except ClaimLost:
            log.warning("run %s, attempt %d: its lease was lost", attempt.run_id, attempt.number)
        except Exception as fault:  # noqa: BLE001: whatever a server answers, the next one follows
            log.warning("no sign of life of run %s: %r", attempt.run_id, fault)
        return self.lease / 12


def _join(threads: list[threading.Thread], seconds: float) -> None:
    """Waits for all of them, and no longer."""
    end = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
