"""Executes the task "words.count" of tasks.json: python worker.py, with RUNLANE_URL where the server is not at 8080."""

from typing import Any

from runlane import Attempt, Client, Permanent, Worker

worker = Worker(Client(), concurrency=4)


@worker.task("words.count")
def count(attempt: Attempt, payload: Any) -> dict[str, int]:
    """Counts the words of a text."""
    if not isinstance(payload["text"], str):
        raise Permanent("text is no text", code="no_text")
    words = attempt.step("split", payload["text"].split)
    return {"words": len(words)}


if __name__ == "__main__":
    worker.run()
