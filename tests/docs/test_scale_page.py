"""The table of docs/running.md has the numbers that the recorded run of benchmarks/scale_plan.py gives."""

import re

from doc_blocks import ROOT


def test_the_table_of_a_full_build_follows_from_the_recorded_run():
    page = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
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


def test_the_growth_of_memory_follows_from_the_recorded_blocks():
    page = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    line = re.compile(r"^ +([\d,]+) candidates +(run|report|publish) .*driver +(\d+) MiB +worker +(\d+) MiB", re.M)
    peaks = {(found[1], found[2]): (int(found[3]), int(found[4])) for found in line.finditer(page)}
    first, last = "1,000,000", "10,000,000"

    def growth(command, process=0):
        return f"{peaks[last, command][process] / peaks[first, command][process] - 1:.0%}"

    said = " ".join(page.split())
    assert f"grows by {growth('run')} in the driver" in said
    assert growth("run", 1).startswith("-")
    assert f"`askew report` grows by {growth('report')}, and that of `askew publish` by {growth('publish')}" in said
