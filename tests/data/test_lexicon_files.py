"""Lexicons from files and by name: TOML, CSV, TSV, LIWC .dic, the shipped ones."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askew.core.errors import ConfigError, DataError, UnknownName
from askew.core.lexicon import Lexicon, load_lexicon, shipped_lexicons
from askew.core.text import build_vocabulary, word

TOML = """
name = "mine"
version = 2
language = "en"
source = "my head"
license = "CC0"
title = "My words"
note = "Few."

[groups]
female = ["she", "Her"]
male = ["he"]
"""
DIC = "%\n1\tfunction\n2\tfemale\n3\tmale\n%\nshe\t1\t2\nmother*\t2\nhe\t1\t3\nfather*\t3\nspouse\t2\t3\nthe\t1\n"
GROUPS = {"female": ("her", "she"), "male": ("he",)}
TERMS = st.text(st.characters(categories=("Ll", "Nd")), min_size=1, max_size=8)
LAW = settings(max_examples=60, deadline=None, database=None)


def load(folder, content, name="a.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return load_lexicon(path)


# --- TOML -----------------------------------------------------------------------------------------


def test_a_toml_lexicon_has_its_groups_in_order_and_its_terms_cleaned(tmp_path):
    lexicon = load(tmp_path, TOML, "a.toml")
    assert (dict(lexicon.groups), lexicon.group_names) == (GROUPS, ("female", "male"))


def test_a_toml_lexicon_says_what_it_is_and_where(tmp_path):
    lexicon = load(tmp_path, TOML, "a.toml")
    assert (lexicon.name, lexicon.version, lexicon.language) == ("mine", "2", "en")
    assert (lexicon.source, lexicon.license, lexicon.title, lexicon.note) == ("my head", "CC0", "My words", "Few.")
    assert lexicon.where == str(tmp_path / "a.toml")


def test_a_toml_lexicon_without_a_name_is_named_after_its_file(tmp_path):
    lexicon = load(tmp_path, "[groups]\nfemale = ['she']\n", "words.toml")
    assert (lexicon.name, lexicon.license) == ("words", "not stated")


def test_the_groups_of_a_toml_lexicon_may_have_any_names_and_number(tmp_path):
    lexicon = load(tmp_path, '[groups]\nold = ["aged"]\nyoung = ["teen"]\n"größer" = ["tall"]\n', "a.toml")
    assert lexicon.group_names == ("old", "young", "größer")


def test_a_toml_lexicon_may_have_a_byte_order_mark_and_windows_line_ends(tmp_path):
    content = b"\xef\xbb\xbf" + TOML.replace("\n", "\r\n").encode()
    assert dict(load(tmp_path, content, "a.toml").groups) == GROUPS


def test_broken_toml_names_the_file_and_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.toml: not valid TOML: .*line 2"):
        load(tmp_path, "[groups]\nfemale = [she]\n", "a.toml")


@pytest.mark.parametrize(
    "content",
    ["", "groups = 1\n", "groups = ['she']\n", "[groups]\nfemale = 'she'\n", "[groups]\nfemale = ['she', 1]\n"],
)
def test_toml_without_lists_of_terms_says_what_is_expected(tmp_path, content):
    with pytest.raises(DataError, match=r"a\.toml: .*\[groups\]") as caught:
        load(tmp_path, content, "a.toml")
    assert caught.value.code == "no-table"


def test_the_british_spelling_of_the_key_license_is_read_too(tmp_path):
    lexicon = load(tmp_path, TOML.replace("license", "licence"), "a.toml")
    assert lexicon.license == "CC0" and lexicon == load(tmp_path, TOML, "a.toml")


def test_an_unknown_key_suggests_the_right_one(tmp_path):
    with pytest.raises(UnknownName, match=r"unknown key 'licens' in .*a\.toml:.*you mean 'license'\?"):
        load(tmp_path, "licens = 'MIT'\n[groups]\nfemale = ['she']\n", "a.toml")


def test_a_table_of_groups_without_a_group_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"lexicon 'a'.*no groups"):
        load(tmp_path, "[groups]\n", "a.toml")


@pytest.mark.parametrize("terms", ["[]", "['', '  ']"])
def test_a_group_without_terms_is_refused(tmp_path, terms):
    with pytest.raises(DataError, match=r"lexicon 'a': the group 'female'.*no terms"):
        load(tmp_path, f"[groups]\nfemale = {terms}\n", "a.toml")


@pytest.mark.parametrize("group", ["a b", "a-b", ""])
def test_a_group_is_named_by_letters_digits_and_underscores(tmp_path, group):
    with pytest.raises(DataError) as caught:
        load(tmp_path, f"[groups]\n'{group}' = ['she']\n", "a.toml")
    assert (caught.value.code, caught.value.values) == ("bad-group-name", {"found": group})


# --- CSV and TSV ----------------------------------------------------------------------------------


def test_a_csv_lexicon_without_a_header_is_read(tmp_path):
    lexicon = load(tmp_path, "she,female\nher,female\nhe,male\n", "words.csv")
    assert (lexicon.name, dict(lexicon.groups)) == ("words", GROUPS)


@pytest.mark.parametrize("header", ["term,group", "Word , Group"])
def test_a_csv_header_is_not_a_term(tmp_path, header):
    assert dict(load(tmp_path, f"{header}\nshe,female\nher,female\nhe,male\n").groups) == GROUPS


@pytest.mark.parametrize("before", ["# my words\n", "\n"])
def test_a_csv_header_after_a_comment_or_a_blank_line_is_still_a_header(tmp_path, before):
    assert load(tmp_path, f"{before}term,group\nshe,female\nhe,male\n").group_names == ("female", "male")


def test_the_published_letters_stand_for_female_and_male(tmp_path):
    assert dict(load(tmp_path, "she,f\nher,f\nhe,m\n", "a.txt").groups) == GROUPS


def test_female_comes_first_whatever_the_order_of_the_lines(tmp_path):
    assert load(tmp_path, "they,other\nhe,m\nshe,f\n").group_names == ("female", "male", "other")


def test_comments_and_blank_lines_are_skipped(tmp_path):
    assert dict(load(tmp_path, "# words\n\nshe,f\n  # more\nher,f\n\nhe,m\n\n").groups) == GROUPS


def test_lines_of_blanks_are_skipped_like_empty_ones(tmp_path):
    assert dict(load(tmp_path, "she,f\n  \nher,f\n\t\nhe,m\n").groups) == GROUPS


def test_a_quoted_term_may_hold_a_comma(tmp_path):
    assert load(tmp_path, '"lady, the",f\nhe,m\n').groups["female"] == ("lady, the",)


def test_a_tsv_lexicon_is_separated_by_tabs(tmp_path):
    assert load(tmp_path, "term\tgroup\nlady, the\tf\nhe\tm\n", "a.TSV").groups["female"] == ("lady, the",)


@pytest.mark.parametrize("name", ["a.csv", "a.dic"])
def test_a_byte_order_mark_and_windows_line_ends_change_nothing(tmp_path, name):
    content = {"a.csv": "she,f\nher,f\nhe,m\n", "a.dic": DIC}[name]
    plain = load(tmp_path, content, name)
    assert load(tmp_path, b"\xef\xbb\xbf" + content.replace("\n", "\r\n").encode(), name) == plain


def test_a_csv_lexicon_with_old_macintosh_line_ends_is_no_crash(tmp_path):
    assert dict(load(tmp_path, "she,f\rher,f\rhe,m\r").groups) == GROUPS


@pytest.mark.parametrize("line", ["her", "her,f,x", "a,b,c,d"])
def test_a_csv_line_with_other_than_two_columns_names_the_file_and_line(tmp_path, line):
    columns = line.count(",") + 1
    with pytest.raises(DataError, match=r"a\.csv:4: .*term, group") as caught:
        load(tmp_path, f"# words\n\nshe,f\n{line}\n")
    assert (caught.value.code, caught.value.values) == ("bad-width", {"line": 4, "found": columns})


def test_a_line_after_a_quoted_line_end_is_named_by_its_own_number(tmp_path):
    with pytest.raises(DataError, match=r"a\.csv:3: expected 2 columns"):
        load(tmp_path, '"grand\nmother",f\nhe\n')


@pytest.mark.parametrize("line", [",f", "her,", " , "])
def test_an_empty_column_names_the_file_and_line(tmp_path, line):
    with pytest.raises(DataError, match=r"a\.csv:2:.*an empty column"):
        load(tmp_path, f"she,f\n{line}\n")


@pytest.mark.parametrize("content", ["", "\n", "# only a comment\n", "term,group\n"])
def test_a_csv_file_without_terms_is_refused(tmp_path, content):
    with pytest.raises(DataError, match=r"lexicon 'a'.*no groups"):
        load(tmp_path, content)


def test_a_term_of_two_hundred_thousand_characters_is_no_crash(tmp_path):
    assert load(tmp_path, "x" * 200_000 + ",f\nhe,m\n").groups["female"] == ("x" * 200_000,)


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", b"she,f\nh\xe9,m\n"), ("a.toml", b"[groups]\nmale = ['h\xe9']\n"), ("a.dic", b"%\n1 caf\xe9\n%\n")],
)
def test_bytes_that_are_not_utf_8_name_the_file_and_line(tmp_path, name, content):
    with pytest.raises(DataError, match=rf"{re.escape(name)}:2: .*UTF-8"):
        load(tmp_path, content, name)


@LAW
@given(female=st.sets(TERMS, min_size=1, max_size=6), male=st.sets(TERMS, min_size=1, max_size=6))
def test_the_same_terms_have_the_same_hash_in_every_format(tmp_path_factory, female, male):
    folder = tmp_path_factory.getbasetemp()
    pairs = [*((term, "female") for term in sorted(female)), *((term, "male") for term in sorted(male, reverse=True))]
    csv = load(folder, "term,group\n" + "".join(f"{term},{group}\n" for term, group in pairs), "law.csv")
    tsv = load(folder, "".join(f"{term}\t{group}\n" for term, group in reversed(pairs)), "law.tsv")
    toml = load(folder, f"[groups]\nfemale = {sorted(female)}\nmale = {sorted(male)}\n", "law.toml")
    dic = load(
        folder,
        "%\n1\tfemale\n2\tmale\n%\n" + "".join(f"{t}\t{'1' if g == 'female' else '2'}\n" for t, g in pairs),
        "law.dic",
    )
    assert len({lexicon.id for lexicon in (csv, tsv, toml, dic)}) == 1


# --- LIWC -----------------------------------------------------------------------------------------


def test_of_a_liwc_file_the_categories_female_and_male_are_taken(tmp_path):
    assert load(tmp_path, DIC, "a.dic").group_names == ("female", "male")


def test_a_liwc_term_belongs_to_all_its_categories_and_keeps_its_wildcard(tmp_path):
    lexicon = load(tmp_path, DIC, "a.dic")
    assert dict(lexicon.groups) == {"female": ("mother*", "she", "spouse"), "male": ("father*", "he", "spouse")}
    assert lexicon.shared_terms() == {"spouse": ("female", "male")}


def test_a_liwc_file_is_named_after_its_file_and_says_its_source(tmp_path):
    lexicon = load(tmp_path, DIC, "liwc.dic")
    assert (lexicon.name, lexicon.source, lexicon.where) == ("liwc", "LIWC dictionary file", str(tmp_path / "liwc.dic"))


def test_a_liwc_file_without_female_and_male_is_taken_whole(tmp_path):
    lexicon = load(tmp_path, "%\n10 Posemo\n20 Neg-emo\n30 empty\n%\nnice* 10\nbad 20\nso-so 10 20\n", "a.dic")
    assert dict(lexicon.groups) == {"posemo": ("nice*", "so-so"), "neg_emo": ("bad", "so-so")}


def test_a_liwc_file_with_only_one_of_female_and_male_is_taken_whole(tmp_path):
    assert load(tmp_path, "%\n1 female\n2 family\n%\nshe 1\naunt 1 2\n", "a.dic").group_names == ("female", "family")


def test_a_liwc_term_of_several_words_ends_at_the_tab(tmp_path):
    assert load(tmp_path, "%\n1 female\n2 male\n%\nyoung lady\t1\nhe\t2\n", "a.dic").groups["female"] == ("young lady",)


def test_a_liwc_header_may_describe_its_categories(tmp_path):
    lexicon = load(tmp_path, "%\n1\tFemale\tFemale references\n2\tMale\tMale references\n%\nshe\t1\nhe\t2\n", "a.dic")
    assert lexicon.group_names == ("female", "male")


@pytest.mark.parametrize("blank", ["", "   ", "\t"])
def test_blank_lines_among_liwc_terms_are_skipped(tmp_path, blank):
    lexicon = load(tmp_path, f"%\n1 female\n2 male\n%\nshe 1\n{blank}\nhe 2\n", "a.dic")
    assert dict(lexicon.groups) == {"female": ("she",), "male": ("he",)}


def test_blank_lines_in_a_liwc_header_are_skipped(tmp_path):
    assert load(tmp_path, "%\n1 female\n\n2 male\n%\nshe 1\nhe 2\n", "a.dic").group_names == ("female", "male")


@pytest.mark.parametrize("line", ["lost", "lost\t"])
def test_a_liwc_term_without_a_category_is_not_lost_in_silence(tmp_path, line):
    with pytest.raises(DataError, match=r"a\.dic.*'lost'"):
        load(tmp_path, f"%\n1 female\n2 male\n%\nshe 1\n{line}\nhe 2\n", "a.dic")


@pytest.mark.parametrize(("content", "found"), [("she 1\n", 0), ("%\n1 female\n", 1), ("%\n1 f\n%\nshe 1\n%\n", 3)])
def test_a_liwc_file_without_a_header_says_so(tmp_path, content, found):
    with pytest.raises(DataError, match=r"a\.dic: .*'%'") as caught:
        load(tmp_path, content, "a.dic")
    assert (caught.value.code, caught.value.values) == ("no-header", {"found": found})


def test_a_liwc_category_without_a_name_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"a\.dic:3: expected 'number name'.*header, found '2'"):
        load(tmp_path, "%\n1 female\n2\n%\nshe 1\n", "a.dic")


def test_a_liwc_term_with_an_undeclared_category_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"a\.dic:6: term 'he'.*undeclared category '9'"):
        load(tmp_path, "%\n1 female\n2 male\n%\nshe 1\nhe 9\n", "a.dic")


def test_a_liwc_file_without_terms_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"lexicon 'a'.*no groups"):
        load(tmp_path, "%\n1 female\n2 male\n%\n", "a.dic")


# --- by name --------------------------------------------------------------------------------------


def test_the_shipped_lexicons_are_listed_in_order():
    assert shipped_lexicons() == [
        "age", "gender", "gsqr2023", "nationality", "rekabsaz2020", "rekabsaz2021", "religion",
    ]  # fmt: skip


@pytest.mark.parametrize("name", shipped_lexicons())
def test_each_shipped_lexicon_is_found_by_name_and_says_its_source_and_license(name):
    lexicon = load_lexicon(name)
    assert lexicon.name == name
    assert "not stated" not in (lexicon.source, lexicon.license)


@pytest.mark.parametrize("name", ["gender", "gsqr2023", "rekabsaz2020", "rekabsaz2021"])
def test_each_shipped_lexicon_of_gender_has_female_and_male_first(name):
    assert load_lexicon(name).group_names[:2] == ("female", "male")


@pytest.mark.parametrize("name", shipped_lexicons())
def test_each_shipped_lexicon_is_found_by_name_and_hash(name):
    lexicon = load_lexicon(name)
    assert load_lexicon(lexicon.id) == lexicon


@pytest.mark.parametrize(("name", "count"), [("gsqr2023", 9), ("rekabsaz2020", 32), ("rekabsaz2021", 163)])
def test_the_published_lexicons_have_as_many_terms_as_published(name, count):
    assert [len(terms) for terms in load_lexicon(name).groups.values()] == [count, count]


@pytest.mark.parametrize("given_hash", ["000000000000", "", "03e28b"])
def test_another_hash_than_the_shipped_one_is_refused(given_hash):
    with pytest.raises(DataError, match=r"lexicon 'rekabsaz2020@.*'.*askew ships 'rekabsaz2020@"):
        load_lexicon(f"rekabsaz2020@{given_hash}")


def test_an_unknown_name_suggests_a_shipped_one():
    with pytest.raises(UnknownName, match=r"unknown lexicon 'rekabsaz-2020'.*did you mean 'rekabsaz2020'\?"):
        load_lexicon("rekabsaz-2020")


@pytest.mark.parametrize("name", ["", "../lexicons/gender", "unknown@0123"])
def test_a_text_that_is_neither_a_name_nor_a_file_lists_the_shipped_lexicons(name):
    with pytest.raises(
        UnknownName, match="known: age, gender, gsqr2023, nationality, rekabsaz2020, rekabsaz2021, religion"
    ):
        load_lexicon(name)


def test_a_lexicon_is_its_own_specification():
    lexicon = Lexicon("mine", {"female": ("she",)})
    assert load_lexicon(lexicon) is lexicon


def test_a_path_may_be_given_as_text(tmp_path):
    load(tmp_path, "she,f\nher,f\nhe,m\n")
    assert dict(load_lexicon(str(tmp_path / "a.csv")).groups) == GROUPS


def test_a_missing_file_lists_the_shipped_lexicons(tmp_path):
    with pytest.raises(DataError, match=r"lexicon file .*gone\.csv:.*age, gender, "):
        load_lexicon(tmp_path / "gone.csv")


def test_a_folder_is_not_said_to_be_missing(tmp_path):
    (tmp_path / "words.csv").mkdir()
    with pytest.raises(DataError, match=r"words\.csv: .*folder"):
        load_lexicon(tmp_path / "words.csv")


def test_an_unknown_ending_lists_the_known_ones(tmp_path):
    with pytest.raises(
        ConfigError, match=r"a\.json:.*of the endings \.csv, \.dic, \.toml, \.tsv, \.txt, found '\.json'"
    ):
        load(tmp_path, "{}", "a.json")


# --- terms ----------------------------------------------------------------------------------------


def test_terms_are_lowered_and_their_blanks_made_one():
    assert Lexicon("mine", {"female": (" The\t Lady ", "the lady", "ÉLÈVE")}).groups["female"] == ("the lady", "élève")


def test_the_order_and_the_case_of_terms_do_not_change_the_hash():
    first, second = Lexicon("x", {"f": ("a", "b"), "m": ("c",)}), Lexicon("y", {"f": ("B", "a", "b"), "m": ("c",)})
    assert (first.hash, first.id) == (second.hash, f"x@{first.hash}")


def test_another_term_or_another_group_changes_the_hash():
    lexicons = [{"f": ("a",)}, {"f": ("b",)}, {"g": ("a",)}, {"f": ("a",), "m": ("a",)}, {"f": ("a", "a*")}]
    assert len({Lexicon("x", groups).hash for groups in lexicons}) == len(lexicons)


def test_shared_terms_name_all_their_groups():
    lexicon = Lexicon("x", {"a": ("one", "two"), "b": ("two", "three"), "c": ("Two", "three", "four")})
    assert lexicon.shared_terms() == {"two": ("a", "b", "c"), "three": ("b", "c")}


def test_a_lexicon_without_shared_terms_says_so():
    assert Lexicon("x", {"a": ("one",), "b": ("two",)}).shared_terms() == {}


def test_exclusive_keeps_a_shared_term_for_the_first_of_its_groups():
    lexicon = Lexicon("x", {"a": ("one", "two"), "b": ("two", "three")}, license="CC0")
    assert dict(lexicon.exclusive().groups) == {"a": ("one", "two"), "b": ("three",)}
    assert (lexicon.exclusive().name, lexicon.exclusive().license) == ("x", "CC0")


def test_exclusive_changes_nothing_where_nothing_is_shared():
    lexicon = load_lexicon("rekabsaz2020")
    assert lexicon.exclusive().id == lexicon.id


def test_exclusive_refuses_a_group_that_would_have_no_terms_left():
    with pytest.raises(DataError, match=r"the group 'b'.*no terms"):
        Lexicon("x", {"a": ("one", "two"), "b": ("two",)}).exclusive()


@LAW
@given(groups=st.dictionaries(st.sampled_from("abc"), st.sets(st.sampled_from("uvwxy"), min_size=1), min_size=1))
def test_shared_terms_are_exactly_those_of_more_than_one_group(groups):
    owners = {term: tuple(g for g, terms in groups.items() if term in terms) for term in set().union(*groups.values())}
    assert Lexicon("x", groups).shared_terms() == {term: names for term, names in owners.items() if len(names) > 1}


def test_all_phrases_that_end_in_a_star_are_named_at_once():
    lexicon = Lexicon("x", {"a": ("police officer*", "judge*"), "b": ("prime minister*",)})
    with pytest.raises(DataError, match=r"splits 'police officer\*', 'prime minister\*'"):
        build_vocabulary(lexicon, word, "word")
