"""What goes wrong, and what handlers raise."""

from __future__ import annotations

import math
from typing import Any


class Problem(Exception):
    """An answer that is an error: the fields of RFC 9457, with code, hint and retryability. status 0: no answer of
    the API came. retry_after are the seconds of the header Retry-After, 0 without it."""

    def __init__(self, status: int, body: dict[str, Any], retry_after: float = 0.0) -> None:
        super().__init__(f"{body.get('code', status)}: {body.get('detail', 'no answer')}")
        self.status, self.retry_after = status, retry_after
        self.code = str(body.get("code", ""))
        self.conflict = str(body.get("conflict", ""))
        self.hint = str(body.get("hint", ""))
        self.retryable = bool(body.get("retryable", False))


class ClaimLost(Problem):
    """The attempt is not this worker's any more: another one owns the run, or it has an outcome. Stop the work."""


class TaskError(Exception):
    """A failure whose text is kept in the run. The retries of the task follow."""

    def __init__(self, message: str = "", code: str = "", meta: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.message, self.code, self.meta = message, code, meta or {}


class Permanent(TaskError):
    """A failure that is not tried again."""


class RetryAfter(TaskError):
    """A failure that is tried again after a time of its choice."""

    def __init__(self, seconds: float, message: str = "", code: str = "") -> None:
        super().__init__(message, code)
        self.seconds = seconds


class Release(Exception):
    """The run goes on after a time. This is no failure, and costs no retry."""

    def __init__(self, seconds: float, reason: str = "") -> None:
        super().__init__(reason)
        self.seconds, self.reason = seconds, reason


class Suspended(BaseException):
    """The attempt has ended to wait. It is no Exception, so that "except Exception" does not take it: let it pass."""


def failure(error: BaseException) -> tuple[str, dict[str, Any]]:
    """The request below /v1/work that a handler's exception leads to."""
    if isinstance(error, Release):
        return "release", {"after": duration(error.seconds), "reason": error.reason}
    if not isinstance(error, TaskError):
        return "fail", {"message": f"{type(error).__name__} was raised."}
    body: dict[str, Any] = {"permanent": isinstance(error, Permanent)}
    for name, value in (("message", error.message), ("code", error.code), ("meta", error.meta)):
        if value:
            body[name] = value
    if isinstance(error, RetryAfter):
        body["after"] = duration(error.seconds)
    return "fail", body


def duration(seconds: float) -> str:
    """A time as the server reads it, in whole milliseconds: what is left of one counts as one."""
    ms = math.ceil(round(seconds * 1000, 6))  # 0.07 is 70 of them
    return f"{max(ms, 1) if seconds > 0 else ms}ms"
