"""A recorded plan of any shape opens as no plan, and the next one is used."""

import json

import pytest

from askew.core.files import fingerprint
from askew.core.store.store import Store
from askew.ui.explorer.plan import recorded_plan

GOOD = {"recipe": "r", "sections": {"collection": {"source": "demo"}}, "steps": [["scores", "k"]], "groups": None}


@pytest.mark.parametrize(
    "change",
    [
        {"steps": None}, {"steps": [["scores"]]}, {"steps": [["scores", {}]]}, {"steps": 3}, {"groups": 3},
        {"groups": "r"}, {"groups": {}}, {"groups": [["a", "b"]]}, {"sections": 7}, {"sections": {"collection": 3}},
    ],
)  # fmt: skip
def test_a_plan_of_another_shape_is_left_out(change, tmp_path):
    (tmp_path / "plans").mkdir()
    for plan in (GOOD | change, GOOD):
        (tmp_path / "plans" / f"{fingerprint(plan)}.json").write_text(json.dumps(plan))
    assert recorded_plan(Store(tmp_path)).keys == {"scores": "k"}
    (tmp_path / "plans" / f"{fingerprint(GOOD)}.json").unlink()
    assert recorded_plan(Store(tmp_path)) is None
