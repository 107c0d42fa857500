"""The workflows of continuous integration: actions of one commit, a token that can only read, no secret."""

import re
from pathlib import Path

import pytest

WORKFLOWS = sorted(Path(__file__).parent.parent.glob(".github/workflows/*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_uses_pinned_actions_and_a_token_that_can_only_read(path):
    text = path.read_text(encoding="utf-8")
    used = re.findall(r"uses: *(\S+)(.*)", text)
    assert used
    for action, comment in used:
        assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment)
    assert re.findall(r"permissions:\n((?: +\S+: \S+\n)+)", text) == ["  contents: read\n"]
    assert text.count("persist-credentials: false") == text.count("actions/checkout@")
    assert "secrets." not in text and "pull_request_target" not in text
    assert len(re.findall(r"timeout-minutes:", text)) == len(re.findall(r"runs-on:", text))
    # What a pull request can write, such as its title, is put into no command.
    assert not re.search(r"run:.*\$\{\{", text)


def test_there_is_a_workflow():
    assert WORKFLOWS
