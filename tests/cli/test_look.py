"""``askew list`` and ``askew show``: what there is, and what one of it is."""

from pathlib import Path

import pytest

LISTS = {
    "lexicons": ["name", "groups", "language", "hash", "title"],
    "measures": ["name", "also", "reads", "about"],
    "presets": ["name", "title", "measures"],
    "tokenizers": ["name", "about"],
    "resolvers": ["name", "id", "about"],
    "plugins": ["name", "kind", "from"],
}
GROUPS = {
    "age": {"young", "old"},
    "gender": {"female", "male"},
    "gsqr2023": {"female", "male"},
    "nationality": {"american", "nigerian"},
    "rekabsaz2020": {"female", "male"},
    "rekabsaz2021": {"female", "male"},
    "religion": {"christian", "muslim"},
}
LEXICONS = tuple(GROUPS)
PRESETS = ("rekabsaz2020", "bigdeli2022", "refairmulate2025", "trec-dl")


@pytest.mark.parametrize("what", LISTS)
def test_a_list_in_json_has_one_object_for_each_thing(askew, what):
    rows = askew(f"list {what} --json").json
    assert rows
    assert all(list(row) == LISTS[what] for row in rows)
    assert all(isinstance(value, str) and value for row in rows for value in row.values())


@pytest.mark.parametrize("what", LISTS)
def test_a_list_as_a_table_fits_and_names_each_thing(askew, what):
    table = askew(f"list {what}").table
    assert all(row["name"] in table for row in askew(f"list {what} --json").json)


def test_what_is_listed_can_be_shown(askew):
    for what, thing in (("lexicons", "lexicon"), ("presets", "preset"), ("measures", "measure")):
        for row in askew(f"list {what} --json").json:
            assert askew(["show", thing, row["name"], "--json"]).json[thing].startswith(row["name"])


def test_another_name_stands_on_the_line_of_its_measure(askew):
    rows = {row["name"]: row for row in askew("list measures --json").json}
    assert {"MRR", "MAP", "NDCG", "LIWC", "Precision", "Recall"}.isdisjoint(rows)
    assert (rows["RR"]["also"], rows["AP"]["also"], rows["LexiconShare"]["also"]) == ("MRR", "MAP", "LIWC")
    assert rows["SetRelP"]["also"] == "-"
    assert "reciprocal" in rows["RR"]["about"] and "precision" in rows["AP"]["about"]


def test_the_list_of_lexicons_breaks_no_word_at_eighty_columns(askew):
    words = set(askew("list lexicons").table.split())
    assert {"Gender-representative", "gender-specialising", "rekabsaz2021"} <= words


def test_what_ships_with_askew_is_listed(askew):
    assert {row["name"] for row in askew("list lexicons --json").json} == set(LEXICONS)
    assert {row["name"] for row in askew("list presets --json").json} == set(PRESETS)
    assert {row["name"] for row in askew("list tokenizers --json").json} == {
        "blank",
        "word",
        "unclipped",
        "seyedsalehi",
    }
    assert {"RR", "AP", "nDCG", "ARaB", "RaB", "FaiRR", "NFaiRR", "LexiconShare"} <= {
        row["name"] for row in askew("list measures --json").json
    }


def test_measures_of_lean_come_first_in_the_list(askew):
    reads = ["judgements" in row["reads"] for row in askew("list measures --json").json]
    assert reads == sorted(reads)


@pytest.mark.parametrize("name", LEXICONS)
def test_a_shipped_lexicon_shows_its_source_its_license_and_its_terms(askew, name):
    facts = askew(f"show lexicon {name} --json").json
    assert facts["lexicon"].startswith(f"{name}@")
    assert facts["source"] and facts["license"]
    assert set(facts["groups"]) >= GROUPS[name]
    shown = askew(f"show lexicon {name}").out
    assert "license: " in shown
    for group, terms in facts["groups"].items():
        assert f"  {group} ({len(terms)}): {', '.join(terms)}\n" in shown


def test_a_lexicon_file_can_be_shown_with_the_terms_that_stand_in_several_groups(askew, files):
    files.text("own.toml", "[groups]\nyoung = ['kid', 'both']\nold = ['elder', 'both']\n")
    facts = askew("show lexicon own.toml --json").json
    assert facts["groups"] == {"young": ["both", "kid"], "old": ["both", "elder"]}
    assert facts["in several groups"] == {"both": "young, old"}


@pytest.mark.parametrize("term", ["[bold]kid[/bold]", ":man:", "\u009b31mkid"])
def test_the_terms_of_a_lexicon_are_shown_as_text_and_never_obeyed(askew, files, term):
    files.text("own.toml", f"[groups]\nyoung = ['{term}']\nold = ['elder']\n")
    out = askew("show lexicon own.toml").out
    assert term.replace("\u009b", "\ufffd") in out
    assert out.replace("\n", "").isprintable()


def test_a_measure_shows_its_parameters_its_direction_and_its_signature(askew):
    facts = askew("show measure 'ARaB(tf)@10' --json").json
    assert list(facts) == ["measure", "about", "reads", "better", "bounds", "signature", "parameters"]
    assert (facts["reads"], facts["better"]) == (["mentions"], "zero")
    assert "tc, tf, bool" in facts["parameters"]["kind"]
    assert facts["signature"].startswith("ARaB(groups='male-female',kind='tf'")


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("RR@10", "0 to 1"), ("nDCG@10", "0 to 1"), ("NumRet", "0 to none"), ("RaB", "none to none"),
        ("ARaB(bool)@10", "-1 to 1"), ("ARaB(bool,sign=abs)@10", "0 to 1"), ("ARaB(tf,groups=male)@10", "0 to none"),
        ("NFaiRR@10", "0 to 1"), ("NFaiRR(background=run)@10", "0 to none"), ("FaiRR@2", "0 to 1.631"),
        ("LIWC@10", "0 to none"), ("AWRF(distance=tv)@10", "0.5 to 1"), ("EXP@10", "0 to 1"), ("TExFAIR@10", "0 to 1"),
        ("EXP(difference,attention=geometric,p=0.3)@10", "0 to 0.3"), ("NDKL@10", "0 to 0.6931"),
        ("Skew@10", "0 to 0.6931"), ("Skew(min)@10", "-6.908 to 0"), ("Skew(male)@10", "-6.908 to 0.6931"),
    ],
)  # fmt: skip
def test_a_measure_states_its_bounds(askew, name, bounds):
    assert askew(["show", "measure", name, "--json"]).json["bounds"] == bounds


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("RR@10", "up"),
        ("NFaiRR", "up"),
        ("LIWC", "down"),
        ("RaB", "zero"),
        ("AWRF", "up"),
        ("EXP", "up"),
        ("EXP(difference)", "down"),
        ("TExFAIR", "up"),
        ("Skew", "down"),
        ("Skew(min)", "up"),
        ("Skew(male)", "zero"),
        ("NDKL", "down"),
    ],
)
def test_a_measure_says_which_way_is_better(askew, name, better):
    assert askew(["show", "measure", name, "--json"]).json["better"] == better
    assert f"better: {better}\n" in askew(["show", "measure", name]).out


def test_a_shown_signature_is_itself_a_measure_with_the_same_signature(askew):
    signature = askew("show measure 'RR@10' --json").json["signature"]
    assert askew(["show", "measure", signature, "--json"]).json["signature"] == signature


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_shows_its_source_and_each_measure_in_full(askew, name):
    facts = askew(f"show preset {name} --json").json
    assert list(facts) == ["preset", "title", "source", "measures"]
    # The published scripts read the order of the file; trec_eval, as in the track, sorts by score.
    order = "order='score'" if name == "trec-dl" else "order='file'"
    assert all(order in signature for signature in facts["measures"].values())
    shown = askew(f"show preset {name}").out
    assert all(f"  {text}: {signature}\n" in shown for text, signature in facts["measures"].items())


def test_an_empty_store_is_shown_as_empty(askew):
    Path("store").mkdir()
    assert askew("show store store").out == "store: store\nfinished steps: none\nunfinished steps: none\n"
    assert askew("show store store --json").json == {"store": "store", "finished steps": {}, "unfinished steps": {}}


def test_a_store_shows_its_unfinished_steps(askew):
    key = askew("annotate docs.tsv --tokens word --json").json["counts"][0]["key"]
    (Path(".askew") / f"mentions-{key}" / "manifest.json").unlink()
    facts = askew("show store .askew --json").json
    assert facts["finished steps"] == {}
    assert facts["unfinished steps"] == {f"mentions-{key}": {"parts": 1, "rows in": 5}}


def test_only_measures_that_can_be_computed_here_are_listed(askew):
    import ir_measures

    listed = {row["name"] for row in askew("list measures --json").json}
    for provider, name in (("pyndeval", "alpha_nDCG"), ("cwl_eval", "RBP"), ("pytrec_eval", "nDCG")):
        assert (name in listed) == ir_measures.providers.registry[provider].is_available()


def test_a_measure_is_shown_with_the_signature_it_has_when_nothing_else_is_given(askew):
    measured = askew("measure old.run --docs docs.tsv --measures NFaiRR@10 --json").json
    shown = askew("show measure NFaiRR@10 --json").json["signature"]
    assert shown == measured["runs"][0]["measures"]["NFaiRR@10"]["signature"]


def test_a_store_shows_its_finished_steps_and_what_they_dropped(askew):
    key = askew("annotate docs.tsv --tokens word --json").json["counts"][0]["key"]
    (step,) = askew("show store .askew --json").json["finished steps"].items()
    assert step[0] == f"mentions-{key}"
    assert (step[1]["rows in"], step[1]["rows out"], step[1]["dropped"]) == (5, 5, {})
    assert step[1]["settings"]["tokens"] == "word"
    assert f"mentions-{key}" in askew("show store .askew").out


def test_an_unknown_list_or_thing_is_refused_with_what_there_is(askew):
    askew("list lexicon").refused(2, "did you mean 'lexicons'", "presets")
    askew("show lexicons gender").refused(2, "did you mean 'lexicon'", "preset")


@pytest.mark.parametrize(
    ("command", "code", "word"),
    [
        ("show lexicon gendr", 2, "did you mean 'gender'"),
        ("show lexicon nowhere.toml", 3, "nowhere.toml"),
        ("show measure ARab@10", 2, "did you mean 'ARaB'"),
        ("show measure 'ARaB(tf'", 2, "ARaB(tf"),
        ("show measure ''", 2, "expected a measure name"),
        ("show preset bigdeli", 2, "did you mean 'bigdeli2022'"),
        ("show store nowhere", 5, "nowhere"),
    ],
)
def test_what_there_is_not_cannot_be_shown(askew, command, code, word):
    askew(command).refused(code, word)


@pytest.mark.parametrize("name", ["demo", "refairmulate", "repair"])
def test_a_recipe_is_shown_as_a_file_that_one_s_own_can_begin_from(askew, tmp_path, name):
    from askew.pairs.recipe import read_recipe

    own = tmp_path / "mine.toml"
    own.write_text(askew(f"show recipe {name}").out, encoding="utf-8")
    assert (
        read_recipe(own).sections == read_recipe(name).sections == askew(f"show recipe {name} --json").json["sections"]
    )


def test_a_recipe_that_is_not_there_is_told(askew):
    assert "did you mean 'demo'" in askew("show recipe dema").err
