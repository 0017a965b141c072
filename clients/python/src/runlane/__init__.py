"""Client and worker of a Runlane server."""

from .aio import AsyncAttempt, AsyncClient, AsyncWorker
from .client import Client
from .errors import ClaimLost, Permanent, Problem, Release, RetryAfter, Suspended, TaskError
from .worker import Attempt, Worker

__all__ = [
    "AsyncAttempt", "AsyncClient", "AsyncWorker", "Attempt", "ClaimLost", "Client", "Permanent", "Problem", "Release",
    "RetryAfter", "Suspended", "TaskError", "Worker",
]
