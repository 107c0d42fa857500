"""The examples of --set in the help of each command are accepted by this command."""

import re

import pytest
import typer

from askew.core.plugins import check
from askew.study.audit.settings import AuditSettings
from askew.train.common import from_names
from askew.train.facade import trainers
from askew.ui.cli.main import app
from askew.ui.cli.options import read_settings

TRAINED = ("classifier", "adapter", "ranker", "selector", "generator", "rewriter")


def commands(command, path=()):
    for name, inner in getattr(command, "commands", {}).items():
        yield (*path, name), inner
        yield from commands(inner, (*path, name))


COMMANDS = dict(commands(typer.main.get_command(app)))
HELP = {
    path: one.help
    for path, command in COMMANDS.items()
    for one in command.params
    if "--set" in one.opts
}  # fmt: skip


def examples(*path):
    found = re.findall(r"--set (\S+=[^\s;,]+?)[.;,]?(?= |$)", HELP[path])
    assert found, HELP[path]
    return found


def given(*path):
    return [word for one in examples(*path) for word in ("--set", one)]


@pytest.mark.parametrize("command", ["plan", "run", "report", "publish"])
def test_the_settings_of_a_recipe_are_those_of_its_sections(askew, command):
    assert len(examples(command)) == 2
    assert askew(["plan", "demo", *given(command)]).code == 0


def test_a_setting_of_no_section_is_refused_with_a_section_as_the_example(askew):
    askew("plan demo --set k=50").refused(2, "expected SECTION.NAME=VALUE, as in --set retrieve.k=50")


def test_the_examples_of_reformulate_and_bench_name_a_method(askew, files):
    files.text("q.tsv", "q1\twoman\n")
    made = ["reformulate", "q.tsv", "--docs", "docs.tsv", "--method", "extract", "--out", "new.tsv"]
    assert askew([*made, *given("reformulate")]).code == 0
    (one,) = examples("bench")
    owner, _, setting = one.rpartition(".")
    check("reformulator", owner.removeprefix("reformulate:"), read_settings([setting]), "bench")


def test_the_examples_of_audit_are_a_setting_of_the_engine_and_one_of_a_method():
    engine, method = examples("audit")
    check("ranker", "http", read_settings([engine]), "audit")
    owner, _, setting = method.rpartition(".")
    check("reformulator", owner, read_settings([setting]), "audit")
    assert AuditSettings(method_settings={owner: read_settings([setting])})


def test_the_examples_of_index_search_classify_and_calibrate(askew, files):
    files.text("q.tsv", "q1\tis he a man\n")
    assert askew(["index", "docs.tsv", "--out", "ix", *given("index")]).code == 0
    search = ["search", "q.tsv", "--index", "ix", "--ranker", "rm3", "--out", "a.run"]
    assert askew([*search, *given("search")]).code == 0
    assert askew(["classify", "q.tsv", "--classifier", "lexical", *given("classify")]).code == 0
    (one,) = examples("calibrate")
    check("filter", "semantic", read_settings([one]), "calibrate")


@pytest.mark.parametrize("name", TRAINED)
def test_the_example_of_a_training_is_a_setting_of_each_trainer(name):
    assert from_names(trainers()[name][1], read_settings(examples("train", name)), name)
