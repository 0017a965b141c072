"""The same for asyncio. Requests are made in threads, so that the standard library is enough."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import logging
import secrets
import signal
from typing import Any, AsyncIterator, Awaitable, Callable, Iterator, NoReturn, TypeVar

from .api import (
    CallEnd, Claim, Event, Flow, Log, NodeBody, ReceivedSignal, Run, RunSummary, Schedule, Task, Triggered,
)
from .client import Client
from .errors import ClaimLost, Suspended, failure
from .worker import Attempt, Worker

T = TypeVar("T")
AsyncHandler = Callable[["AsyncAttempt", Any], Awaitable[Any]]
log = logging.getLogger("runlane")


class AsyncClient:
    """A Client whose methods are awaited."""

    def __init__(self, url: str | None = None, token: str | None = None, *, threads: int = 64) -> None:
        self.sync = Client(url, token)
        self._threads = concurrent.futures.ThreadPoolExecutor(threads, "runlane")

    async def call(self, function: Callable[..., T], *args: Any, **options: Any) -> T:
        """Calls a function of the client in a thread."""
        bound = functools.partial(function, *args, **options)
        return await asyncio.get_running_loop().run_in_executor(self._threads, bound)

    async def trigger(self, task: str, payload: Any = None, **options: Any) -> Triggered:
        """See Client.trigger."""
        return await self.call(self.sync.trigger, task, payload, **options)

    async def get(self, run_id: str) -> Run:
        """See Client.get."""
        return await self.call(self.sync.get, run_id)

    async def task(self, name: str) -> Task:
        """See Client.task."""
        return await self.call(self.sync.task, name)

    async def wait(self, run_id: str, timeout: float = 60.0) -> Run:
        """See Client.wait."""
        return await self.call(self.sync.wait, run_id, timeout)

    def runs(self, **filters: Any) -> AsyncIterator[RunSummary]:
        """See Client.runs."""
        return self._each(self.sync.runs(**filters))

    def events(self, run_id: str, *, after: str = "", follow: bool = False) -> AsyncIterator[Event]:
        """See Client.events."""
        return self._each(self.sync.events(run_id, after=after, follow=follow))

    def logs(self, run_id: str, *, attempt: int = 0, after: str = "", follow: bool = False) -> AsyncIterator[Log]:
        """See Client.logs."""
        return self._each(self.sync.logs(run_id, attempt=attempt, after=after, follow=follow))

    def schedules(self) -> AsyncIterator[Schedule]:
        """See Client.schedules."""
        return self._each(self.sync.schedules())

    async def flow(self, flow_id: str, nodes: list[NodeBody], **options: Any) -> Flow:
        """See Client.flow."""
        return await self.call(self.sync.flow, flow_id, nodes, **options)

    async def pause_schedule(self, schedule_id: str, reason: str = "") -> Schedule:
        """See Client.pause_schedule."""
        return await self.call(self.sync.pause_schedule, schedule_id, reason)

    async def resume_schedule(self, schedule_id: str, reason: str = "") -> Schedule:
        """See Client.resume_schedule."""
        return await self.call(self.sync.resume_schedule, schedule_id, reason)

    async def trigger_schedule(self, schedule_id: str) -> Triggered:
        """See Client.trigger_schedule."""
        return await self.call(self.sync.trigger_schedule, schedule_id)

    async def _each(self, items: Iterator[T]) -> AsyncIterator[T]:
        end = object()
        while (item := await self.call(next, items, end)) is not end:
            yield item

    async def signal(self, run_id: str, name: str, body: Any = None, signal_id: str | None = None) -> None:
        """See Client.signal."""
        await self.call(self.sync.signal, run_id, name, body, signal_id)

    async def cancel(self, run_id: str, reason: str = "") -> None:
        """See Client.cancel."""
        await self.call(self.sync.cancel, run_id, reason)


class AsyncAttempt:
    """One execution of a run's handler. When it should stop, the handler's task is cancelled."""

    def __init__(self, client: AsyncClient, attempt: Attempt) -> None:
        self._client, self.sync = client, attempt
        self.run_id, self.task, self.number = attempt.run_id, attempt.task, attempt.number
        self.meta, self.trace, self.deadline = attempt.meta, attempt.trace, attempt.deadline

    async def step(self, name: str, work: Callable[[], Awaitable[T]]) -> T:
        """See Attempt.step; work is awaited."""
        known = await self._client.call(self.sync.recall)
        if name in known:
            found: T = known[name]
            return found
        return await self._client.call(self.sync.keep, name, await work())

    async def sleep(self, name: str, seconds: float) -> None:
        """See Attempt.sleep."""
        await self._client.call(self.sync.sleep, name, seconds)

    async def wait(self, *signals: str, **options: Any) -> list[ReceivedSignal]:
        """See Attempt.wait."""
        return await self._client.call(self.sync.wait, *signals, **options)

    async def progress(self, note: str) -> None:
        """See Attempt.progress."""
        await self._client.call(self.sync.progress, note)

    async def snapshot(self, name: str, value: Any = None) -> Any:
        """See Attempt.snapshot."""
        return await self._client.call(self.sync.snapshot, name, value)

    async def block(self, reason: str) -> NoReturn:
        """See Attempt.block."""
        await self._client.call(self.sync.call, "block", {"reason": reason})
        raise Suspended

    async def run_all(self, task: str, payloads: list[Any], **options: Any) -> list[CallEnd]:
        """See Attempt.run_all."""
        return await self._client.call(self.sync.run_all, task, payloads, **options)

    async def trigger(self, task: str, payload: Any = None, *, run_id: str, **options: Any) -> Triggered:
        """See Attempt.trigger."""
        return await self._client.call(self.sync.trigger, task, payload, run_id=run_id, **options)

    async def send_signal(self, run_id: str, name: str, body: Any = None, *, signal_id: str) -> None:
        """See Attempt.send_signal."""
        await self._client.call(self.sync.send_signal, run_id, name, body, signal_id=signal_id)

    async def flow(self, flow_id: str, nodes: list[NodeBody], **options: Any) -> Flow:
        """See Attempt.flow."""
        return await self._client.call(self.sync.flow, flow_id, nodes, **options)


class AsyncWorker:
    """Claims runs and executes them as tasks of one event loop."""

    def __init__(
        self, client: AsyncClient, *, concurrency: int = 16, name: str = "", lease: float = 60.0, grace: float = 30.0,
    ) -> None:
        self.client, self.concurrency, self.lease, self.grace = client, concurrency, lease, grace
        self._worker = Worker(client.sync, name=name, lease=lease)  # its claims and outcomes
        self._handlers: dict[str, AsyncHandler] = {}
        self._active: dict[Attempt, asyncio.Future[Any]] = {}
        self._stop = asyncio.Event()
        self._over = False  # the grace, and each handler was cancelled
        self._threads = concurrent.futures.ThreadPoolExecutor(2 * concurrency, "runlane-worker")  # one, and a late beat

    def task(self, task: str) -> Callable[[AsyncHandler], AsyncHandler]:
        """Makes a coroutine function the handler of a task."""

        def add(handler: AsyncHandler) -> AsyncHandler:
            self._handlers[task] = handler
            return handler

        return add

    def stop(self) -> None:
        """Takes no more runs. run returns when those in progress have ended, or a few seconds after the grace."""
        self._stop.set()
        self._worker.stop()

    async def run(self, *, signals: bool = True) -> None:
        """Works until stop is called, with signals also by SIGTERM and SIGINT."""
        self._worker.claims(self._handlers)
        if signals:
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, self.stop)
        loops = [asyncio.create_task(self._loop()) for _ in range(self.concurrency)]
        try:
            await self._stop.wait()
            await asyncio.wait(loops, timeout=self.grace)
        finally:  # also where run itself is cancelled
            self.stop()
            self._over = True
            for attempt, handler in self._active.items():
                attempt.stopped.set()
                handler.cancel()
            await asyncio.wait(loops, timeout=self._worker.unwinding())
            await self._call(self._worker.leave, list(self._active))
            self._threads.shutdown(wait=False)

    async def _loop(self) -> None:
        claim_id = secrets.token_hex()
        while not self._stop.is_set():
            try:
                claim = await self._call(self._worker.claim, claim_id)
                claim_id = secrets.token_hex()  # without an answer, the next request gets the same claim
                if claim:
                    await self._execute(claim)
            except Exception as fault:  # noqa: BLE001: whatever a server answers, the loop goes on
                if not self._stop.is_set():
                    log.warning("no run could be claimed: %r", fault)
                    await asyncio.sleep(1.0)

    async def _call(self, function: Callable[..., T], *args: Any) -> T:
        """Calls a function of the worker in a thread that no handler uses."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *args)

    async def _handle(self, attempt: Attempt, payload: Any) -> Any:
        return await self._handlers[attempt.task](AsyncAttempt(self.client, attempt), payload)

    async def _execute(self, claim: Claim) -> None:
        attempt = Attempt(self.client.sync, claim)
        handler = asyncio.ensure_future(self._handle(attempt, claim["payload"]))
        self._active[attempt] = handler
        beats = asyncio.create_task(self._beat(attempt, handler))
        path, body = "release", {}  # where the worker has cancelled the handler
        try:
            output = await handler
            path, body = "complete", {} if output is None else {"output": output}
        except (Suspended, ClaimLost):
            return
        except BaseException as error:  # noqa: BLE001: whatever a handler raises is a failure of its run
            if not (attempt.stopped.is_set() and isinstance(error, asyncio.CancelledError)):
                log.warning("run %s, attempt %d: %r", attempt.run_id, attempt.number, error)
                path, body = failure(error)
        finally:
            beats.cancel()
            del self._active[attempt]
        if not attempt.lost:
            await self._call(self._worker.settle, attempt, path, body)

    async def _beat(self, attempt: Attempt, handler: asyncio.Future[Any]) -> None:
        pause = self.lease / 3
        while not attempt.stopped.is_set():
            await asyncio.sleep(pause)
            pause = await self._call(self._worker.beat, attempt)
        if not self._over:
            handler.cancel()
