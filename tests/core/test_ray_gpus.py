"""Steps with a neural model run in actors that have a GPU; the others do not hold one."""

import logging

import pyarrow as pa
import pytest

from askew.core.errors import ConfigError
from askew.core.store.ray import RayExecutor
from askew.core.store.steps import Plan, Step
from askew.core.store.store import Store


class Rows:
    key = "rows"

    def batches(self):
        yield pa.table({"row": list(range(6))})


class Seen:
    """Says how many GPUs its actor was given."""

    version = 1

    def __init__(self, name, neural):
        self.name, self.neural = name, neural

    def settings(self):
        return {}

    def run(self, rows):
        import ray

        given = ray.get_runtime_context().get_assigned_resources().get("GPU", 0.0)
        return pa.table({"row": rows["row"], "gpus": [float(given)] * rows.num_rows}), {}


def stage_of(name, neural):
    return lambda: Seen(name, neural)


@pytest.fixture(scope="module")
def cluster():
    """A cluster whose machine says that it has one GPU; nothing is run on it."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: the extra 'ray'")
    found = ray.init(
        "local", num_cpus=2, num_gpus=1, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False
    )
    yield found.address_info["gcs_address"]
    ray.shutdown()


def run(store, **options):
    kinds = {"light": False, "neural": True, "after": False}
    steps = [Step(name, Seen(name, neural), "rows", stage_of(name, neural), 1) for name, neural in kinds.items()]
    with RayExecutor(**options) as executor:
        outcomes = Plan({"rows": Rows()}, steps).run(store, executor=executor)
    tables = {name: pa.concat_tables(store.read(one.manifest)) for name, one in outcomes.items()}
    return {name: set(table["gpus"].to_pylist()) for name, table in tables.items()}


@pytest.mark.parametrize(("gpus", "given"), [(1.0, 1.0), (0.5, 0.5), (0.0, 0.0), (2, 0.0)])
def test_only_neural_steps_have_the_share_of_a_gpu(cluster, tmp_path, gpus, given):
    found = run(Store(tmp_path / "store"), workers=2, gpus=gpus)
    assert found == {"light": {0.0}, "neural": {given}, "after": {0.0}}


@pytest.mark.parametrize("gpus", [-1, 1.5])
def test_a_share_that_no_machine_can_give_is_refused(gpus):
    with pytest.raises(ConfigError, match="gpus="):
        RayExecutor(gpus=gpus)
