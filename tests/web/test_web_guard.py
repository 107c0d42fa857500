"""What stands before the application: odd headers, slow senders, too many at once, what a log may say."""

import asyncio
import json
import logging

import pytest

from askew.ui.explorer.opening import Sources, open_sources
from askew.ui.web import site
from askew.ui.web.app import create_app
from askew.ui.web.guard import Access, Guard, Rate
from askew.ui.web.settings import ServerLimits, Settings
from askew.ui.web.work import Busy, Work

TOKEN = "a-token-of-some-length"


def scope_of(path="/api/search", method="POST", **headers):
    pairs_of = [(b"host", b"127.0.0.1"), *((key.encode(), value.encode()) for key, value in headers.items())]
    return {"type": "http", "method": method, "path": path, "query_string": b"", "headers": pairs_of,
            "client": ("127.0.0.1", 1)}  # fmt: skip


def guard_of(app, **limits):
    settings = Settings(limits=ServerLimits(rate=1e6, burst=10**6, **limits))
    return Guard(app, settings, Access(None), Rate(1e6, 10**6))


async def asked(guard, scope, receive):
    sent = []

    async def send(message):
        sent.append(message)

    await guard(scope, receive, send)
    return sent


async def empty():
    return {"type": "http.request", "body": b"", "more_body": False}


async def never():
    await asyncio.Event().wait()


def answers(status=200):
    async def app(scope, receive, send):
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    return app


@pytest.mark.parametrize("host", ["[", "[::1", "]:80", "[nix]", "127.0.0.1:port", "a b", "@localhost@evil.example"])
def test_a_host_that_is_none_is_refused_and_no_mistake_of_ours(client, host):
    reply = client.get("/api/health", headers={"host": host})
    assert reply.status_code in (200, 421) and reply.headers["content-security-policy"]
    assert reply.status_code == 200 or reply.json()["error"]["code"] == "wrong_host"


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "//", "x"])
def test_an_origin_that_is_none_may_not_post(client, origin):
    reply = client.post("/api/search", json={"queries": ["nurse"]}, headers={"origin": origin})
    assert reply.status_code == 403 and reply.json()["error"]["code"] == "forbidden"


def test_a_program_that_has_no_token_is_told_so_as_json(service):
    client = service(token=TOKEN)
    for path in ("/openapi.json", "/api/pairs"):
        reply = client.get(path, follow_redirects=False)
        assert reply.status_code == 401 and reply.json()["error"]["code"] == "unauthorized"


def test_who_has_no_token_hears_that_the_service_lives_and_no_more(service):
    assert service(token=TOKEN).get("/api/health").json() == {"status": "ok", "collection": None}


def test_a_sender_that_does_not_go_on_is_not_waited_for():
    app = create_app(Settings(limits=ServerLimits(body_seconds=0.01)))
    sent = asyncio.run(asked(app, scope_of(**{"content-type": "application/json"}), never))
    assert sent[0]["status"] == 408 and json.loads(sent[1]["body"])["error"]["code"] == "too_slow"


def test_a_body_that_is_whole_may_be_answered_slowly():
    async def app(scope, receive, send):
        await receive()
        # Nothing comes any more; whoever waits for the end of the connection may wait.
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(receive(), 0.05)
        await answers()(scope, empty, send)

    messages = [{"type": "http.request", "body": b"x", "more_body": False}]

    async def once():
        return messages.pop() if messages else await never()

    sent = asyncio.run(asked(guard_of(app, body_seconds=0.01), scope_of(), once))
    assert sent[0]["status"] == 200


@pytest.mark.parametrize(("path", "limits"), [("/runs", {"uploading": 2}), ("/api/search", {"open": 2})])
def test_more_than_may_come_at_once_are_told_to_come_back_and_then_there_is_room(path, limits):
    async def go():
        guard, gate = guard_of(answers(), **limits), asyncio.Event()

        async def held():
            await gate.wait()
            return await empty()

        first = [asyncio.ensure_future(asked(guard, scope_of(path), held)) for _ in range(2)]
        await asyncio.sleep(0)
        refused = await asked(guard, scope_of(path), empty)
        gate.set()
        done = await asyncio.gather(*first)
        after = await asked(guard, scope_of(path), empty)
        return refused, [*done, after]

    refused, done = asyncio.run(go())
    assert refused[0]["status"] == 429 and (b"retry-after", b"1") in refused[0]["headers"]
    assert [sent[0]["status"] for sent in done] == [200, 200, 200]


def test_a_mistake_in_the_middle_of_an_answer_is_told_without_its_words(caplog):
    async def broken(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("secretword")

    caplog.set_level(logging.INFO)
    sent = asyncio.run(asked(guard_of(broken), scope_of(), empty))
    # The answer stays unfinished, so the server closes the connection.
    assert [one["type"] for one in sent] == ["http.response.start"]
    assert "RuntimeError" in caplog.text and "secretword" not in caplog.text


def test_an_upload_that_grows_too_large_on_the_way_is_refused(service):
    client = service(limits=ServerLimits(rate=1e6, burst=10**6, upload_bytes=2000))

    def parts():
        yield b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.run"\r\n\r\n'
        for _ in range(50):
            yield b"q Q0 d 1 1.0 t\n" * 10
        yield b"\r\n--x--\r\n"

    reply = client.post("/runs", content=parts(), headers={"content-type": "multipart/form-data; boundary=x"})
    assert reply.status_code == 413 and 'role="alert"' in reply.text


def test_a_batch_counts_for_as_many_as_it_holds():
    async def go():
        work = Work(1, 9, 1000)
        work.taken = 6
        with pytest.raises(Busy):
            await work.run(lambda: None, 5)
        assert await work.run(lambda: "fits", 4) == "fits"
        work.taken = 0
        # One that is larger than all room is still taken when nothing else is there.
        done = await work.run(lambda: "alone", 50)
        work.close()
        return done, work.taken

    assert asyncio.run(go()) == ("alone", 0)


def test_what_only_waits_is_given_up_when_the_service_closes():
    done = []

    async def go():
        work = Work(1, 10, 1000)
        begun, gate = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def first():
            loop.call_soon_threadsafe(begun.set)
            asyncio.run_coroutine_threadsafe(gate.wait(), loop).result()
            done.append("begun")

        held = asyncio.ensure_future(work.run(first))
        waiting = asyncio.ensure_future(work.run(lambda: done.append("waiting")))
        await begun.wait()
        closing = loop.run_in_executor(None, work.close)
        await asyncio.gather(waiting, return_exceptions=True)
        gate.set()
        await asyncio.gather(held, closing)

    asyncio.run(go())
    assert done == ["begun"]


def test_a_dataset_is_opened_once_whether_it_is_named_or_not(service, monkeypatch):
    opened = []
    whole = site.open_pairs
    monkeypatch.setattr(site, "open_pairs", lambda *given: opened.append(1) or whole(*given))
    client = service()
    name = client.get("/api/pairs").json()["dataset"]
    client.get("/api/pairs", params={"dataset": name})
    client.get("/pairs")
    assert opened == [1]


def test_a_collection_in_a_folder_is_called_by_its_name_and_not_by_its_place(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "docs.tsv").write_text("d1\tshe is a nurse\nd2\the is a nurse\n")
    (folder / "queries.tsv").write_text("q1\tnurse\n")
    (tmp_path / "store").mkdir()
    opened = open_sources(Sources(store=tmp_path / "store", collection=str(folder)))
    assert opened.explorer.setting.collection == "mine"
