"""A job to be killed: counts mentions over many small shards, slowly enough to be hit in the middle."""

import sys
import time
from pathlib import Path

import pyarrow as pa

from askew.engine.run import run_step
from askew.engine.store import Store
from askew.stages.annotate import Annotate

ROWS = 300


class Texts:
    """A fixed source of rows, in batches that do not fit the shards."""

    key = "texts"

    def batches(self):
        rows = [(f"d{i}", "he she her " * (i % 5) + "é") for i in range(ROWS)]
        for start in range(0, ROWS, 31):
            part = rows[start : start + 31]
            yield pa.table({"doc_id": [r[0] for r in part], "text": pa.array([r[1] for r in part], pa.large_string())})


class SlowAnnotate(Annotate):
    """Annotate, with a rest in every shard."""

    def run(self, rows):
        time.sleep(float(sys.argv[3]) if len(sys.argv) > 3 else 0.0)
        return super().run(rows)


if __name__ == "__main__":
    run_step(Store(Path(sys.argv[1])), "mentions", SlowAnnotate(), Texts(), shard_rows=int(sys.argv[2]))
