"""Candidates that a model writes: distinct, one line, the same for the same seed, whatever the company."""

from dataclasses import replace

import pytest

from askew.core.errors import ConfigError
from askew.core.protocols import Passage, QueryBatch
from askew.models.generate import Sampling, load_generator
from askew.rewrite.generate import BackTranslateReformulator, DocQueryReformulator, FewShotReformulator, clean
from askew.testing.contracts import check_reformulator, toy_asked


def made(tiny_t5, **settings):
    return DocQueryReformulator(**{"model": tiny_t5, "count": 4, **settings})


def test_docquery_keeps_the_contract(tiny_t5):
    found = check_reformulator(made(tiny_t5))
    assert len(found) > 4
    assert found.rejected["nothing to read"] == 1  # the query without a passage


def test_docquery_names_the_passage_it_read(tiny_t5):
    asked = toy_asked()
    found = made(tiny_t5, per_call=1).reformulate(asked)
    first = [doc for row, doc in zip(found.rows, found.doc_ids, strict=True) if row == 0]
    assert set(first) <= {passage.doc_id for passage in asked.passages[0]}
    assert len(set(first)) > 1  # passages take turns


def test_docquery_may_read_who_asked_before_the_passage(tiny_t5):
    known = replace(toy_asked(), contexts=("u7 2006-03-01", *(None,) * (len(toy_asked()) - 1)))
    plain, given = (made(tiny_t5, context=flag).reformulate(known) for flag in (False, True))

    def of(found, row):
        return [text for at, text in zip(found.rows, found.texts, strict=True) if at == row]

    assert of(plain, 0) != of(given, 0)
    assert of(plain, 1) == of(given, 1)  # nobody is known to have asked it
    prefixed = made(tiny_t5, prefix="u7 2006-03-01: ").reformulate(known)
    assert of(given, 0) == of(prefixed, 0)


def test_another_seed_draws_others_and_the_same_seed_the_same(tiny_t5):
    one, again, other = (made(tiny_t5, seed=seed).reformulate(toy_asked()).texts for seed in (1, 1, 2))
    assert one == again
    assert one != other


def test_the_papers_varied_parameters_are_drawn_from_the_seed_too(tiny_t5):
    check_reformulator(made(tiny_t5, preset="refairmulate"))


def test_a_model_that_always_says_the_same_comes_to_an_end(tiny_t5):
    asked = QueryBatch(("q",), ("is she",), ((Passage("p", "nurse", 1.0),),))
    reformulator = made(tiny_t5, count=50, attempts=40)
    reformulator._sampling = Sampling(4, 1, 1, 1.0, 1.0)
    found = reformulator.reformulate(asked)
    assert len(found) <= 1
    assert sum(found.rejected.values()) >= 39


def test_more_texts_are_sampled_if_more_candidates_are_wanted(tiny_t5):
    asked = QueryBatch(("q",), ("is she",), ((Passage("p", "nurse", 1.0),),))
    for count in (2, 15):
        reformulator = made(tiny_t5, count=count)
        reformulator._sampling = Sampling(4, 1, 1, 1.0, 1.0)  # always the same text, so the set is never complete
        found = reformulator.reformulate(asked)
        assert len(found) + sum(found.rejected.values()) == 10 * count + (not len(found))


def test_fewshot_and_docquery_keep_the_contract_with_any_causal_model(tiny_causal):
    check_reformulator(FewShotReformulator(model=tiny_causal, count=3, max_new_tokens=6))
    check_reformulator(made(tiny_causal))


def test_samples_of_a_prompt_do_not_depend_on_how_many_are_drawn_after(tiny_causal):
    writer = load_generator(tiny_causal, "causal")
    greedy = Sampling(8, 1, 0, 1.0, 0.0)
    assert writer.sample("nurse is", 1, 7, greedy) * 3 == writer.sample("nurse is", 3, 7, greedy)


def test_one_token_that_is_likeliest_is_what_top_k_of_one_draws(tiny_causal):
    writer = load_generator(tiny_causal, "causal")
    assert writer.sample("she was", 2, 3, Sampling(6, 1, 1)) == writer.sample(
        "she was", 2, 9, Sampling(6, 1, 0, 1.0, 0.0)
    )


def test_the_likeliest_text_is_that_of_the_library(tiny_t5, tiny_causal):
    import torch

    for folder, kind in ((tiny_t5, "seq2seq"), (tiny_causal, "causal")):
        writer = load_generator(folder, kind)
        encoded = writer.tokenizer("a railway station", return_tensors="pt", add_special_tokens=kind == "seq2seq")
        with torch.inference_mode():
            own = writer.model.generate(
                **encoded, do_sample=False, max_new_tokens=8, min_new_tokens=8, suppress_tokens=sorted(writer._ends)
            )
        if kind == "causal":
            own = own[:, encoded["input_ids"].shape[1] :]
        expected = writer.tokenizer.decode(own[0], skip_special_tokens=True).strip()
        assert expected
        assert writer.sample("a railway station", 1, 7, Sampling(8, 8, 0, 1.0, 0.0)) == [expected]


def test_backtranslation_keeps_the_contract_one_way_and_with_language_codes(tiny_t5):
    check_reformulator(BackTranslateReformulator(tiny_t5, back=tiny_t5, languages="", beams=2))
    check_reformulator(BackTranslateReformulator(tiny_t5, languages="fra_Latn", beams=1))


def test_a_language_the_model_does_not_know_is_named(tiny_t5):
    with pytest.raises(ConfigError) as refused:
        BackTranslateReformulator(tiny_t5, languages="xx").reformulate(toy_asked())
    assert (refused.value.code, refused.value.values) == ("unknown-language", {"language": "xx"})


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: BackTranslateReformulator(back="x", languages="a b"),
        lambda: Sampling(max_new_tokens=0),
    ],
)
def test_wrong_settings_are_refused_before_a_model_is_loaded(wrong):
    with pytest.raises(ConfigError):
        wrong()


def test_a_checkpoint_that_is_no_such_model_is_one_line(tmp_path, tiny_tokenizer):
    with pytest.raises(ConfigError) as caught:
        DocQueryReformulator(model=str(tmp_path)).reformulate(toy_asked())
    assert (caught.value.code, caught.value.values) == ("not-loaded", {"kind": "generator"})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [('"who is he"', "who is he"), ("\n\n- a b\nmore", "a b"), ("x\x00y\x1b", "x y"), ("   ", ""), ("* one * ", "one")],
)
def test_a_written_text_becomes_one_clean_line(text, line):
    assert clean(text) == line


def test_an_unknown_adapter_is_answered_with_those_of_generators_alone():
    from askew.models.generate import find_adapter

    with pytest.raises(ConfigError) as refused:
        find_adapter("minilm-who")
    assert (refused.value.code, refused.value.values) == ("no-adapter", {"known": "smollm2-rewrite"})
