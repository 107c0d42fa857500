"""The contract of reformulators passes the context of a query on when it checks the query alone."""

from dataclasses import replace

from askew.core.protocols import Candidates
from askew.testing.contracts import check_reformulator, toy_asked


class WithContext:
    """Appends the context of a query to it."""

    method, reads = "with-context", frozenset()

    def settings(self):
        return {}

    def reformulate(self, asked):
        found = Candidates()
        for row, text in enumerate(asked.texts):
            context = None if asked.contexts is None else asked.contexts[row]
            found.add(row, f"{text} {context or 'without'}".strip())
        return found


def test_a_reformulator_that_reads_contexts_keeps_the_contract():
    asked = toy_asked()
    contexts = tuple(f"user{row}" if row % 2 else None for row in range(len(asked)))
    found = check_reformulator(WithContext(), replace(asked, contexts=contexts))
    assert any(text.endswith("user1") for text in found.texts)
