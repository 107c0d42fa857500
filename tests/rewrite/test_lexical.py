"""Synonyms from WordNet and from a file, and shorter queries."""

import json
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import DataError
from askew.core.protocols import QueryBatch
from askew.rewrite import thesaurus as wordnet_files
from askew.rewrite.lexical import SAME, ReduceReformulator, first_with_other_stems
from askew.rewrite.thesaurus import ThesaurusReformulator, WordNetFiles, WordNetReformulator, find_wordnet
from askew.testing.contracts import check_reformulator, toy_asked

SENSES = {
    "noun": [
        ["doctor", "doc", "physician"],
        ["doctor", "Doctor_of_the_Church"],
        ["matrix"],
        ["wife", "spouse"],
        ["good"],
    ],
    "verb": [["cure", "heal"], ["doctor", "sophisticate"], ["run", "go"]],
    "adj": [["good", "well_behaved(p)"], ["old", "aged"]],
    "adv": [["well", "good"]],
}
MARKS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}


def asked(*texts, passages=None, statistics=None):
    return QueryBatch(tuple(f"q{i}" for i in range(len(texts))), texts, passages, statistics)


def write_wordnet(folder):
    """A WordNet of a few words, in the format of the real one."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, senses in SENSES.items():
        data, index = "  1 A header line, as the real files have.\n", {}
        for words in senses:
            for one in words:
                index.setdefault(one.partition("(")[0].lower(), []).append(f"{len(data):08d}")
            named = " ".join(f"{one} 0" for one in words)
            data += f"{len(data):08d} 03 {MARKS[part]} {len(words):02x} {named} 000 | what it means\n"
        lines = [f"{one} {MARKS[part]} {len(at)} 0 {len(at)} 0 {' '.join(at)}  \n" for one, at in sorted(index.items())]
        (folder / f"data.{part}").write_text(data)
        (folder / f"index.{part}").write_text("  1 A header line.\n" + "".join(lines))
    (folder / "noun.exc").write_text("matrices matrix\nwives wife\n")
    return folder


@pytest.fixture
def data(tmp_path):
    return str(write_wordnet(tmp_path / "dict"))


# WordNet


def test_lemmas_come_by_part_of_speech_then_sense_then_as_listed(data):
    files = WordNetFiles(find_wordnet(data))
    nouns = ["doctor", "doc", "physician", "doctor", "Doctor of the Church"]
    assert list(files.lemmas("doctor")) == [*nouns, "doctor", "sophisticate"]
    assert list(files.lemmas("unheard")) == []


def test_an_inflected_word_is_found_by_its_base_form(data):
    files = WordNetFiles(find_wordnet(data))
    assert list(files.lemmas("wives")) == ["wife", "spouse"]
    assert list(files.lemmas("cured")) == ["cure", "heal"]
    assert list(files.lemmas("matrices")) == ["matrix"]
    assert list(files.lemmas("older")) == ["old", "aged"]


def test_the_mark_of_an_adjective_is_no_part_of_it(data):
    assert list(WordNetFiles(find_wordnet(data)).lemmas("good"))[:3] == ["good", "good", "well behaved"]


def test_expanding_adds_synonyms_with_other_stems_after_the_query(data):
    found = WordNetReformulator(topn=2, data=data).reformulate(asked("The  good Doctors?", "is it", "unheard"))
    assert (found.rows, found.texts) == ([0], ["The good Doctors? well behaved well doc physician"])
    assert found.rejected == {"nothing found": 2}


def test_replacing_keeps_a_word_only_if_nothing_was_found(data):
    found = WordNetReformulator(topn=1, replace=True, data=data).reformulate(asked("the old doctor of rome"))
    assert found.texts == ["the aged doc of rome"]


@pytest.mark.parametrize("settings", [{}, {"replace": True}])
def test_wordnet_keeps_the_contract(data, settings):
    assert len(check_reformulator(WordNetReformulator(data=data, **settings))) >= 1


def test_the_zip_file_that_nltk_downloads_is_read_as_it_is(data, tmp_path):
    path = tmp_path / "corpora" / "wordnet.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        for file in (tmp_path / "dict").iterdir():
            archive.write(file, f"wordnet/{file.name}")
    zipped, plain = WordNetReformulator(data=str(path)), WordNetReformulator(data=data)
    assert zipped.settings() == plain.settings()
    assert zipped.reformulate(toy_asked()).texts == plain.reformulate(toy_asked()).texts


def test_wordnet_is_found_in_the_data_folder_of_nltk(monkeypatch, tmp_path):
    write_wordnet(tmp_path / "corpora" / "wordnet")
    monkeypatch.delenv("WNSEARCHDIR", raising=False)
    monkeypatch.setenv("NLTK_DATA", str(tmp_path))
    assert find_wordnet() == tmp_path / "corpora" / "wordnet"


def test_without_wordnet_one_line_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(wordnet_files, "_places", lambda: [tmp_path])
    with pytest.raises(DataError, match="wordnet-base"):
        WordNetReformulator()
    with pytest.raises(DataError, match="lacks them"):
        WordNetReformulator(data=str(tmp_path / "nowhere"))


def test_a_database_without_a_file_is_an_error(data, tmp_path):
    (tmp_path / "dict" / "data.adv").unlink()
    with pytest.raises(DataError, match=r"lacks the file data\.adv"):
        WordNetReformulator(data=data).settings()


def test_the_settings_change_with_the_content_of_the_database(data, tmp_path):
    before = WordNetReformulator(data=data).settings()
    path = tmp_path / "dict" / "data.noun"
    path.write_text(path.read_text().replace("physician", "physicist"))
    assert WordNetReformulator(data=data).settings() != before


def test_the_real_wordnet_knows_a_nurse():
    try:
        find_wordnet()
    except DataError:
        pytest.skip("WordNet is not installed here (apt install wordnet-base)")
    found = check_reformulator(WordNetReformulator())
    assert "nanny" in found.texts[0]


@given(st.lists(st.sampled_from(["nurse", "nurses", "nanny", "nannies", "care taker", "Nurse!"]), max_size=8))
def test_no_two_synonyms_have_the_same_stems(names):
    taken = first_with_other_stems("nursing", names, 3)
    assert len(taken) == len(set(taken)) <= 2
    assert not {"nurse", "nurses"} & set(taken)


# Thesaurus


def test_a_thesaurus_file_is_read_as_tsv_and_as_json(tmp_path):
    (tmp_path / "t.tsv").write_text("nurse\tcarer, medic\nrailway station\tstop\ndoctor\tmedic\n")
    (tmp_path / "t.json").write_text(
        json.dumps({"nurse": ["carer", "medic"], "Railway  Station": ["stop"], "doctor": ["medic"]})
    )
    tsv, json_file = (ThesaurusReformulator(file=str(tmp_path / name)) for name in ("t.tsv", "t.json"))
    assert tsv.settings() == json_file.settings()
    text = "old railway station nurse and doctor"
    assert tsv.reformulate(asked(text)).texts == [f"{text} stop carer medic"]
    replaced = ThesaurusReformulator(file=str(tmp_path / "t.tsv"), replace=True, topn=1).reformulate(asked(text))
    assert replaced.texts == ["old stop carer and medic"]
    check_reformulator(tsv)


def test_a_synonym_that_the_query_has_already_is_not_added(tmp_path):
    (tmp_path / "t.tsv").write_text("nurse\tcarer\n")
    found = ThesaurusReformulator(file=str(tmp_path / "t.tsv")).reformulate(asked("nurse or carer", "nurse nurse"))
    assert (found.rows, found.texts) == ([1], ["nurse nurse carer"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.tsv", "nurse\tcarer\nonly a word\n", r"t\.tsv:2: expected a word, a tab"),
        ("t.json", '{"nurse": "carer"}', "lists of synonyms"),
        ("t.json", "{", "not valid JSON"),
        ("t.tsv", b"\xff\tx\n", "UTF-8"),
    ],
)
def test_a_damaged_thesaurus_says_where(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=message):
        ThesaurusReformulator(file=str(tmp_path / name))


def test_a_missing_thesaurus_is_an_error():
    with pytest.raises(DataError, match=r"nowhere\.tsv"):
        ThesaurusReformulator(file="nowhere.tsv")


# Shorter queries


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Can you please tell me what is the capital of France?", ["capital of france", "capital france"]),
        ("how do i fix a flat tire", ["fix a flat tire", "fix flat tire"]),
        ("What's the best vitamin D, thanks", ["best vitamin d"]),
        ("is it true that the earth is round", ["the earth is round", "earth round"]),
        ("why don't cats like water", ["cats like water"]),
        ("history of the railway", ["history railway"]),
        ("paul walker's last movie", ["paul walker last movie"]),
        ("railway", []),
        ("what is", []),
    ],
)
def test_the_frame_goes_first_and_then_the_words_without_content(text, expected):
    assert ReduceReformulator().reformulate(asked(text)).texts == expected


def test_how_stays_before_the_word_that_it_measures():
    def content(text):
        return ReduceReformulator().reformulate(asked(text)).texts[-1]

    assert content("how many people live in texas") == "how many people live texas"
    assert content("how long does it take to renew a passport") == "how long take renew passport"
    assert content("how do you become a nurse") == "become nurse"


def test_words_that_are_to_be_kept_are_kept():
    text = "why is the bank not open"
    assert ReduceReformulator().reformulate(asked(text)).texts[-1] == "bank open"
    assert ReduceReformulator(keep="not").reformulate(asked(text)).texts[-1] == "bank not open"
    kept = ReduceReformulator(keep="not").reformulate(asked("why isn't it open"))
    assert kept.texts == ["isn't it open", "not open"]


def test_too_short_a_candidate_is_counted_not_made():
    found = ReduceReformulator(shortest=2).reformulate(asked("who was his brother", "", "of the"))
    assert found.texts == ["his brother"]
    assert found.rejected == {"nothing left": 2, "nothing found": 1, SAME: 1}


def test_reduce_keeps_the_contract():
    unframed = toy_asked().texts[0].removeprefix("is ")
    assert check_reformulator(ReduceReformulator()).texts[:2] == [unframed, "good nurse"]


def test_a_users_own_rules_take_the_place_of_the_shipped_ones(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text('frames = ["wo|wer ist der|die|das?"]\nstop_words = "und"\n')
    found = ReduceReformulator(rules=str(path)).reformulate(asked("wo ist die Katze und der Hund"))
    assert found.texts == ["katze und der hund", "katze der hund"]
    assert ReduceReformulator(rules=str(path)).settings() != ReduceReformulator().settings()
    path.write_text('frames = ["a+b"]\n')
    with pytest.raises(DataError, match="found 'a\\+b'"):
        ReduceReformulator(rules=str(path))


SOME = ["what", "is", "the", "how", "do", "i", "can", "you", "tell", "me", "please", "not", "of", "france", "s", "don"]


@given(st.lists(st.sampled_from(SOME), max_size=9))
def test_reducing_only_leaves_words_out_and_never_all(words):
    text = " ".join(words)
    for candidate in ReduceReformulator().reformulate(asked(text)).texts:
        rest = iter(words)
        assert candidate and all(one in rest for one in candidate.split()), "the words stay in their order"
        assert len(candidate.split()) < len(words)
