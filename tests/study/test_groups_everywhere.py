"""With groups of age, no command falls back to gender: no group, lexicon or default of it is in any output.

The texts of this collection name no gender either, so whole outputs are searched.
"""

import json
import re

import pytest

from askew.ui.cli.main import run

GENDER = re.compile(r"fe?male|gender|nonbinary|rekabsaz|gsqr|\bwom[ae]n|\bm[ae]n\b|\bs?he\b", re.IGNORECASE)
AGE = "elderly,old\npensioner,old\npensioners,old\nteenager,young\nteenagers,young\nyoungster,young\n"
TOPICS = ("bicycle", "garden", "music", "river", "bread", "winter", "chess", "train")
PEOPLE = ("a pensioner", "an elderly neighbor", "a teenager", "two teenagers", "a youngster", "a visitor")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("age")
    docs, queries, qrels = [], [], []
    for number, topic in enumerate(TOPICS):
        for version, person in enumerate(PEOPLE):
            extra = " ".join(TOPICS[(number + version * step) % len(TOPICS)] for step in range(1, version + 2))
            docs.append(
                f"d{number}-{version}\t{person} likes the {topic} repair club and {extra} advice near the {topic}"
            )
        queries.append(f"q{number}\tbest {topic} repair advice near me")
        qrels.append(f"q{number} 0 d{number}-{number % len(PEOPLE)} 1")
    (folder / "c").mkdir()
    (folder / "c" / "docs.tsv").write_text("\n".join(docs) + "\n")
    (folder / "c" / "queries.tsv").write_text("\n".join(queries) + "\n")
    (folder / "c" / "qrels.txt").write_text("\n".join(qrels) + "\n")
    (folder / "age.csv").write_text(AGE)
    rows = [f"u{n % 9}\t2024-05-01 10:{n % 60:02d}:00\t{text}" for n, text in enumerate(_log())]
    (folder / "log.tsv").write_text("user\ttime\tquery\n" + "\n".join(rows) + "\n")
    return folder


def _log():
    for topic in TOPICS * 3:
        yield from (f"{topic} club", f"{topic} club teenagers")


@pytest.fixture
def askew_says(place, monkeypatch, capsys):
    """Run a command in the folder; what it printed must not name a gender."""
    monkeypatch.chdir(place)

    def call(text):
        capsys.readouterr()
        code = run(text.split())
        said = capsys.readouterr()
        assert code == 0, said.err
        assert not GENDER.search(said.out + said.err), said.out + said.err
        return said.out

    return call


def no_gender_in(folder):
    """No file below names a gender; Parquet by its columns and values."""
    import polars as pl

    seen = 0
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        seen += 1
        if path.suffix == ".parquet":
            table = pl.read_parquet(path)
            texts = [table[name].to_list() for name in table.columns if table[name].dtype == pl.String]
            text = json.dumps([table.columns, *texts])
        else:
            text = path.read_text(encoding="utf-8", errors="replace")
        # The style of a page has colors, not words.
        found = GENDER.search(re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL))
        assert found is None, f"{path}: {text[max(0, found.start() - 60) : found.end() + 60]}"
    assert seen


GROUPS = "--groups age.csv"


def test_measure_reformulate_classify_and_check(askew_says, place):
    askew_says("index c --out index")
    askew_says("search c --index index --out bm25.run")
    (place / "other.run").write_text((place / "bm25.run").read_text())
    for form in ("", "--json", "--signature"):
        out = askew_says(f"measure bm25.run --docs c/docs.tsv --qrels c/qrels.txt {GROUPS} {form}")
    assert "groups='old-young'" in out
    askew_says(f"compare bm25.run other.run --docs c/docs.tsv --qrels c/qrels.txt {GROUPS}")
    askew_says(f"annotate c/docs.tsv {GROUPS} --store counts")
    askew_says(
        f"reformulate c --docs c/docs.tsv {GROUPS} --out made.jsonl --method extract --method fairfeedback "
        "--method reduce --method swap"
    )
    askew_says(f"classify c {GROUPS} --out labels.tsv")
    askew_says(f"check c {GROUPS}")
    for name in ("made.jsonl", "labels.tsv"):
        assert not GENDER.search((place / name).read_text())


def test_build_report_and_publish(askew_says, place):
    common = f"demo {GROUPS} --set collection.source=c --store store"
    askew_says(f"plan {common}")
    askew_says(f"run {common}")
    askew_says(f"report {common} --out report")
    askew_says(f"publish {common} --out dataset")
    for name in ("store", "report", "dataset"):
        no_gender_in(place / name)


def test_bench(askew_says, place):
    askew_says(
        f"bench c {GROUPS} --method detconstsort --method reformulate:fairfeedback --method qld "
        "--measures RR@10,ARaB(tf)@10,NFaiRR@10 --store bench-store --out bench"
    )
    no_gender_in(place / "bench")


def test_logs(askew_says, place):
    askew_says(f"logs log.tsv {GROUPS} --min-users 1 --min-events 1 --out logs")
    no_gender_in(place / "logs")


def test_serve(place, monkeypatch):
    pytest.importorskip("fastapi", reason="the explorer needs the extra web")
    pytest.importorskip("python_multipart", reason="the explorer needs the extra web")
    from fastapi.testclient import TestClient

    from askew.ui.explorer.opening import Sources
    from askew.ui.web.app import create_app
    from askew.ui.web.settings import Settings

    monkeypatch.chdir(place)
    assert run(f"run demo {GROUPS} --set collection.source=c --store served".split()) == 0
    with TestClient(
        create_app(Settings(sources=Sources(place / "served"))), base_url="http://127.0.0.1:8642"
    ) as client:
        for address in (
            "/?q=bicycle+repair",
            "/pairs",
            "/plan",
            "/api/search?q=bicycle",
            "/api/reformulate?q=bicycle+club",
        ):
            found = client.get(address)
            assert found.status_code == 200, address
            assert not GENDER.search(found.text), address
