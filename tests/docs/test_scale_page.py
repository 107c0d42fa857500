"""The table of docs/scale.md has the numbers that the recorded run of benchmarks/scale_plan.py gives."""

import re

from doc_blocks import ROOT


def test_the_table_of_a_full_build_follows_from_the_recorded_run():
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    table, block = page.partition("<!-- results: scale_plan.py")[::2]
    minutes = float(re.search(r"indexed and counted: ([\d.]+) min", block)[1])
    each = float(re.search(r"candidates: (\d+) us each", block)[1])
    candidates = int(re.search(r"= ([\d,]+) candidates", block)[1].replace(",", ""))
    texts = float(re.search(r"at ([\d,]+) a second", block)[1].replace(",", ""))
    hours = candidates * each / 1e6 / 3600
    assert f"| {minutes:.0f} minutes |" in table
    assert f"| {hours:.1f} hours | {hours * 2 / 16:.1f} hours |" in table
    assert f"{candidates / texts / 3600:.1f} hours on one NVIDIA H200" in table
    disk = re.search(r"disk (\d+) GiB", block)[1]
    assert f"| {disk} GiB |" in table
