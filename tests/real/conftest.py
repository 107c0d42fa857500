"""Real public data lies beside the checkout, if at all; it is never part of the project."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"


@pytest.fixture(scope="session")
def data():
    if not DATA.is_dir():
        pytest.skip("the real data is not there: expected a folder ../shared/data beside the checkout")
    return DATA


@pytest.fixture(scope="session")
def program():
    """The benchmark that trains and measures the mention model; it reads the labels too."""
    path = ROOT / "benchmarks" / "mention_model.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
