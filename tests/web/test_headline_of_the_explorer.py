"""The headline of a page of the explorer is that of askew.measure, to the last digit."""

import dataclasses

import askew
from askew.study.headline import headline

ENGINEER = "how to become a software engineer"


def test_a_query_that_leans_male_has_the_headline_of_measure(explorer):
    run = askew.Ranker("bm25").index("demo").search({"q": ENGINEER}, k=10)
    (measured,) = headline(run, "demo", queries={"q": ENGINEER})
    assert measured.toward == "male"
    assert measured.parts[-1].words["male"] > measured.parts[-1].words["female"]
    found, wanted = (dataclasses.asdict(dataclasses.replace(one, run="", notes=()))
                     for one in (explorer.search(ENGINEER).headline, measured))  # fmt: skip
    assert found == wanted
