"""The presets do what the published scripts do, where what they do is a value; else a clear error."""

from math import log
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import askew
from askew.core.errors import DataError
from askew.core.measure import Measure
from askew.measures.catalogue import Catalogue, presets


def write(path, text):
    path.write_text(text)
    return path


def score(tmp_path, preset, run, docs, measures, qrels=None, background=None, **options):
    paths = {"run": write(tmp_path / "r.run", run), "docs": write(tmp_path / "d.tsv", docs)}
    if qrels is not None:
        options["qrels"] = write(tmp_path / "q.txt", qrels)
    if background is not None:
        options["background"] = write(tmp_path / "b.run", background)
    report = askew.measure([paths["run"]], paths["docs"], preset=preset, measures=measures, **options)
    return report, report.to_dict(per_query=True)["runs"][0]


def lines(query, *docs):
    return "".join(f"{query} Q0 {doc} {rank} {100 - rank} tag\n" for rank, doc in enumerate(docs, start=1))


# What each measure of lean stands for under each preset, in full: published ways of measuring do not change with
# the defaults.
SIGNATURES = {
    ("rekabsaz2020", "RaB(tf)@10"): (
        "RaB(groups='male-female',kind='tf',lexicon='rekabsaz2020@b69016fe29ac',missing='error',order='file',"
        "overlap='first',reading='published',sign='signed',tokens='blank')@10"
    ),
    ("rekabsaz2020", "ARaB(tf)@10"): (
        "ARaB(groups='male-female',kind='tf',lexicon='rekabsaz2020@b69016fe29ac',missing='error',"
        "order='file',overlap='first',reading='published',sign='signed',tokens='blank')@10"
    ),
    ("rekabsaz2020", "FaiRR@10"): (
        "FaiRR(groups='female+male',lexicon='rekabsaz2021@139136603e91',malformed='missing',missing='error',"
        "neutrality_digits=6,order='file',overlap='all',reading='published',targets='equal',threshold=1,"
        "tokens='blank')@10"
    ),
    ("rekabsaz2020", "NFaiRR@10"): (
        "NFaiRR(background='run',depth=200,groups='female+male',lexicon='rekabsaz2021@139136603e91',"
        "malformed='missing',missing='error',neutrality_digits=6,order='file',overlap='all',"
        "reading='published',targets='equal',threshold=1,tokens='blank',unmatched='absent',"
        "zero_ideal='error')@10"
    ),
    ("rekabsaz2020", "LexiconShare@10"): (
        "LexiconShare(empty='absent',groups='male-female',lexicon='gender@dc5307e5c231',missing='error',"
        "order='score',overlap='all',reading='published',scale=100,sign='abs',tokens='word')@10"
    ),
    ("bigdeli2022", "RaB(tf)@10"): (
        "RaB(groups='male-female',kind='tf',lexicon='rekabsaz2021@139136603e91',missing='error',order='file',"
        "overlap='first',reading='published',sign='signed',tokens='blank')@10"
    ),
    ("bigdeli2022", "ARaB(tf)@10"): (
        "ARaB(groups='male-female',kind='tf',lexicon='rekabsaz2021@139136603e91',missing='error',"
        "order='file',overlap='first',reading='published',sign='signed',tokens='blank')@10"
    ),
    ("bigdeli2022", "FaiRR@10"): (
        "FaiRR(groups='female+male',lexicon='rekabsaz2021@139136603e91',malformed='missing',missing='error',"
        "neutrality_digits=6,order='file',overlap='all',reading='published',targets='equal',threshold=1,"
        "tokens='blank')@10"
    ),
    ("bigdeli2022", "NFaiRR@10"): (
        "NFaiRR(background='run',depth=200,groups='female+male',lexicon='rekabsaz2021@139136603e91',"
        "malformed='missing',missing='error',neutrality_digits=6,order='file',overlap='all',"
        "reading='published',targets='equal',threshold=1,tokens='blank',unmatched='absent',"
        "zero_ideal='error')@10"
    ),
    ("bigdeli2022", "LexiconShare@10"): (
        "LexiconShare(empty='absent',groups='male-female',lexicon='gender@dc5307e5c231',missing='error',"
        "order='score',overlap='all',reading='published',scale=100,sign='abs',tokens='word')@10"
    ),
    ("refairmulate2025", "RaB(tf)@10"): (
        "RaB(digits=4,groups='male-female',kind='tf',lexicon='rekabsaz2020@b69016fe29ac',missing='drop',"
        "order='file',overlap='first',sign='signed',tokens='blank')@10"
    ),
    ("refairmulate2025", "ARaB(tf)@10"): (
        "ARaB(digits=4,groups='male-female',kind='tf',lexicon='rekabsaz2020@b69016fe29ac',missing='drop',"
        "order='file',overlap='first',sign='running-abs',tokens='blank')@10"
    ),
    ("refairmulate2025", "FaiRR@10"): (
        "FaiRR(digits=4,groups='female+male',lexicon='rekabsaz2021@139136603e91',missing='zero',"
        "neutrality_digits=6,order='file',overlap='all',targets='equal',threshold=1,tokens='blank')@10"
    ),
    ("refairmulate2025", "NFaiRR@10"): (
        "NFaiRR(background='self',digits=4,groups='female+male',lexicon='rekabsaz2021@139136603e91',"
        "missing='zero',neutrality_digits=6,order='file',overlap='all',targets='equal',threshold=1,"
        "tokens='blank',zero_ideal='absent')@10"
    ),
    ("refairmulate2025", "LexiconShare@10"): (
        "LexiconShare(digits=4,empty='zero',groups='male-female',lexicon='gender@dc5307e5c231',"
        "missing='skip',order='file',overlap='all',scale=100,sign='abs',tokens='seyedsalehi')@10"
    ),
}


@pytest.mark.parametrize(("preset", "measure"), SIGNATURES)
def test_a_preset_says_all_that_its_measures_stand_for(preset, measure):
    (asked,) = Catalogue(presets()[preset]).complete([measure])
    assert asked.signature == SIGNATURES[preset, measure]


def test_the_signatures_of_every_measure_of_lean_are_known_under_every_preset():
    lean = {measure for _, measure in SIGNATURES}
    assert {Measure.parse(measure).name for measure in lean} >= {"RaB", "ARaB", "FaiRR", "NFaiRR", "LexiconShare"}
    published = [name for name, preset in presets().items() if preset.defaults]
    assert set(SIGNATURES) == {(preset, measure) for preset in published for measure in lean}


def test_the_preset_of_the_deep_learning_track_counts_grades_from_2_on():
    (run, qrels) = {"run": {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}}, {"q": {"a": 1, "b": 3, "c": 0}}
    found = askew.measure(run, {"a": "he", "b": "she", "c": "x"}, preset="trec-dl", qrels=qrels)
    assert found["RR(rel=2)@10"].mean == 0.5 and not [note for note in found.notes if "count as relevant" in note]


class TestRekabsaz2020:
    def test_punctuation_stays_attached_and_possessives_do_not_count(self, tmp_path):
        docs = "1\the, man's he said\n"
        _, run = score(tmp_path, "rekabsaz2020", lines("7", 1), docs, ["ARaB(tc)@5"])
        assert run["per_query"]["7"]["ARaB(tc)@5"] == 1.0

    def test_only_the_blank_splits(self, tmp_path):
        docs = "1\the\u00a0she he  he\n"
        _, run = score(tmp_path, "rekabsaz2020", lines("7", 1), docs, ["ARaB(tc)@5"])
        assert run["per_query"]["7"]["ARaB(tc)@5"] == 2.0

    def test_the_small_list_knows_no_wife_and_positive_is_male(self, tmp_path):
        docs = "1\twife queen he\n2\tshe her\n"
        _, run = score(tmp_path, "rekabsaz2020", lines("7", 1, 2), docs, ["ARaB(tf)@5"])
        assert run["per_query"]["7"]["ARaB(tf)@5"] == pytest.approx((log(2) + (log(2) - log(3)) / 2) / 2)

    def test_the_order_of_the_lines_is_the_ranking_whatever_the_scores_say(self, tmp_path):
        run_text = "7 Q0 1 9 0.1 t\n7 Q0 2 8 0.9 t\n"
        _, run = score(tmp_path, "rekabsaz2020", run_text, "1\the\n2\tshe\n", ["ARaB(tc)@1"])
        assert run["per_query"]["7"]["ARaB(tc)@1"] == 1.0

    def test_a_document_without_magnitudes_is_an_error_where_the_original_crashes(self, tmp_path):
        with pytest.raises(DataError, match="have no text"):
            score(tmp_path, "rekabsaz2020", lines("7", 1, 2), "1\the\n", ["ARaB(tc)@5"])

    def test_a_line_that_is_not_two_columns_is_an_empty_document(self, tmp_path):
        docs = "1\the\tand more\n2\t\n3\n4\the\n"
        _, run = score(tmp_path, "rekabsaz2020", lines("7", 1, 2, 3, 4), docs, ["RaB(tc)@4"])
        assert run["per_query"]["7"]["RaB(tc)@4"] == 0.25

    def test_a_query_that_comes_back_starts_anew_and_this_is_told(self, tmp_path):
        run_text = lines("7", 1) + lines("8", 1) + lines("7", 2)
        report, run = score(tmp_path, "rekabsaz2020", run_text, "1\the\n2\tshe\n", ["RaB(tc)@5"])
        assert run["per_query"]["7"]["RaB(tc)@5"] == -1.0
        assert any("occur again later" in note for note in report.notes)

    def test_lines_of_five_or_seven_columns_are_left_out_and_this_is_told(self, tmp_path):
        run_text = "7 Q0 2 1 9\n" + lines("7", 1) + "7 Q0 2 1 9 a b\n"
        report, run = score(tmp_path, "rekabsaz2020", run_text, "1\the\n2\tshe\n", ["RaB(tc)@5"])
        assert run["per_query"]["7"]["RaB(tc)@5"] == 1.0
        assert any("2 lines" in note and "6 columns" in note for note in report.notes)

    def test_a_word_of_both_lists_counts_as_female_for_arab_and_for_both_in_fairr(self, tmp_path):
        words = write(tmp_path / "both.csv", "pat,m\nhe,m\npat,f\nshe,f\n")
        docs = "1\tpat pat he\n"
        args = (tmp_path, "rekabsaz2020", lines("7", 1), docs)
        _, run = score(*args, ["ARaB(tc)@5", "FaiRR@1"], groups=str(words))
        assert run["per_query"]["7"]["ARaB(tc)@5"] == 1 - 2
        assert run["per_query"]["7"]["FaiRR@1"] == pytest.approx(1 - abs(2 - 3) / 5)

    def test_neutralities_are_rounded_to_six_decimals(self, tmp_path):
        docs = "1\the he he he he she she\n"  # 1 - 3/7 = 0.571428571...
        _, run = score(tmp_path, "rekabsaz2020", lines("7", 1), docs, ["FaiRR@5"])
        assert run["per_query"]["7"]["FaiRR@5"] == 0.571429

    def test_the_background_is_a_set_so_a_repeated_neutral_document_beats_the_ideal(self, tmp_path):
        docs = "1\tx\n2\the he\n"
        _, run = score(tmp_path, "rekabsaz2020", lines("7", 1, 1), docs, ["NFaiRR@2"], background=lines("7", 1, 1, 2))
        assert run["per_query"]["7"]["NFaiRR@2"] > 1

    def test_queries_the_background_lacks_are_skipped_and_counted(self, tmp_path):
        run_text = lines("7", 1) + lines("8", 1)
        report, run = score(tmp_path, "rekabsaz2020", run_text, "1\tx\n", ["NFaiRR@5"], background=lines("7", 1))
        assert run["measures"]["NFaiRR@5"]["n"] == 1
        assert any("1 of 2" in note for note in report.notes)

    def test_an_ideal_of_zero_is_an_error_where_the_original_gives_nan(self, tmp_path):
        with pytest.raises(DataError, match="nan"):
            score(tmp_path, "rekabsaz2020", lines("7", 1), "1\the he\n", ["NFaiRR@5"], background=lines("7", 1))

    def test_names_that_are_words_count_in_fairr_but_not_in_arab(self, tmp_path):
        docs = "1\tParis madison\n"
        _, run = score(tmp_path, "rekabsaz2020", lines("7", 1), docs, ["ARaB(tc)@5", "FaiRR@5"])
        assert run["per_query"]["7"] == {"ARaB(tc)@5": 0.0, "FaiRR@5": 0.0}

    @pytest.mark.parametrize("measure", ["FaiRR@4", "NFaiRR@4"])
    def test_a_line_that_is_not_two_columns_is_unknown_to_fairr_where_the_original_crashes(self, tmp_path, measure):
        docs, background = "1\tx\n2\n", lines("7", 1, 2)
        with pytest.raises(DataError, match="'2' at rank 2"):
            score(tmp_path, "rekabsaz2020", lines("7", 1, 2), docs, [measure], background=background)
        report, run = score(
            tmp_path, "rekabsaz2020", lines("7", 1, 2), docs, [measure], background=background, missing="skip"
        )
        assert run["per_query"]["7"][measure] == 1.0
        assert any("two columns" in note for note in report.notes)
        assert any("have no text" in note for note in report.notes)

    def test_a_line_that_is_not_two_columns_can_be_an_empty_document_for_fairr_too(self, tmp_path):
        _, run = score(tmp_path, "rekabsaz2020", lines("7", 1), "1\the\tx\n", ["FaiRR(malformed=zero)@4"])
        assert run["per_query"]["7"]["FaiRR(malformed=zero)@4"] == 1.0


class TestBigdeli2022:
    def test_arab_uses_the_large_list(self, tmp_path):
        docs = "1\tchristian\n"
        _, run = score(tmp_path, "bigdeli2022", lines("7", 1), docs, ["ARaB(tc)@5"])
        assert run["per_query"]["7"]["ARaB(tc)@5"] == 1.0

    def test_queries_without_judgements_count_as_zero_and_the_denominator_is_the_run(self, tmp_path):
        run_text = lines("7", 1, 2) + lines("8", 1)
        _, run = score(tmp_path, "bigdeli2022", run_text, "1\tx\n2\tx\n", ["RR@10"], qrels="7 0 2 1\n9 0 1 1\n")
        assert run["measures"]["RR@10"]["mean"] == pytest.approx((0.5 + 0) / 2)
        assert run["measures"]["RR@10"]["n"] == 2

    def test_rr_counts_all_lines_of_a_query_that_comes_back_and_arab_only_the_last_ones(self, tmp_path):
        run_text = lines("7", 1) + lines("8", 1) + lines("7", 2) + lines("8", 2)
        measures, qrels = ["RR@10", "RaB(tc)@5"], "7 0 2 1\n8 0 1 1\n"
        report, run = score(tmp_path, "bigdeli2022", run_text, "1\the\n2\tshe\n", measures, qrels=qrels)
        assert run["per_query"] == {"7": {"RR@10": 0.5, "RaB(tc)@5": -1.0}, "8": {"RR@10": 1.0, "RaB(tc)@5": -1.0}}
        codes = {note.code: note.values for note in report.notes if hasattr(note, "code")}
        assert codes["returning-queries"] == {"lines": 2}

    @settings(max_examples=50, deadline=None)
    @given(st.lists(st.tuples(st.sampled_from("789"), st.integers(1, 15)), min_size=1, max_size=60), st.booleans())
    def test_rr_of_lines_in_any_order_is_that_of_lists_that_append(self, ranked, only_seven):
        lists = {}
        for query, doc in ranked:
            lists.setdefault(query, []).append(doc)
        wanted = {"7": lists["7"]} if only_seven and "7" in lists else lists
        expected = {
            query: next((1 / r for r, d in enumerate(docs[:10], 1) if d == 3), 0.0) for query, docs in wanted.items()
        }
        run_text = "".join(f"{query} Q0 {doc} 1 0 tag\n" for query, doc in ranked)
        with TemporaryDirectory() as folder:
            given_queries = {"queries": list(wanted)} if wanted is not lists else {}
            qrels = "".join(f"{query} 0 3 1\n{query} 0 4 0\n" for query in "789")
            _, run = score(Path(folder), "bigdeli2022", run_text, "1\tx\n", ["RR@10"], qrels=qrels, **given_queries)
        assert {query: values["RR@10"] for query, values in run["per_query"].items()} == expected

    def test_an_ideal_of_zero_is_an_error_where_the_original_gives_nan(self, tmp_path):
        with pytest.raises(DataError, match="nan"):
            score(tmp_path, "bigdeli2022", lines("7", 1), "1\the he\n", ["NFaiRR@5"], background=lines("7", 1))

    def test_a_run_that_lacks_a_query_of_the_first_is_an_error_where_the_original_crashes(self, tmp_path):
        one = write(tmp_path / "one.run", lines("7", 1) + lines("8", 1))
        two = write(tmp_path / "two.run", lines("7", 1))
        docs = write(tmp_path / "d.tsv", "1\the\n")
        with pytest.raises(DataError, match="'8'"):
            askew.measure([one, two], docs, preset="bigdeli2022", measures="ARaB(tf)@5")


class TestRefairmulate2025:
    def test_arab_is_the_mean_of_absolute_running_means_rounded_to_four_decimals(self, tmp_path):
        docs = "1\tshe\n2\the he\n"
        _, run = score(tmp_path, "refairmulate2025", lines("7", 1, 2), docs, ["ARaB(tf)@10", "ARaB(tc)@10"])
        expected = (log(2) + abs(-log(2) + log(3)) / 2) / 2
        assert run["per_query"]["7"]["ARaB(tf)@10"] == round(expected, 4)
        assert run["per_query"]["7"]["ARaB(tc)@10"] == (1 + 0.5) / 2

    def test_unknown_documents_are_dropped_and_later_ones_move_up(self, tmp_path):
        ranked = ["x"] * 0 + [f"u{i}" for i in range(10)] + ["1"]
        _, run = score(tmp_path, "refairmulate2025", lines("7", *ranked), "1\the\n", ["ARaB(tc)@10"])
        assert run["per_query"]["7"]["ARaB(tc)@10"] == 1.0

    def test_a_query_with_no_known_document_gets_no_arab_at_all(self, tmp_path):
        run_text = lines("7", 1) + lines("8", "ghost")
        _, run = score(tmp_path, "refairmulate2025", run_text, "1\the\n", ["ARaB(tc)@10", "LIWC@10"])
        assert run["measures"]["ARaB(tc)@10"]["n"] == 1
        assert "ARaB(tc)@10" not in run["per_query"]["8"]
        assert run["per_query"]["8"]["LIWC@10"] == 0.0

    def test_liwc_averages_the_known_among_the_first_without_moving_others_up(self, tmp_path):
        ranked = ["ghost", *[str(i) for i in range(1, 11)]]
        docs = "".join(f"{i}\the x\n" for i in range(1, 10)) + "10\tshe she\n"
        _, run = score(tmp_path, "refairmulate2025", lines("7", *ranked), docs, ["LIWC@10"])
        assert run["per_query"]["7"]["LIWC@10"] == 50.0

    def test_an_unknown_document_is_silently_neutral_in_fairr(self, tmp_path):
        _, run = score(tmp_path, "refairmulate2025", lines("7", "ghost"), "1\tx\n", ["FaiRR@10", "NFaiRR@10"])
        assert run["per_query"]["7"] == {"FaiRR@10": 1.0, "NFaiRR@10": 1.0}

    def test_nfairr_is_against_the_run_itself_and_leaves_zero_ideals_out(self, tmp_path):
        run_text = lines("7", 1, 2) + lines("8", 1)
        _, run = score(tmp_path, "refairmulate2025", run_text, "1\the he\n2\tx\n", ["NFaiRR@10"])
        assert run["per_query"]["7"]["NFaiRR@10"] == round(1 / 1.584962500721156, 4)
        assert run["measures"]["NFaiRR@10"]["n"] == 1

    def test_a_query_without_judgements_is_zero_and_means_have_five_decimals(self, tmp_path):
        run_text = lines("7", 1, 2, 3) + lines("8", 1) + lines("9", 1)
        _, run = score(tmp_path, "refairmulate2025", run_text, "1\tx\n2\tx\n3\tx\n", ["RR@10"], qrels="7 0 3 1\n")
        assert run["per_query"]["7"]["RR@10"] == 1 / 3
        assert run["measures"]["RR@10"]["mean"] == round(1 / 9, 5)

    def test_ap_divides_by_all_relevant_documents_not_by_the_cutoff(self, tmp_path):
        qrels = "".join(f"7 0 {doc} 1\n" for doc in range(1, 21))
        docs = "".join(f"{doc}\tx\n" for doc in range(1, 21))
        _, run = score(tmp_path, "refairmulate2025", lines("7", *range(1, 21)), docs, ["AP@10"], qrels=qrels)
        assert run["per_query"]["7"]["AP@10"] == pytest.approx(10 / 20)


@pytest.mark.parametrize("preset", sorted(presets()))
def test_every_preset_measures_the_demo_with_its_own_list_of_measures(preset):
    from askew.data.collection import demo_files

    demo = demo_files()
    report = askew.measure(
        demo.runs[:1], demo.docs, qrels=demo.qrels, background=demo.runs[0], preset=preset,
    )  # fmt: skip
    assert [a.text for a in report.asked] == list(presets()[preset].measures)
