"""License, link and authors of known training data, for the model card."""

from __future__ import annotations

from collections.abc import Mapping

GREPBIASIR: Mapping[str, str] = {
    "dataset": "GrepBiasIR",
    "authors": "Krieg, Parada-Cabaleiro, Medicus, Lesota, Schedl and Rekabsaz",
    "license": "CC0-1.0",
    "link": "https://github.com/KlaraKrieg/GrepBiasIR",
}
_DEMO: Mapping[str, str] = {"license": "Apache-2.0", "authors": "The askew developers"}


def known_source(collection_id: str) -> dict[str, str]:
    """Facts of a collection by its id; empty for other files, because their license is not known."""
    if collection_id == "demo":
        return dict(_DEMO)
    name, scheme, dataset = collection_id.partition("irds:")
    if scheme and not name:
        return {"link": f"https://ir-datasets.com/{dataset.partition('/')[0]}.html"}
    return {}
