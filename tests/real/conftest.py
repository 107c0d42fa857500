"""Real public data lies beside the checkout, if at all; it is never part of the project."""

from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture(scope="session")
def data():
    if not DATA.is_dir():
        pytest.skip("the real data is not there: expected a folder ../shared/data beside the checkout")
    return DATA
