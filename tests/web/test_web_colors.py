"""Colors of groups and of better and worse: two pairs that are never shared, for all eyes, in both themes."""

import re

import numpy as np
import pytest

from askew.ui.web.pages.shell import static_files

# Machado, Oliveira and Fernandes (2009), severity 1: linear RGB as it is seen.
EYES = {
    "usual": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
# To OKLab, where a distance is about how different two colors look.
_LMS = np.array([
    [0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
])  # fmt: skip
_LAB = np.array([
    [0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
])  # fmt: skip
GROUPS = [f"group-{name}" for name in "abcdef"]
SHEET = static_files()["style.css"].decode()


def linear(color):
    value = np.array([int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def distance(one, two, eyes="usual"):
    places = [_LAB @ np.cbrt(_LMS @ np.clip(EYES[eyes] @ linear(color), 0, 1)) for color in (one, two)]
    return float(100 * np.linalg.norm(places[0] - places[1]))


def contrast(one, two):
    dark, light = sorted(float(np.dot([0.2126, 0.7152, 0.0722], linear(color))) for color in (one, two))
    return (light + 0.05) / (dark + 0.05)


def theme(name):
    """The variables of a theme: the first block of the sheet is light, the one within the first media query dark."""
    light, _, rest = SHEET.partition("@media screen and (prefers-color-scheme:dark){")
    block = light if name == "light" else rest.partition("}")[0]
    return dict(re.findall(r"--([a-z0-9-]+):(#[0-9a-f]{6})", block))


@pytest.mark.parametrize("name", ["light", "dark"])
@pytest.mark.parametrize("pair", [("group-a", "group-b"), ("better", "worse")])
@pytest.mark.parametrize("eyes", EYES)
def test_the_two_colors_of_a_pair_stay_apart_for_all_eyes(name, pair, eyes):
    colors = theme(name)
    assert distance(colors[pair[0]], colors[pair[1]], eyes) > 14


@pytest.mark.parametrize("name", ["light", "dark"])
def test_no_group_has_a_color_like_that_of_better_or_worse(name):
    colors = theme(name)
    for group in GROUPS:
        assert min(distance(colors[group], colors[word]) for word in ("better", "worse")) > 10, group
        assert contrast(colors[group], colors["ground"]) > 4.5, group
    assert len({colors[one] for one in (*GROUPS, "better", "worse")}) == 8


def test_gains_are_drawn_in_the_colors_of_verdicts_and_words_in_those_of_groups():
    rules = re.findall(r"([^{}]+)\{([^{}]*)\}", SHEET)
    used = {selector.strip(): body for selector, body in rules if "var(--" in body}
    for selector, body in used.items():
        verdict, group = re.search(r"var\(--(better|worse)\)", body), re.search(r"var\(--group-", body)
        assert not (verdict and group), selector
        if re.search(r"\bgain\b", selector) and "color" in body:
            assert verdict and not group, selector
        if "mark.g" in selector:
            assert group and not verdict, selector
    assert "--g1" not in SHEET
