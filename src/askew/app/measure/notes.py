"""What a reader of the numbers of ``measure`` could take for something else, a line each."""

from __future__ import annotations

from collections.abc import Sequence

from askew.core.measure import Measure
from askew.measures.catalogue import MeasureRequest, Preset, is_shipped


def note_on_own_backgrounds(asked: Sequence[MeasureRequest], preset: Preset | None) -> list[str]:
    """Runs of other depths have other ideals: the same first documents can come to different values."""
    own = [one for one in asked if one.measure.param("background") == "self"]
    if not own:
        return []
    fixed = [one for one in own if _keeps_its_background(one, preset)]
    how = f"ask for {fixed[0].family.name}(background=run) and give" if fixed else "give"
    return [
        f"{_texts(own)}: each run is measured against the documents it retrieved itself; "
        f"{how} background= to measure all against the same"
    ]


def _keeps_its_background(one: MeasureRequest, preset: Preset | None) -> bool:
    """Whether a background run alone would change nothing."""
    by_preset = preset is not None and "background" in preset.defaults.get(one.family.name, {})
    return by_preset or Measure.parse(one.text).param("background") is not None


def note_on_liwc(asked: Sequence[MeasureRequest]) -> list[str]:
    """LIWC is a dictionary that does not come with askew."""
    named = [one for one in asked if Measure.parse(one.text).name == "LIWC"]
    notes = []
    for lexicon in dict.fromkeys(str(one.measure.param("lexicon")) for one in named):
        if is_shipped(lexicon):
            texts = _texts([one for one in named if one.measure.param("lexicon") == lexicon])
            name = lexicon.partition("@")[0]
            notes.append(
                f"{texts}: the open lexicon {name} stands in, it is not LIWC; "
                "give the LIWC dictionary, a .dic file, with lexicon="
            )
    return notes


def _texts(asked: Sequence[MeasureRequest]) -> str:
    return ", ".join(one.text for one in asked)
