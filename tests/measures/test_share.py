"""LexiconShare, the published LIWC measure, by hand."""

import pytest

import askew

DOCS = {"a": "she and her dog", "b": "he", "c": "no one at all", "empty": ""}


def score(text, ranking, docs=DOCS, **options):
    run = {"q": {doc: -float(rank) for rank, doc in enumerate(ranking)}}
    return askew.measure({"r": run}, docs, measures=[text], **options).runs[0].values[text][0]


def test_it_is_the_absolute_mean_difference_of_shares_as_a_percentage():
    assert score("LexiconShare@3", ("a", "b", "c")) == pytest.approx(100 * abs((-2 / 4 + 1 / 1 + 0) / 3))


def test_signed_it_is_positive_toward_men_as_the_other_measures_are():
    assert score("LexiconShare(sign=signed)@1", ("a",)) == pytest.approx(-50)
    assert score("LexiconShare(sign=signed, groups=female-male)@1", ("a",)) == pytest.approx(50)


def test_an_empty_text_has_no_share_of_anything():
    assert score("LexiconShare@2", ("empty", "b")) == pytest.approx(50)


def test_liwc_is_another_name_for_it():
    assert score("LIWC@2", ("a", "b")) == score("LexiconShare@2", ("a", "b"))


def test_the_published_tokens_delete_punctuation_instead_of_splitting_at_it():
    docs = {"x": "and-she <b>he</b> said"}
    assert score("LIWC(tokens=seyedsalehi, sign=signed, scale=1)@1", ("x",), docs) == pytest.approx(1 / 3)
    assert score("LIWC(tokens=word, sign=signed, scale=1)@1", ("x",), docs) == pytest.approx(0.0)


def test_a_liwc_dictionary_with_prefixes_is_used_as_it_is(tmp_path):
    path = tmp_path / "liwc.dic"
    path.write_text("%\n1\tfemale\n2\tmale\n3\tother\n%\nmother*\t1\nhe\t2\ndog\t3\n")
    docs = {"x": "motherhood and mothers he dog"}
    assert score("LIWC(scale=1)@1", ("x",), docs, groups=str(path)) == pytest.approx(abs(1 - 2) / 5)


def test_a_query_without_known_documents_is_left_out_or_zero():
    assert score("LIWC(missing=skip, empty=zero)@1", ("ghost", "a")) == 0.0
