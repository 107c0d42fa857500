"""Find the documents, queries and judgements in a folder by the usual file names.

- ``docs.tsv``, ``queries.tsv``, ``qrels.txt``, each with any supported ending, plain or gzip-compressed;
- BEIR: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/test.tsv``;
- Hugging Face: ``corpus/``, ``queries/``, ``qrels/``, ``data/``, ``default/`` with Parquet files in them;
- a folder with only documents, under any name.

A file name may contain a split: ``qrels/dev.tsv``, ``queries.dl19.tsv``, ``qrels.test``,
``data/test-00000-of-00001.parquet``. Of several judgement or query files, the one of the chosen split is read. If no
split is chosen, the file without a split is read, else that of ``test``, and ``Layout.note`` names it. In all other
cases a split must be chosen.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from askew.core.errors import AskewError, ConfigError, DataError, Note, UnknownName, check_name
from askew.data.columns import parquet_names
from askew.data.files import listing, suffix_of
from askew.data.judgements import QrelsFile, judgement_names, read_judgements
from askew.data.queries import are_queries, read_queries

# Names that identify documents: file name endings, and the columns or keys of ids and texts.

_ID_NAMES = ("doc_id", "docid", "docno", "id", "_id", "pid")
_TEXT_NAMES = ("text", "contents", "content", "body", "passage")
_JSON = dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl")
ENDINGS = {".tsv": "tsv", ".txt": "tsv", **_JSON, ".parquet": "parquet"}


def id_and_texts(columns: Container[str], fields: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """The name of the id column, and the names of the fields that make up the text."""
    id_name = next((name for name in _ID_NAMES if name in columns), None)
    return id_name, fields or tuple(name for name in _TEXT_NAMES if name in columns)[:1]


_DOCUMENTS = dict.fromkeys(("docs", "documents", "corpus", "collection"), "documents")
_ROLES = {**_DOCUMENTS, "queries": "queries", "qrels": "judgements"}
_ENDINGS = (*ENDINGS, ".csv")
# A file whose ending is one of these, such as qrels.test, needs no other ending.
_USUAL_SPLITS = ("train", "dev", "val", "valid", "validation", "test", "eval")
_SHARD = re.compile(r"(?P<name>.+?)-[0-9]{5}-of-(?P<count>[0-9]{5})(-[0-9a-f]+)?")
_EXPECTED = (
    "a file named docs.* or corpus.*, a folder named 'docs' or 'corpus', or Parquet files in data/ that have the "
    "columns 'doc_id' and 'text'"
)


class _Found(NamedTuple):
    """A file, the split in its name (empty if it has none), and the table to which the file belongs as a shard."""

    split: str
    table: Path
    path: Path


@dataclass(frozen=True)
class Layout:
    """The files of a collection. A missing choice among splits is an error only when such a file is read."""

    folder: Path
    documents: tuple[Path, ...]
    titled: bool
    split: str | None
    queries: tuple[_Found, ...]
    judgements: tuple[_Found, ...]

    def read_judgements(self) -> QrelsFile:
        """The judgements of the chosen split; by default those without a split, of ``test``, or of the only split."""
        return read_judgements(self._file("judgements"))

    def read_queries(self) -> pa.Table:
        """The queries of the chosen split; by default those without a split, or those of the judgements' split."""
        return read_queries(self._file("queries"))

    def note(self, role: str) -> str:
        """A note that names the file that is read, if there are several and no split is chosen; otherwise empty."""
        files = self._of(role)
        if self.split is not None or len(_splits(files)) < 2:
            return ""
        try:
            taken = self._file(role)
        except AskewError:
            return ""  # no file is read here; reading it raises the error
        names = listing(sorted(str(file.path.relative_to(self.folder)) for file in files))
        other = next(file.split for file in files if file.path != taken and file.split)
        read = f"reading {taken.relative_to(self.folder)}; to read another, write {self.folder}@{other}"
        message = f"{role} {self.folder}: found {names}; {read}"
        return Note(message, code="chosen-split", role=role, found=names, taken=taken.name, other=other)

    def _of(self, role: str) -> tuple[_Found, ...]:
        return self.judgements if role == "judgements" else self.queries

    def _file(self, role: str) -> Path:
        candidates, split = self._of(role), self.split
        if role == "queries" and split is None and self.judgements and "" not in _splits(candidates):
            split = _pick("judgements", self.folder, self.judgements, None) or None
        chosen = _pick(role, self.folder, candidates, split)
        files = [file.path for file in candidates if file.split == chosen]
        if len(files) > 1:
            raise _several(role, self.folder, files, "keep only one of these files")
        return files[0]


def folder_and_split(source: str | Path) -> tuple[Path, str] | None:
    """Split ``FOLDER@dev`` into the folder and the split; None if there is no such folder."""
    folder, _, split = str(source).rpartition("@")
    return (Path(folder), split) if folder and Path(folder).is_dir() else None


def find_layout(folder: Path, split: str | None = None) -> Layout:
    """Find the files of a collection in a folder. An unknown split is an error; a missing one is reported later."""
    try:
        by_role = _found(folder)
        if split is not None:
            named = [name for name in _splits(file for files in by_role.values() for file in files) if name]
            if not named:
                raise ConfigError(f"collection {folder}: found no splits, not even {split!r}; leave out ⟨split⟩")
            check_name("split", split, named, str(folder))
        documents = _documents(folder, by_role, split)
    except OSError as error:
        raise DataError(f"collection {folder}: the folder cannot be read ({error.strerror})") from None
    names = [documents[0], *documents[0].relative_to(folder).parents]
    titled = any(_name_and_split(path)[0] == "corpus" for path in names)
    return Layout(folder, documents, titled, split, tuple(by_role["queries"]), tuple(by_role["judgements"]))


def _documents(folder: Path, by_role: dict[str, list[_Found]], split: str | None) -> tuple[Path, ...]:
    documents = by_role["documents"]
    if not documents:
        if by_role["queries"] or by_role["judgements"]:
            raise _nothing(folder)
        files = [path for path in folder.iterdir() if path.is_file() and suffix_of(path) in ENDINGS]
        if not files:
            raise _nothing(folder, "the folder has no .tsv, .jsonl or .parquet file; ")
        return tuple(sorted(files))
    splits = _splits(documents)
    chosen = split if split in splits else "" if "" in splits else splits[0]
    if len(splits) > 1 and chosen not in ("", split):
        raise _which("documents", folder, splits)
    files = sorted(file.path for file in documents if file.split == chosen)
    tables = sorted({file.table for file in documents if file.split == chosen})
    if len(tables) > 1:
        raise _several("documents", folder, tables, "give one file instead of the folder, or keep only one file")
    # An incomplete download would pass for a smaller collection.
    shards = [shard.group("name", "count") for path in files if (shard := _SHARD.fullmatch(_stem(path)))]
    for name, count in sorted(set(shards)):
        present = shards.count((name, count))
        if present != int(count):
            expected = f"expected {int(count)} files {name}-*-of-{count}, found {present}"
            raise DataError(f"documents {files[0].parent}: {expected}; download the missing files")
    return tuple(files)


def _nothing(folder: Path, why: str = "") -> DataError:
    names = [path.name + "/" * path.is_dir() for path in _entries(folder)]
    message = f"collection {folder}: {why}expected documents ({_EXPECTED}); found {listing(names)}"
    return DataError(message, code="no-documents", found=names)


def _splits(files: Iterable[_Found]) -> list[str]:
    return sorted({file.split for file in files})


def _pick(role: str, folder: Path, files: tuple[_Found, ...], split: str | None) -> str:
    splits = _splits(files)
    if split in splits:
        return str(split)
    if "" in splits:
        return ""
    if split is not None:
        raise UnknownName("split", split, splits, f"the {role} of {folder}")
    if "test" in splits:
        return "test"
    if len(splits) > 1:
        raise _which(role, folder, splits)
    return splits[0]


def _which(role: str, folder: Path, splits: list[str]) -> ConfigError:
    message = f"{role} {folder}: there are the splits {listing(splits)}; name one of them, as in {folder}@{splits[0]}"
    return ConfigError(message, code="which-split")


def _several(role: str, folder: Path, paths: list[Path], do: str) -> ConfigError:
    names = listing(path.relative_to(folder) for path in paths)
    return ConfigError(f"{role} {folder}: expected only one, found {names}; {do}")


def _found(folder: Path) -> dict[str, list[_Found]]:
    """Find the files of each role by their names. Roles without a file are found by the columns of Parquet files."""
    by_role: dict[str, list[_Found]] = {"documents": [], "queries": [], "judgements": []}
    rest: list[_Found] = []
    data = folder / "data"
    # Hugging Face puts all files into data/, a name without a role, so its files are treated like those of the folder.
    for path in [*_entries(folder), *(_entries(data) if data.is_dir() else [])]:
        if path.is_dir():
            role = _ROLES.get(_stem(path).lower())
            (by_role[role] if role else rest).extend(_in_folder(path, role) if path != data else ())
            continue
        role = _ROLES.get(_name_and_split(path)[0])
        split_alone = role in ("queries", "judgements") and suffix_of(path).removeprefix(".") in _USUAL_SPLITS
        if split_alone or (suffix_of(path) in _ENDINGS and (role or path.parent == data)):
            (by_role[role] if role else rest).append(_Found(_split(path), _table(path), path))
    missing = {role for role, files in by_role.items() if not files}
    roles: dict[Path, str] = {}
    for file in rest if missing else ():
        if suffix_of(file.path) != ".parquet":
            continue
        if file.table not in roles:
            columns = parquet_names(file.path, "collection")
            is_documents = all(id_and_texts(columns, ()))
            role = "documents" if is_documents else "queries" if are_queries(columns) else ""
            roles[file.table] = "judgements" if judgement_names(columns) else role
        if roles[file.table] in missing:
            by_role[roles[file.table]].append(file)
    return by_role


def _entries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _in_folder(folder: Path, role: str | None) -> Iterator[_Found]:
    """The files of a subfolder. Files, and the folders of Hugging Face's Parquet conversion, are named after splits."""
    entries = _entries(folder)
    files = [path for path in entries if path.is_file() and suffix_of(path) in _ENDINGS]
    # Document files may have any name; only the names of Hugging Face shards begin with a split.
    parts = role == "documents" and not all(_SHARD.fullmatch(_stem(path)) for path in files)
    for path in files:
        yield _Found("", folder, path) if parts else _Found(_split(path), _table(path), path)
    for inner in (path for path in entries if path.is_dir()):
        inside = [path for path in _entries(inner) if path.is_file() and suffix_of(path) == ".parquet"]
        yield from (_Found(_split(inner), inner, path) for path in inside)


def _stem(path: Path) -> str:
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    ending = suffix_of(path)
    return name[: -len(ending)] if ending in _ENDINGS else name


def _base(path: Path) -> str:
    """The stem without the number of a shard: the common name of all shards of one table."""
    shard = _SHARD.fullmatch(_stem(path))
    return shard["name"] if shard else _stem(path)


def _name_and_split(path: Path) -> tuple[str, str]:
    name, _, split = _base(path).partition(".")
    return name.lower(), split


def _split(path: Path) -> str:
    """The split: ``dl19`` for queries.dl19.tsv, ``test`` for test-00000-of-00001.parquet, empty for queries.tsv."""
    name, split = _name_and_split(path)
    return split if name in _ROLES else _base(path)


def _table(path: Path) -> Path:
    """The common path of all shards of one table. A file that is not a shard is a table of its own."""
    return path.with_name(_base(path)) if _SHARD.fullmatch(_stem(path)) else path
