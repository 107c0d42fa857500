"""Plan: the steps in plain words; lines do not cross boxes."""

import re

from askew.ui.explorer.plan import plan_of


def test_steps_are_named_in_plain_words_with_their_identifiers(client, store):
    text = client.get("/plan").text
    for words in ("Write reformulations", "Filter reformulations", "Choose pairs", "Held-out figures"):
        assert f">{words}</text>" in text
    assert ">variants → 406 rows</text>" in text
    steps = len(plan_of(store))
    assert re.search(rf"<summary>[^<]*\({steps}\)</summary>", text)
    table = text[text.index('id="table-steps"') :]
    assert table.partition("</table>")[0].count('scope="row"') == steps


def test_a_line_to_a_later_step_goes_past_the_boxes_between(client):
    text = client.get("/plan").text
    numbers = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" rx="6"', text)
    boxes = [tuple(map(float, found)) for found in numbers]
    lines = re.findall(r'd="(M[^"]*)" class="wire"', text)
    assert len(boxes) == 7 and len(lines) == 14
    for line in lines:
        for x, top, bottom in _uprights(line):
            for left, y, wide, high in boxes:
                assert not (left < x < left + wide and top < y + high - 1 and bottom > y + 1), line


def _uprights(line):
    """The upright pieces of a path: where, from, to."""
    x = y = 0.0
    for kind, numbers in re.findall(r"([MHVL])([\d. ]+)", line):
        values = [float(one) for one in numbers.split()]
        if kind == "V":
            yield x, min(y, values[0]), max(y, values[0])
        x, y = {"H": (values[0], y), "V": (x, values[0])}.get(kind) or tuple(values)
