"""Words of groups that lost their first letter: how many the tokenizer ``unclipped`` leaves out."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import askew
from askew.core.lexicon import Lexicon, load_lexicon
from askew.measures.mentions import ClippedCounter, MentionCounter

WORDS = Lexicon("toy", {"female": ("she", "hers", "éclair"), "male": ("he", "lad*", "a"), "both": ("she", "ladder")})
PIECES = ["he", "hE", "He", "her", "hers", "she", "lad", "laDies", "a", "éclair", "x", ".", ". ", ")", "É", " ", "_"]


def left_out(lexicon, texts, tokens="unclipped", engine="auto"):
    counter = MentionCounter(lexicon, tokens, engine=engine)
    return ClippedCounter(counter).count(texts, counter.count(texts)).tolist()


@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=20).map("".join), max_size=4))
def test_of_single_words_exactly_those_are_left_out_that_word_counts_more(batch):
    texts = pa.array(batch, pa.string())
    more, fewer = (MentionCounter(WORDS, tokens).count(texts).counts for tokens in ("word", "unclipped"))
    assert left_out(WORDS, texts) == (more - fewer).tolist()


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_words_are_counted_by_text_and_group(engine):
    texts = pa.chunked_array([["channels.he remains.she", None], ["He said.He went. he came", "men.com and his.his"]])
    assert left_out(load_lexicon("rekabsaz2020"), texts, engine=engine) == [[1, 1], [0, 0], [0, 0], [0, 1]]


def test_a_word_of_a_phrase_may_be_the_one_that_is_left_out():
    lexicon = Lexicon("toy", {"old": ("old man",)})
    assert left_out(lexicon, pa.array(["the old.man", "old. man", "old man.x"])) == [[1], [0], [0]]


@pytest.mark.parametrize("tokens", ["word", "blank", "seyedsalehi"])
def test_other_tokenizers_leave_nothing_out(tokens):
    assert left_out(load_lexicon("gender"), pa.array(["channels.he"]), tokens) == [[0, 0, 0]]


def test_a_lexicon_without_latin_words_loses_none():
    assert left_out(Lexicon("toy", {"a": ("λόγος",)}), pa.array(["x.λόγος x.he"])) == [[0]]


def test_a_term_with_a_full_stop_is_read_whole():
    lexicon = Lexicon("toy", {"doctors": ("m.d.",)})
    counter = MentionCounter(lexicon)
    assert counter.count(pa.array(["M.D.", "4 m of rope", "m d"])).counts[:, 0].tolist() == [1, 0, 1]
    assert left_out(lexicon, pa.array(["an m.d. said"])) == [[1]]


RUN = {"q": {"d1": 2.0, "d2": 1.0}}
DOCS = {"d1": "Five channels.he remains he", "d2": "her hers", "d3": "not ranked.he"}
NOTE = (
    "1 of 4 words that name a group (lexicon rekabsaz2020) were not counted: they follow a full stop without a space, "
    "and may be the rest of another word, as 'he' of 'The' in 'channels.he'; tokens=word counts them"
)


def test_measuring_tells_how_many_words_were_left_out_of_the_documents_that_were_counted():
    report = askew.measure(RUN, DOCS, "ARaB(tc)@10 RaB(tf)@5")
    assert [note for note in report.notes if "not counted" in note] == [NOTE]
    assert report.runs[0].values["ARaB(tc)@10"].tolist() == [0.25]


@pytest.mark.parametrize(("docs", "options"), [({**DOCS, "d1": "he"}, {}), (DOCS, {"tokens": "word"})])
def test_measuring_tells_nothing_where_no_word_was_left_out(docs, options):
    assert not any("not counted" in note for note in askew.measure(RUN, docs, "ARaB(tc)@10", **options).notes)


def test_the_number_is_kept_with_the_counts_in_the_store(tmp_path):
    from askew.core.store.store import Store
    from askew.measures.counts import Annotate, annotate

    path = tmp_path / "docs.tsv"
    path.write_text("".join(f"{name}\t{text}\n" for name, text in DOCS.items()))
    annotate(path, Store(tmp_path / "store"), Annotate())
    notes = askew.measure(RUN, path, "ARaB(tc)@10", store=tmp_path / "store").notes
    assert (notes[0].code, notes[0].values, notes[1]) == ("stored-counts", {"documents": 2}, NOTE)
