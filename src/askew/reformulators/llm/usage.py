"""What asking a model has cost so far."""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Usage:
    """Requests sent (retries among them), answers taken from the cache, and the tokens of the answers paid for."""

    requests: int = 0
    retries: int = 0
    failures: int = 0
    cache_hits: int = 0
    cache_damaged: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Account:
    """A usage that grows, safely from several threads."""

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
