import pytest

from askew.core.errors import AskewError, ConfigError, DataError, MissingExtra, StageError, StoreError, UnknownName


@pytest.mark.parametrize("kind", [AskewError, ConfigError, DataError, StoreError, StageError])
def test_the_code_of_an_error_is_its_class_unless_it_has_its_own(kind):
    assert kind("text").code == kind.__name__.removesuffix("Error").lower() + "-error"
    assert kind("text", code="no-texts").code == "no-texts"


def test_values_hold_what_the_message_is_about_without_credentials():
    error = DataError("text", code="no-texts", file="s3://key:secret@bucket/x", row=3)
    assert error.values == {"file": "s3://bucket/x", "row": 3}


def test_an_unknown_name_and_a_missing_extra_have_values():
    unknown = UnknownName("lexicon", "gendr", ["gender", "age"])
    assert (unknown.code, unknown.values) == ("unknown-name", {"what": "lexicon", "name": "gendr", "meant": "gender"})
    missing = MissingExtra("search", "neural")
    assert (missing.code, missing.values) == ("missing-extra", {"extra": "neural"})
