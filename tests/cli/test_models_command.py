"""``askew models``: the list of shipped models, and the card of one."""

from askew.train.shipped import shipped_model, shipped_models


def test_the_list_says_of_each_model_what_is_to_be_known(askew):
    table = askew("models").table
    words = " ".join(table.split())
    for model in shipped_models():
        assert model.name in table
        assert f"license: {model.license}" in words
    assert words.count("trained on:") == words.count("measured:") == words.count("base model:") == len(shipped_models())
    assert "Not measured yet." in words or all(one.headline for one in shipped_models())


def test_the_list_in_json_has_one_object_for_each_model(askew):
    rows = askew("models --json").json
    assert rows == [one.to_dict() for one in shipped_models()]
    assert {"name", "task", "base", "license", "size", "data", "headline", "used_by"} <= set(rows[0])


def test_a_name_prints_the_card(askew):
    model = shipped_model("minilm-who")
    assert askew("models minilm-who").out == model.card() == (model.folder / "README.md").read_text(encoding="utf-8")
    assert askew("models minilm-who --json").json == {**model.to_dict(), "card": model.card()}


def test_an_unknown_model_is_answered_with_those_known(askew):
    askew("models minilm").refused(2, "unknown model 'minilm'", "minilm-equivalence")
