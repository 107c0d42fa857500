"""Names that are answered, and a proxy with TLS in front: whom it speaks for, and cookies that stay within TLS."""

import contextlib
import http.client
import json

import pytest
from fastapi.testclient import TestClient

from askew.core.errors import ConfigError
from askew.ui.cli.serve import serve_command
from askew.ui.web.app import create_app
from askew.ui.web.server import make_server
from askew.ui.web.settings import ServerLimits, Settings
from conftest import BASE, FREE, running

TOKEN = "a-token-of-some-length"
NAME = "search.example.org"


def code(service, name, **given):
    return service(**given).get("/static/none", headers={"host": name}).status_code


@pytest.mark.parametrize("host", [NAME, f"{NAME}:443", NAME.upper(), "localhost:8642", "127.0.0.1"])
def test_a_name_that_was_allowed_is_answered_besides_those_of_this_machine(service, host):
    assert code(service, host, allowed_hosts=(NAME,)) == 404


@pytest.mark.parametrize("host", ["evil.example", f"{NAME}.evil.example", f"x.{NAME}", ""])
def test_no_other_name_is(service, host):
    assert code(service, host, allowed_hosts=(NAME,)) == 421
    assert code(service, host, allowed_hosts=(NAME,), host="0.0.0.0", token=TOKEN) == 421


def test_without_allowed_names_a_service_for_others_answers_under_any(service):
    assert code(service, "any.example", host="0.0.0.0", token=TOKEN) == 404


def test_a_page_under_an_allowed_name_may_post_though_the_proxy_passes_another_host_on(service):
    client = service(allowed_hosts=(NAME,))
    body = {"queries": ["nurse"]}
    assert client.post("/api/search", json=body, headers={"origin": f"https://{NAME}"}).status_code == 200
    assert client.post("/api/search", json=body, headers={"origin": "https://evil.example"}).status_code == 403


@pytest.mark.parametrize("name", ["https://x.org", "x.org:80", "x.org/", "*", "", "a b"])
def test_an_allowed_name_is_a_name_alone(name):
    with pytest.raises(ConfigError, match="--allowed-host"):
        Settings(allowed_hosts=(name,))


def test_a_proxy_is_named_by_its_address_and_needs_a_token(monkeypatch):
    monkeypatch.delenv("ASKEW_TOKEN", raising=False)
    with pytest.raises(ConfigError, match="--behind-proxy nginx"):
        Settings(proxies=("nginx",), token=TOKEN)
    with pytest.raises(ConfigError, match=r"--behind-proxy.*token"):
        serve_command(behind_proxy=["127.0.0.1"])
    assert Settings(proxies=("10.1.2.3/8",), token=TOKEN).proxies == ("10.0.0.0/8",)


@pytest.mark.parametrize(("proxies", "secure"), [((), False), (("127.0.0.1",), True)])
def test_behind_a_proxy_the_cookie_is_for_tls_only(proxies, secure):
    settings = Settings(token=TOKEN, proxies=proxies, limits=FREE)
    with TestClient(create_app(settings), base_url=BASE) as client:
        reply = client.post("/login", data={"token": TOKEN}, follow_redirects=False)
    assert ("Secure" in reply.headers["set-cookie"]) is secure


async def who(scope, receive, send):
    """Says who asks, as the service counts it."""
    if scope["type"] != "http":
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": f"{message['type']}.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    body = json.dumps([scope["client"][0], scope["scheme"]]).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


def asked(proxies, per_address=200):
    settings = Settings(token=TOKEN, proxies=proxies, limits=ServerLimits(per_address=per_address))
    headers = {"X-Forwarded-For": "6.6.6.6, 9.9.9.9", "X-Forwarded-Proto": "https"}
    with running(settings, who) as url, contextlib.closing(http.client.HTTPConnection(url[7:])) as connection:
        connection.request("GET", "/", headers=headers)
        return json.loads(connection.getresponse().read())


def test_only_a_named_proxy_says_who_its_clients_are_and_only_the_last_hop_counts():
    assert asked(("127.0.0.0/8",)) == ["9.9.9.9", "https"]
    assert asked(("10.0.0.1",)) == asked(()) == ["127.0.0.1", "http"]


def test_the_connections_of_a_proxy_are_not_counted_as_those_of_one_client():
    settings = Settings(token=TOKEN, proxies=("127.0.0.1",), limits=ServerLimits(per_address=1))
    books = make_server(who, settings, 10).connections
    assert books.is_proxy("127.0.0.1") and not books.is_proxy("127.0.0.2")
