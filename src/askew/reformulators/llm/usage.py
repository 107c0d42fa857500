"""Counts of the requests and tokens that a model has used so far."""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Usage:
    """Counts of requests (with retries), failures, cached answers, and tokens of answers from the endpoint."""

    requests: int = 0
    retries: int = 0
    failures: int = 0
    cache_hits: int = 0
    cache_damaged: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Account:
    """Adds up the usage of several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = dict.fromkeys((field.name for field in fields(Usage)), 0)

    def add(self, **counts: int) -> None:
        """Add to the counts of these names."""
        with self._lock:
            for name, count in counts.items():
                self._counts[name] += count

    def total(self) -> Usage:
        """The counts so far."""
        with self._lock:
            return Usage(**self._counts)
