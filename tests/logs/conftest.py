"""Logs as small files, and the tables that come of them."""

from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from askew.core.lexicon import load_lexicon
from askew.logs.analyze import logs
from askew.logs.definition import build_vocabulary
from askew.logs.pairs import Walk, walk
from askew.logs.settings import LogSettings
from askew.logs.tables import canonical_column

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture(scope="session")
def vocabulary():
    return build_vocabulary(load_lexicon("gsqr2023"))


@pytest.fixture(scope="session")
def data():
    if not DATA.is_dir():
        pytest.skip("the real data is not there: expected a folder ../shared/data beside the checkout")
    return DATA


@pytest.fixture
def walked():
    """Walks through rows of (user, seconds, query), and gives what came of it."""

    def go(rows, vocabulary, **how):
        table = pa.table(
            {
                "user": pa.array([row[0] for row in rows], pa.uint64()),
                "time": pa.array([round(1000 * row[1]) for row in rows], pa.int64()),
                "query": canonical_column(pa.array([row[2] for row in rows], pa.string())),
                "line": pa.array(range(1, len(rows) + 1), pa.int64()),
                **how.pop("columns", {}),
            }
        )
        return walk(pl.DataFrame(pl.from_arrow(table)), Walk(vocabulary, **{"gap": 30 * 60_000, **how}))

    return go


@pytest.fixture
def analyzed(tmp_path):
    """Writes a log as Parquet and analyzes it."""

    def go(rows, **settings):
        path = tmp_path / "log.parquet"
        pl.DataFrame(rows, infer_schema_length=None).write_parquet(path)
        chosen = LogSettings(**{"min_users": 1, "min_events": 1, **settings})
        return logs(path, format="parquet", settings=chosen)

    return go
