"""An audit of a real engine that is ended in the middle: one clear error, and no query is sent twice."""

import pytest

import askew
from askew.core.errors import StageError
from askew.data.collection import open_collection
from askew.search.engines.http import HttpEngine
from real_engines import GroongaServer


@pytest.fixture
def server(tmp_path):
    if not GroongaServer.is_available():
        pytest.skip("groonga is not installed: apt-get install groonga-bin")
    (tmp_path / "db").mkdir()
    docs = {}
    for batch in open_collection("demo").documents():
        docs |= dict(zip(batch["doc_id"].to_pylist(), batch["text"].to_pylist(), strict=True))
    with GroongaServer(tmp_path / "db", docs) as server:
        yield server


def test_an_audit_of_groonga_that_stops_goes_on_when_it_is_back(server, tmp_path, monkeypatch):
    answered = []
    find = HttpEngine._find

    def counted(self, query, k):
        found = find(self, query, k)
        answered.append(query)
        return found

    monkeypatch.setattr(HttpEngine, "_find", counted)
    engine = {"url": server.url, "template": "groonga", "params": {"table": "Docs"}, "attempts": 1, "concurrency": 1}
    how = askew.AuditSettings(
        methods=["reduce"], method_settings={"equivalence": {"model": "light"}}, out=tmp_path / "audit"
    )

    def stop_after_twenty(done, total, label):
        if done == 20:
            server.stop()

    # Two queries of the demo have the same text, which is sent once.
    with pytest.raises(StageError, match=r"\b20 of 95 .*audit\.answers"):
        askew.audit("http", "demo", engine_settings=engine, settings=how, progress=stop_after_twenty)
    assert len(answered) == 20
    server.start()
    report = askew.audit("http", "demo", engine_settings=engine, settings=how)
    assert report["ARaB(tf)@10"].n > 90
    assert report.reformulations
    assert len(answered) == len(set(answered)) > 95
    assert (tmp_path / "audit" / "report.html").is_file() and not list(tmp_path.glob("*.answers*"))
