"""Build the datasets that lie under ``datasets/``: pairs of BoolQ, SQuAD and TREC DL 2019 and 2020.

    python benchmarks/dataset.py --data DATA --work WORK                      all of them, from the kept candidates
    python benchmarks/dataset.py --data DATA --work WORK --only boolq --generate    candidates are written anew
    python benchmarks/dataset.py --data DATA --work WORK --tables    subsets and boxes, held out and in-sample

Each is the recipe ``refairmulate`` on a sample of queries, with two other rankers beside BM25, published by
``askew publish``. The candidates of ``rewrite`` in ``datasets/candidates`` were written on a GPU (NVIDIA H200, with the
defaults of the method but count = 40); with ``--generate`` the method writes them here, where single texts may differ.
Of BoolQ and SQuAD 2,000 queries each were drawn that have no labels or reformulations among the training data of
askew's models. MS MARCO's queries are published by id only. ``--tables`` prints what ``askew run`` prints of the same
builds: the subsets of Refairmulate (its Table 1), and the boxes of RePair chosen from the same candidates.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from dataset_reading import COLLECTIONS, SHEET, shares

ROOT = Path(__file__).resolve().parent.parent
CANDIDATES = ROOT / "datasets" / "candidates"


@dataclass(frozen=True)
class Part:
    """A dataset: its collection, the split of it, and what its card says."""

    collection: str
    title: str
    license: str
    split: str = ""
    has_texts: bool = True


PARTS = {
    "boolq": Part("boolq", "BoolQ", "CC-BY-SA-3.0"),
    "squad": Part("squad_part", "SQuAD 1.1 (92 articles)", "CC-BY-SA-4.0"),
    "dl19": Part("msmarco_dl1920", "TREC DL 2019", "other", "dl19", has_texts=False),
    "dl20": Part("msmarco_dl1920", "TREC DL 2020", "other", "dl20", has_texts=False),
}
TERMS = (
    " The queries are of MS MARCO, whose terms allow research only: query ids and our reformulations are given, and no"
    " text of MS MARCO."
)


def make_collection(part: Part, data: Path, folder: Path, candidates: Path) -> None:
    """The documents and judgements of a collection with those queries that have candidates."""
    folder.mkdir(parents=True, exist_ok=True)
    source, of = data / part.collection, f".{part.split}" if part.split else ""
    wanted = {line.split("\t")[0] for line in candidates.read_text(encoding="utf-8").splitlines()[1:]}
    lines = (source / f"queries{of}.tsv").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if line.split("\t")[0] in wanted]
    judged = (source / f"qrels{of}.txt").read_text(encoding="utf-8").splitlines()
    rows = [line for line in judged if line.split()[0] in wanted]
    for name, written in (("queries.tsv", kept), ("qrels.txt", rows)):
        (folder / name).write_text("\n".join(written) + "\n", encoding="utf-8")
    shutil.copyfile(source / "docs.tsv", folder / "docs.tsv")
    print(f"{part.title}: {len(kept):,} queries, {len(rows):,} judgements")


def recipe(name: str, candidates: str | None) -> str:
    """The recipe refairmulate for one collection."""
    part = PARTS[name]
    if candidates is None:
        method = 'method = "rewrite"\ncount = 40'
    else:
        method = f'method = "replay"\nname = "rewrite"\nfile = "{candidates}"'
    text = (ROOT / "src/askew/shipped/recipes/refairmulate.toml").read_text(encoding="utf-8")
    text = text.replace('source = "demo"', f'source = "{name}"').replace('method = "rewrite"', method, 1)
    # No query of these samples can yield a pair that holds (benchmarks/holding.py).
    text = text.replace("holds = true", "holds = false", 1)
    text = text.replace('"RR@10", "AP@10",', '"RR@10", "AP@10", "nDCG@10",', 1)
    text, _, publish = text.partition("# Of the dataset that askew publish writes")
    described = (
        publish.partition('description = "')[2].partition('"')[0] + ("" if part.has_texts else TERMS) + reading(name)
    )
    return text + "\n".join([
        '[[cross]]', 'ranker = "qld"', '', '[[cross]]', 'ranker = "dense"', '', '[publish]',
        f'title = "Refairmulate pairs of {part.title}"', f'description = "{described}"',
        f'license = "{part.license}"', f'query_text = {str(part.has_texts).lower()}', '',
    ])  # fmt: skip


def boxes(text: str) -> str:
    """The same recipe with the boxes of RePair."""
    before, _, after = text.partition("[select]")
    rest = after[after.index("[[cross]]") :]
    chosen = 'selector = "boxes"\nmeasure = "nDCG@10"\nbias = "ARaB(tf,who=generic)@10"\n\n'
    return f"{before}[select]\n{chosen}{rest}"


def reading(name: str) -> str:
    """What readers found in pairs of the dataset, a sentence of its card."""
    if not SHEET.exists():
        return ""
    title = next(title for title, names in COLLECTIONS.items() if name in names)
    one = shares()[title]
    share = f"{one['usable']:.0%} [{one['low']:.0%}, {one['high']:.0%}]"
    return (
        f" Of {one['reformulations']} chosen pairs of {title}, drawn at random and read by two readers (a large"
        f" language model, not people), {share} ask for the same thing and could have been typed by a person."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the collections")
    parser.add_argument("--work", type=Path, required=True, help="folder for collections, recipes and the store")
    parser.add_argument("--only", choices=PARTS, nargs="*", default=list(PARTS))
    parser.add_argument("--generate", action="store_true", help="write the candidates anew")
    parser.add_argument("--tables", action="store_true", help="print the tables instead of publishing")
    given = parser.parse_args()
    for name in given.only:
        part, work = PARTS[name], given.work.resolve() / name
        candidates = work / "candidates.tsv"
        work.mkdir(parents=True, exist_ok=True)
        candidates.write_bytes(gzip.decompress((CANDIDATES / f"{name}.tsv.gz").read_bytes()))
        make_collection(part, given.data, work / name, candidates)
        text = recipe(name, candidates.name if not given.generate else None)
        (work / f"{name}.toml").write_text(text, encoding="utf-8")
        if given.tables:
            (work / f"{name}-boxes.toml").write_text(boxes(text), encoding="utf-8")
            print(f"\n== {part.title}: the subsets of Refairmulate", flush=True)
            askew(work, "run", f"{name}.toml")
            print(f"\n== {part.title}: the boxes of RePair", flush=True)
            askew(work, "run", f"{name}-boxes.toml")
            continue
        out = ROOT / "datasets" / name
        shutil.rmtree(out, ignore_errors=True)
        askew(work, "publish", f"{name}.toml", "--out", str(out))


def askew(folder: Path, *words: str) -> None:
    """A command in a folder, so that recipes name no place of this machine; the line with the store is left out."""
    command = [str(Path(sys.executable).with_name("askew")), *words, "--store", "../store"]
    done = subprocess.run(command, check=True, cwd=folder, stdout=subprocess.PIPE, text=True)
    print("\n".join(line for line in done.stdout.splitlines() if not line.startswith("in ../store/")), flush=True)


if __name__ == "__main__":
    main()
