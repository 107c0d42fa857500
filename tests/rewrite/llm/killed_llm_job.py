"""A job to be killed: asks for many queries with a cache, and writes its candidates at the very end."""

import json
import sys
from pathlib import Path

from askew.core.protocols import QueryBatch
from askew.rewrite.llm import LlmReformulator

QUERIES = 150


def asked() -> QueryBatch:
    return QueryBatch(tuple(f"q{i}" for i in range(QUERIES)), tuple(f"query number {i}" for i in range(QUERIES)))


if __name__ == "__main__":
    url, cache, out = sys.argv[1:]
    reformulator = LlmReformulator("toy", base_url=url, cache=cache, concurrency=4, backoff_s=0.001)
    found = reformulator.reformulate(asked())
    Path(out).write_text(json.dumps([found.rows, found.texts, dict(found.rejected)]))
