"""Damaged and hostile files in the formats that a stranger can send: is each refused, or read as it is written?

Each input is a valid one with random damage: bytes, lines, columns and JSON values are removed, repeated, exchanged,
cut off, or replaced by values that often break readers (huge numbers, NaN, lone surrogates, deep nesting, names of
other files). An input is *refused* if the reader raises an error of askew, *accepted* if it is read, a *crash* if
another exception is raised, and *misread* if what was read is not what an independent, slow reading of the same bytes
says. ``--inputs`` is the number for all formats together; formats that cost more per input get fewer of them.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import random
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import askew
from askew.core.address import Address, _user_of, without_secrets
from askew.core.errors import AskewError, DataError
from askew.core.files import fingerprint
from askew.core.lexicon import load_lexicon
from askew.core.measure import Measure, split_measures
from askew.core.store.manifest import Manifest, key_of
from askew.core.store.store import Store
from askew.data.documents import read_documents
from askew.data.judgements import read_judgements
from askew.data.queries import read_queries
from askew.data.runs import read_run
from askew.logs.analyze import analyze_sample
from askew.logs.page import read_log_report, write_tables
from askew.pairs.plan import needs_trust
from askew.pairs.recipe import groups_of, read_recipe
from askew.search.disk import FORMAT, _checksum, read_header
from askew.search.engines.answers import _SHAPES
from askew.search.engines.callables import as_found
from askew.search.engines.http import HttpEngine, read_hits, read_template
from askew.search.engines.ranker import falling
from askew.search.engines.wire import Reply, read_json
from askew.study.audit.report import read_audit
from askew.study.gate import OF_AUDIT, read_conditions
from askew.ui.explorer.plan import recorded_plan
from askew.ui.web.pages.audit import audit_page, logs_page
from askew.ui.web.pages.shell import render

PIECES = [
    b"\t",
    b"\n",
    b"\r\n",
    b" ",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b'"',
    b"'",
    b"\\",
    b"{",
    b"[",
    b"[" * 3000,
    b"9" * 5000,
    b"NaN",
    b"Infinity",
    b"-1",
    b"1e999",
    b"1e-400",
    b"\\ud800",
    "\u2028\u00a0e\u0301\u202e".encode(),
    b"../../x",
    b"\x1b[2J",
    b"null",
    b",",
    b"=",
    b"#",
    b"0x1F",
    b"1_000",
    b"1.0.0",
    b"<script>",
    b"\x1f\x8b\x08",
    b"%s%n{query}",
    b"q1",
]
VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    2**63,
    10**400,
    1e308,
    -1e308,
    1e-320,
    "",
    "x" * 3000,
    "\ud800",
    "../../x",
    "\0",
    "NaN",
    [],
    {},
    [[]],
    {"a": {"b": [1]}},
    "<script>alert(1)</script>",
    [None],
    {"": None},
    3.5,
    "\u202e",
    ["a", 1],
]
OUTCOMES = ("refused", "accepted", "crash", "misread")
WHITE = r"[ \t\x0b\x0c]+"


class Misread(Exception):
    """Something was read that the file does not say."""


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The bytes with one to four random changes."""
    for _ in range(chance.randint(1, 4)):
        at, end = sorted(chance.randrange(len(data) + 1) for _ in range(2))
        lines = data.split(b"\n")
        row = chance.randrange(len(lines))
        match chance.randrange(9):
            case 0:
                data = data[:at] + chance.choice(PIECES) + data[at:]
            case 1:
                data = data[:at] + data[end:]
            case 2:
                data = data[:at]
            case 3:
                data = data[:end] + data[at:end] + data[end:]
            case 4:
                data = data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
            case 5:
                lines[row] = chance.choice(PIECES).join(lines[row].split(chance.choice([b"\t", b" ", b","])))
                data = b"\n".join(lines)
            case 6:
                data = b"\n".join(lines[:row] + lines[row + 1 :])
            case 7:
                data = b"\n".join([*lines[:row], lines[row][: len(lines[row]) // 2], *lines[row:]])
            case 8:
                fields = lines[row].split()
                chance.shuffle(fields)
                data = b"\n".join([*lines[:row], chance.choice([b" ", b"\t"]).join(fields), *lines[row + 1 :]])
    return data


def damaged_json(value: Any, chance: random.Random) -> Any:
    """The JSON value with one to three random changes of values and names."""
    value = copy.deepcopy(value)
    for _ in range(chance.randint(1, 3)):
        inside: Any = None
        key: Any = None
        one = value
        while isinstance(one, dict | list) and one and chance.random() < 0.9:
            inside, key = one, chance.choice(list(one)) if isinstance(one, dict) else chance.randrange(len(one))
            one = one[key]
        if inside is None:
            continue
        match chance.randrange(4):
            case 0:
                del inside[key]
            case 1 if isinstance(inside, dict):
                inside[str(chance.choice(VALUES))[:50]] = inside.pop(key)
            case 2:
                inside[key] = copy.deepcopy(
                    chance.choice(list(inside.values()) if isinstance(inside, dict) else inside)
                )
            case _:
                inside[key] = copy.deepcopy(chance.choice(VALUES))
    return value


def as_text(data: bytes) -> list[str]:
    """The lines of a text that is not blank, read slowly."""
    text = data.removeprefix(b"\xef\xbb\xbf").decode().replace("\r\n", "\n").replace("\r", "\n")
    return text.split("\n")


def agree(condition: bool, what: str) -> None:
    if not condition:
        raise Misread(what)


def rows_agree(data: bytes, rows: list[tuple[int, tuple[str, ...]]], header: bool) -> None:
    """Every line that is not blank gives one row, and each of its values is a whole column of that line."""
    lines = as_text(data)
    told = [number for number, line in enumerate(lines, 1) if line.strip(" \t\x0b\x0c")]
    agree([number for number, _ in rows] in (told, told[1:] if header else told), "rows and lines")
    for number, values in rows:
        line = lines[number - 1].strip(" \t\x0b\x0c")
        columns = {*re.split(WHITE, line), *(field.strip(" \t\x0b\x0c") for field in line.split("\t"))}
        agree(all(value in columns for value in values), f"line {number}")


# A reader for each format: it gets the damaged bytes and a folder, and raises an error, Misread, or nothing.


def run_file(data: bytes, folder: Path) -> None:
    (folder / "a.run").write_bytes(data)
    lines = read_run(folder / "a.run").lines
    rows_agree(data, [(row[0], (row[1], row[2])) for row in lines.select("line", "query_id", "doc_id").rows()], True)
    text = as_text(data)
    for number, score in lines.select("line", "score").rows():
        found = {abs(float(word)) for word in re.split(WHITE, text[number - 1]) if is_number(word)}
        agree(abs(score) in found, f"score of line {number}")


def is_number(word: str) -> bool:
    try:
        return bool(float(word) or True)
    except ValueError:
        return False


def judgements_file(data: bytes, folder: Path) -> None:
    (folder / "qrels.txt").write_bytes(data)
    found = read_judgements(folder / "qrels.txt")
    lines = [line for line in as_text(data) if line.strip(" \t\x0b\x0c")]
    for query, doc, grade in found.lines.select("query_id", "doc_id", "relevance").rows():
        columns = [
            [word.strip() for word in (line.split("\t") if "\t" in line else re.split(WHITE, line.strip()))]
            for line in lines
        ]
        words = [re.split(WHITE, line.strip(" \t\x0b\x0c")) for line in lines]
        agree(
            any(
                one[0] == query and one[-2] == doc and is_number(one[-1]) and float(one[-1]) == grade
                for one in (*columns, *words)
                if len(one) >= 3
            ),
            "judgement",
        )
    agree(found.lines.height <= len(lines), "rows and lines")


def queries_file(data: bytes, folder: Path) -> None:
    (folder / "q.tsv").write_bytes(data)
    table = read_queries(folder / "q.tsv")
    lines = as_text(data)
    for query, text in zip(table["query_id"].to_pylist(), table["text"].to_pylist(), strict=True):
        agree(any(query in line and text in line for line in lines), "query")


def documents_file(data: bytes, folder: Path) -> None:
    (folder / "d.tsv").write_bytes(data)
    tables = list(read_documents(folder / "d.tsv"))
    # In a document, a carriage return alone is no end of a line.
    starts = [line.lstrip(" \t\x0b\x0c") for line in data.removeprefix(b"\xef\xbb\xbf").decode().split("\n")]
    for table in tables:
        for doc, text in zip(table["doc_id"].to_pylist(), table["text"].to_pylist(), strict=True):
            agree(any(line.startswith(doc) and (text or "") in line for line in starts), "document")


def json_documents(data: bytes, folder: Path) -> None:
    (folder / "d.jsonl").write_bytes(data)
    tables = list(read_documents(folder / "d.jsonl"))
    told = [json.loads(line) for line in as_text(data) if line.strip()]
    for table in tables:
        for doc in table["doc_id"].to_pylist():
            agree(any(str(one.get("id", one.get("doc_id"))) == doc for one in told), "document")


def json_run(data: bytes, folder: Path) -> None:
    (folder / "a.jsonl").write_bytes(data)
    for query, doc in read_run(folder / "a.jsonl").lines.select("query_id", "doc_id").rows():
        told = [json.loads(line) for line in as_text(data) if line.strip()]
        agree(any(query in map(str, one.values()) and doc in map(str, one.values()) for one in told), "row")


def lexicon_file(ending: str) -> Callable[[bytes, Path], None]:
    def read(data: bytes, folder: Path) -> None:
        (folder / f"l.{ending}").write_bytes(data)
        load_lexicon(folder / f"l.{ending}")

    return read


def template_file(data: bytes, folder: Path) -> None:
    (folder / "t.toml").write_bytes(data)
    read_template(str(folder / "t.toml"))
    HttpEngine(url="http://127.0.0.1:1/?q={query}", template=str(folder / "t.toml")).settings()


def recipe_file(data: bytes, folder: Path) -> None:
    (folder / "r.toml").write_bytes(data)
    recipe = read_recipe(folder / "r.toml")
    needs_trust(recipe.sections)
    groups_of(recipe)


def manifest_file(data: bytes, folder: Path) -> None:
    with contextlib.suppress(ValueError, RecursionError, TypeError, KeyError, AttributeError):
        # Most changes would only be seen in the key, which anybody can compute.
        told = json.loads(data)
        key = key_of(told["stage"], told["version"], told["settings"], told["input_key"])
        data = json.dumps(told | {"key": key}).encode()
    found = Manifest.parse(data, "x/y/manifest.json")
    told = json.loads(data)
    agree(json.loads(found.to_json()) == {"format": 1, **told}, "manifest")
    agree(all(re.fullmatch(r"part-\d{12}-\d{12}-[0-9a-f]{16}\.parquet", part.file) for part in found.parts), "name")


def plan_file(data: bytes, folder: Path) -> None:
    (folder / "plans").mkdir(exist_ok=True)
    for old in (folder / "plans").iterdir():
        old.unlink()
    try:
        name = fingerprint(json.loads(data))
    except (ValueError, RecursionError, TypeError):
        name = "0" * 16
    (folder / "plans" / f"{name}.json").write_bytes(data)
    recorded_plan(Store(folder))


def audit_file(data: bytes, folder: Path) -> None:
    (folder / "audit.json").write_bytes(data)
    found = read_audit(folder)
    page = render(audit_page(found, "a", {"a": folder}))
    agree(b"<script>alert" not in page, "a script in the page")
    told = json.loads(data)
    for name, measured in found.measures.items():
        agree(measured.mean == told["measures"][name]["mean"], "mean")


def logs_folder(data: bytes, folder: Path) -> None:
    (folder / "report.json").write_bytes(data)
    agree(b"<script>alert" not in render(logs_page(read_log_report(folder))), "a script in the page")


def reply(data: bytes, folder: Path) -> None:
    form = {"hits_at": "hits", "id_at": "id", "score_at": "score", "text_at": "text"}
    found = read_hits(read_json(Reply(200, {}, data), "here"), form, "here")
    told = json.loads(data)["hits"]
    agree([one.doc_id for one in found] == [str(one["id"]) for one in told], "ids")
    scores = falling([one.score for one in found])
    agree(all(a > b for a, b in pairwise(scores)), "order")


def returned(data: bytes, folder: Path) -> None:
    try:
        values = json.loads(data)
    except (ValueError, RecursionError):
        return
    for value in values if isinstance(values, list) else [values]:
        found = as_found(value)
        if isinstance(value, list) and isinstance(value[0], str) and len(value) == 2 and type(value[1]) in (int, float):
            agree(found.doc_id == value[0] or not value[0], "id")


def cached(data: bytes, folder: Path) -> None:
    try:
        value = json.loads(data)
        rows = _SHAPES["answers"](value)
    except (ValueError, TypeError, RecursionError):
        raise DataError("the file does not use it") from None
    agree([[one[0], one[1]] for one in rows] == [[one[0], one[1]] for one in value], "answer")


def index_header(data: bytes, folder: Path) -> None:
    try:
        told = json.loads(data)
        data = json.dumps({**told, "checksum": _checksum(told)}).encode()
    except (ValueError, RecursionError, TypeError):
        pass
    (folder / "header.json").write_bytes(data)
    read_header(folder)


def measures(data: bytes, folder: Path) -> None:
    for part in split_measures(data.decode("utf-8", "replace")):
        one = Measure.parse(part)
        agree(Measure.parse(str(one)) == one, "measure")


def gates(data: bytes, folder: Path) -> None:
    for text in data.decode("utf-8", "replace").split(";"):
        for one in read_conditions([text], OF_AUDIT):
            agree(one.measure in text, "condition")


def addresses(data: bytes, folder: Path) -> None:
    text = data.decode("utf-8", "replace")
    shown = str(Address(text))
    if (
        text.count("@") == 1
        and not re.search(r"\s", text)
        and (_user_of(text)[0] == 0 or re.match(r"[a-z]+://[^/?#@\s]+:[^/?#@\s]+@", text))
    ):
        agree("hunter2secret" not in shown, "a secret")
    without_secrets(text)


@dataclass(frozen=True)
class Format:
    seeds: list[Any]
    read: Callable[[bytes, Path], None]
    weight: int = 10
    prepare: Callable[[Path], None] = lambda _: None


def formats() -> dict[str, Format]:
    run = b"".join(b"q%d Q0 d%d %d %d.5 tag\n" % (q, d, d, 9 - d) for q in range(3) for d in range(1, 4))
    qrels = b"".join(b"q%d 0 d%d %d\n" % (q, d, d % 2) for q in range(3) for d in range(1, 4))
    rows = [{"query_id": "q1", "doc_id": "d1", "score": 2.5}, {"query_id": "q1", "doc_id": "d2", "score": 1}]
    docs = [{"id": "d1", "text": "she is a nurse"}, {"id": "d2", "text": "he"}]
    part = {
        "file": "part-000000000000-000000000004-" + "a" * 16 + ".parquet",
        "start": 0,
        "stop": 4,
        "rows": 4,
        "kept": 4,
        "dropped": {},
        "sha256": "a" * 64,
        "size": 100,
    }
    manifest = {
        "step": "scores",
        "key": "k",
        "stage": "score",
        "version": 1,
        "settings": {"a": [1]},
        "input_key": "i",
        "columns": {"id": "string"},
        "parts": [part],
        "format": 1,
        "totals": {"rows_in": 4, "rows_out": 4, "dropped": {}},
    }
    plan = {
        "recipe": "r",
        "sections": {"collection": {"source": "demo"}, "evaluate": {"measures": ["RR@10"]}},
        "steps": [["scores", "k"]],
        "collection": "demo",
        "groups": None,
    }
    hits = {"hits": [{"id": "d1", "score": 2.0, "text": "a"}, {"id": 7, "score": 1, "text": None}]}
    recipe = b'title = "t"\n[collection]\nsource = "demo"\n[[reformulate]]\nmethod = "reduce"\n'
    recipe += b'[evaluate]\nmeasures = ["RR@10"]\n[retrieve]\nranker = "bm25"\n'
    template = b'hits_at = "hits"\nid_at = "id"\nscore_at = "score"\n[params]\nsize = "{k}"\n'
    header = {"kind": "bm25", "format": FORMAT, "files": {"a": {"size": 1, "blocks": "00000000"}}, "documents": 3}
    return {
        "runs": Format(
            [run, run.replace(b" ", b"\t"), b"q1 d1 1\nq1 d2 2\n", b"query_id\tdoc_id\tscore\nq1\td1\t2\n"], run_file
        ),
        "runs, JSON": Format(["".join(json.dumps(row) + "\n" for row in rows).encode()], json_run),
        "judgements": Format(
            [qrels, b"q1\td1\t1\nq1\td2\t0\n", b"query-id\tcorpus-id\tscore\nq1\td1\t1\n"], judgements_file
        ),
        "queries": Format([b"q1\thow to become a nurse\nq2\tbest boss\n"], queries_file),
        "documents": Format([b"d1\tshe is a nurse\nd2\the\n"], documents_file),
        "documents, JSON": Format(["".join(json.dumps(row) + "\n" for row in docs).encode()], json_documents),
        "lexicons, TOML": Format([b'name = "l"\n[groups]\na = ["she", "her*"]\nb = ["he"]\n'], lexicon_file("toml"), 5),
        "lexicons, CSV": Format([b'term,group\nshe,a\n"he",b\n'], lexicon_file("csv"), 5),
        "lexicons, LIWC": Format([b"%\n1\ta\n2\tb\n%\nshe\t1\nhe\t2\n"], lexicon_file("dic"), 5),
        "templates of engines": Format([template], template_file, 5),
        "recipes": Format([recipe], recipe_file, 10),
        "manifests": Format([manifest], manifest_file, 20),
        "plans": Format([plan], plan_file, 5),
        "replies": Format([hits], reply, 15),
        "returned values": Format(
            [[["d 1", 2.0], {"id": "x", "text": "t", "score": 1}, "d3", ["d", 1, "text"]]], returned, 15
        ),
        "cached answers": Format([[["d1", 2.0, None], ["d2", None, "ab"]]], cached, 15),
        "headers of indexes": Format([header], index_header, 5),
        "measures": Format([b"ARaB(tf, sign=abs)@10, nDCG@10 FaiRR(x='a')@5"], measures, 20),
        "conditions": Format([b"ARaB(tf)@10 > 0.2;nDCG@10 < -5%;ARaB(tf)@10 worse"], gates, 10),
        "addresses": Format(
            [b"s3://user:hunter2secret@host/path?key=hunter2secret#x", b"user:hunter2secret@localhost:1/x"], addresses
        ),
        "audits": Format([], audit_file, 2, audited),
        "logs": Format([], logs_folder, 1, logged),
    }


def audited(folder: Path) -> None:
    """An audit of a small engine, made once."""
    texts = {
        f"d{row}": text for row, text in enumerate(["he is a nurse", "she works", "the man", "a ward", "her boss"])
    }
    queries = {f"q{row}": f"nurse {row}" for row in range(6)}
    light = askew.AuditSettings(methods=("reduce",), worst=2, out=folder / "out")
    askew.audit(
        lambda query, k: [(doc, -row, text) for row, (doc, text) in enumerate(texts.items())],
        queries,
        measures="ARaB(tf)@10 FaiRR@10",
        settings=light,
    )


def logged(folder: Path) -> None:
    write_tables(analyze_sample(), folder / "out")


def tried(name: str, one: Format, inputs: int, seed: int, folder: Path) -> Counter[str]:
    seen: Counter[str] = Counter()
    chance, shown = random.Random(f"{seed} {name}"), 0
    seeds = list(one.seeds)
    if not seeds:
        one.prepare(folder)
        folder = folder / "out"
        file = next(path for path in (folder / "audit.json", folder / "report.json") if path.exists())
        seeds = [json.loads(file.read_bytes())]
    for _ in range(inputs):
        given = chance.choice(seeds)
        if not isinstance(given, bytes):
            given = json.dumps(damaged_json(given, chance), allow_nan=True).encode()
            data = damaged(given, chance) if chance.random() < 0.2 else given
        else:
            data = damaged(given, chance)
        try:
            one.read(data, folder)
            seen["accepted"] += 1
        except AskewError:
            seen["refused"] += 1
        except Exception as error:
            what = "misread" if isinstance(error, Misread) else "crash"
            seen[what] += 1
            place = traceback.extract_tb(error.__traceback__)[-1]
            key = f"{type(error).__name__} {place.filename.rpartition('/')[2]}:{place.lineno} {str(error)[:60]}"
            if seen[key] == 0 and shown < 8:
                shown += 1
                print(f"  {name}: {what}: {key}: {data[:300]!r}", file=sys.stderr, flush=True)
            seen[key] += 1
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=150_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    every, total = formats(), Counter[str]()
    weights = sum(one.weight for one in every.values())
    print(f"{'format':<22}{'inputs':>9}" + "".join(f"{what:>9}" for what in (*OUTCOMES, "seconds")))
    for name, one in every.items():
        if given.only not in (None, name):
            continue
        with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
            inputs, start = -(-given.inputs * one.weight // weights), time.process_time()
            seen = tried(name, one, inputs, given.seed, Path(folder))
        counts = [seen[what] for what in OUTCOMES]
        total.update(dict(zip(("inputs", *OUTCOMES), [inputs, *counts], strict=True)))
        seconds = time.process_time() - start
        print(f"{name:<22}{inputs:>9,}" + "".join(f"{count:>9,}" for count in counts) + f"{seconds:>9.1f}", flush=True)
    print(f"{'all':<22}{total['inputs']:>9,}" + "".join(f"{total[what]:>9,}" for what in OUTCOMES))
    sys.exit(1 if total["crash"] or total["misread"] else 0)


if __name__ == "__main__":
    main()
