"""The worker in Python."""

import os
import time
from typing import Any

from runlane import Attempt, Client, Worker

worker = Worker(
    Client(), concurrency=int(os.environ["CONCURRENCY"]), lease=int(os.environ["LEASE_MS"]) / 1000, name="python")


@worker.task("words.count")
def count(attempt: Attempt, payload: Any) -> dict[str, Any]:
    """Counts the words of a text."""
    time.sleep(int(os.environ["ATTEMPT_MS"]) / 1000)
    return {"words": len(payload["text"].split()), "by": "python"}


worker.run()
