"""A key that is part of an address or of a recipe is in nothing that is printed or written."""

import json
import sys

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from askew.core.errors import AskewError, ConfigError
from askew.core.store.ray import RayExecutor
from askew.core.store.store import Store
from askew.pairs.recipe import Recipe, read_recipe
from askew.rewrite.llm import LlmReformulator
from askew.rewrite.llm_client import Endpoint

SECRET = "hUsh9hush9Sekret"
KEY = "AKIAEXAMPLEKEY123456"
STORE = f"memory://{KEY}:{SECRET}@host/bucket"
# A recipe whose settings hold a key in the ways that people write one.
RECIPE = f"""
title = "Pairs"
about = "made with https://user:{SECRET}@host/v1"
[collection]
source = "demo"
[[reformulate]]
method = "stem.porter"
[retrieve]
ranker = "bm25"
k = 10
[evaluate]
measures = ["RR@10", "ARaB(tf)@10"]
[select]
selector = "boxes"
measure = "RR@10"
bias = "ARaB(tf)@10"
"""


class Closed(MemoryFileSystem):
    """A filesystem that answers nothing, and quotes in its errors what it was asked for, as many do."""

    protocol = "closed"
    cachable = False

    def __init__(self, whole="", **_):
        super().__init__()
        self.whole = whole

    @classmethod
    def _get_kwargs_from_urls(cls, path):
        return {"whole": path}

    @classmethod
    def _strip_protocol(cls, path):
        return path.removeprefix("closed://")

    def _refuse(self, *_, **__):
        raise RuntimeError(f"403 for {self.whole}: the key {SECRET} of {KEY} is not known")

    info = ls = find = open = _open = exists = makedirs = mkdir = created = _refuse


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
    fsspec.register_implementation("closed", Closed, clobber=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("ASKEW_STORE", "ASKEW_DEBUG"):
        monkeypatch.delenv(name, raising=False)


def refuse_secrets(text):
    assert SECRET not in text
    assert KEY not in text


def refuse_secrets_in_files(folder):
    for path in folder.rglob("*"):
        refuse_secrets(str(path))
        if path.is_file():
            data = path.read_bytes()
            assert SECRET.encode() not in data, path
            assert KEY.encode() not in data, path


def said_by(done):
    refuse_secrets(done.out)
    refuse_secrets(done.err)
    return done


@pytest.mark.parametrize("json_or_not", [["--json"], []])
def test_a_run_in_a_store_with_a_key_in_its_address_prints_and_writes_no_key(askew_cli, tmp_path, json_or_not):
    done = said_by(askew_cli(["run", "demo", "--until", "kept", "--store", STORE, *json_or_not]))
    assert done.code == 0
    assert "memory://host/bucket" in done.out
    refuse_secrets_in_files(tmp_path)
    for path, data in MemoryFileSystem.store.items():
        assert SECRET.encode() not in data.getvalue(), path
    shown = said_by(askew_cli(["show", "store", STORE, *json_or_not]))
    assert (shown.code, "memory://host/bucket" in shown.out) == (0, True)
    assert said_by(askew_cli(["plan", "demo", "--store", STORE, *json_or_not])).code == 0


@pytest.mark.parametrize("scheme", ["closed", "s3", "nowhere"])
@pytest.mark.parametrize("command", [["run", "demo"], ["show", "store"], ["publish", "demo", "--out", "ds"]])
@pytest.mark.parametrize("debug", ["", "1"])
def test_a_store_that_cannot_be_opened_is_one_line_without_the_key(
    askew_cli, monkeypatch, tmp_path, scheme, command, debug
):
    monkeypatch.setenv("ASKEW_DEBUG", debug)
    closed = "?endpoint_override=http://127.0.0.1:9&allow_bucket_creation=false" if scheme == "s3" else ""
    if scheme == "s3":
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    address = f"{scheme}://{KEY}:{SECRET}@bucket/work{closed}"
    done = said_by(askew_cli([*command, *(["--store"] if command[0] != "show" else []), address]))
    assert done.code in (3, 5), done.err
    assert f"{scheme}://bucket/work" in done.err
    refuse_secrets_in_files(tmp_path)


def test_a_key_in_the_wrong_option_is_not_quoted(askew_cli):
    for arguments in (
        ["measure", f"s3://{KEY}:{SECRET}@bucket/a.run", "--docs", f"https://host/docs?token={SECRET}"],
        ["index", f"s3://{KEY}:{SECRET}@bucket/docs.tsv", "--out", "i"],
        ["run", f"s3://{KEY}:{SECRET}@bucket/recipe.toml"],
        ["run", "demo", "--engine", f"ray://{KEY}:{SECRET}@host"],
        ["run", "demo", "--set", f"collection.source='s3://{KEY}:{SECRET}@bucket/x'"],
        ["run", "demo", "--workers", f"s3://{KEY}:{SECRET}@bucket"],
        ["run", "demo", "--store", f"file://{KEY}:{SECRET}@host/no", "--until", f"s3://{KEY}:{SECRET}@b"],
    ):
        assert said_by(askew_cli(arguments)).code != 0, arguments


def test_errors_of_a_store_in_python_have_no_key_in_them_or_in_what_is_printed_of_it():
    store = Store(f"closed://{KEY}:{SECRET}@bucket/work")
    refuse_secrets(repr(store) + repr(store.files) + str(vars(store)) + str(store.local))
    for ask in (
        store.steps, store.unfinished, lambda: store.files.read("a"), lambda: store.files.write("a", b""),
        lambda: store.files.exists("a"), lambda: store.files.delete("a"), lambda: store.writer("a", "b").done(),
    ):  # fmt: skip
        with pytest.raises((AskewError, OSError)) as caught:
            ask()
        refuse_secrets(str(caught.value) + repr(caught.value))


def test_a_recipe_with_a_key_in_it_is_shown_run_reported_and_published_without(askew_cli, tmp_path):
    source = tmp_path.parent / f"{tmp_path.name}-recipe"
    source.mkdir()
    (source / "mine.toml").write_text(RECIPE)
    recipe = str(source / "mine.toml")
    refuse_secrets(repr(read_recipe(recipe)))
    for arguments in (
        ["show", "recipe", recipe], ["show", "recipe", recipe, "--json"], ["run", recipe, "--store", "s", "--json"],
        ["report", recipe, "--store", "s", "--out", "report.html"], ["publish", recipe, "--store", "s", "--out", "ds"],
        ["verify", "ds", "--json"],
    ):  # fmt: skip
        done = said_by(askew_cli(arguments))
        assert done.code == 0, done.err
    refuse_secrets_in_files(tmp_path)
    assert "https://host/v1" in json.loads((tmp_path / "ds/askew.json").read_text())["facts"]["recipe"]


def test_a_setting_that_is_named_like_a_key_is_not_shown(askew_cli, tmp_path):
    text = RECIPE.replace('"stem.porter"', f'"llm"\nmodel = "m"\napi_key = "{SECRET}"\nkey_variable = "sk-{SECRET}"')
    (tmp_path / "mine.toml").write_text(text + f'\n[[cross]]\nindex = {{token = "{SECRET}", "password" = "short1"}}\n')
    for form in ([], ["--json"]):
        shown = said_by(askew_cli(["show", "recipe", "mine.toml", *form]))
        assert "short1" not in shown.out
    assert said_by(askew_cli(["run", "mine.toml"])).code == 2


@pytest.mark.parametrize(
    "url",
    [f"https://host/v1?api_key={SECRET}", f"https://user:{SECRET}@host/v1", f"https://host/v1#{SECRET}",
     f"https://host:port/{SECRET}@x", f"ftp://u:{SECRET}@host"],
)  # fmt: skip
def test_an_endpoint_with_a_key_in_its_address_is_refused_without_the_key(askew_cli, tmp_path, url, monkeypatch):
    with pytest.raises(ConfigError) as caught:
        LlmReformulator("m", base_url=url)
    refuse_secrets(str(caught.value))
    (tmp_path / "mine.toml").write_text(
        RECIPE.replace('"stem.porter"', f'"llm"\nmodel = "m"\nbase_url = "{url}"'), encoding="utf-8"
    )
    assert said_by(askew_cli(["run", "mine.toml"])).code == 2
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(ConfigError) as caught:
        Endpoint().url()
    refuse_secrets(str(caught.value))


def test_a_key_in_place_of_the_name_of_its_variable_is_not_quoted():
    with pytest.raises(ConfigError, match="environment variable") as caught:
        LlmReformulator("m", base_url="https://host/v1", key_variable=f"sk-{SECRET}")
    refuse_secrets(str(caught.value))


def test_a_proxy_that_cannot_be_used_is_named_without_its_password(askew_cli, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", f"gopher://{KEY}:{SECRET}@proxy:1")
    arguments = ["reformulate", "demo", "--out", "c.tsv", "--method", "llm", "--set", "llm.model=m"]
    done = said_by(askew_cli([*arguments, "--set", "llm.base_url=https://127.0.0.1:9/v1"]))
    assert done.code == 2
    assert "proxy" in done.err


def test_a_cluster_with_a_password_in_its_address_is_named_without(monkeypatch):
    class Ray:
        class _private:  # noqa: N801
            class worker:  # noqa: N801
                pass

        @staticmethod
        def is_initialized():
            return False

        @staticmethod
        def init(address, **_):
            raise ValueError(f"no cluster at {address}")

    monkeypatch.setitem(sys.modules, "ray", Ray)
    executor = RayExecutor(f"ray://{KEY}:{SECRET}@nowhere")
    refuse_secrets(repr(vars(executor)))
    with pytest.raises(ConfigError, match="Ray at ray://nowhere") as caught:
        _ = executor.count if executor._workers else executor._ray
    refuse_secrets(str(caught.value))


def test_an_internal_error_shows_no_key_also_with_a_traceback(askew_cli, monkeypatch):
    def broken(*_):
        raise RuntimeError(f"GET s3://{KEY}:{SECRET}@bucket/x: {SECRET}")

    monkeypatch.setattr("askew.pairs.build.read_recipe", broken)
    for debug in ("", "1"):
        monkeypatch.setenv("ASKEW_DEBUG", debug)
        done = said_by(askew_cli(["run", "demo", "--store", STORE]))
        assert (done.code, "RuntimeError" in done.err) == (70, True)


def test_what_holds_a_recipe_or_a_token_does_not_print_it():
    from askew.ui.web.settings import Settings

    refuse_secrets(repr(Recipe("mine", {"reformulate": [{"api_key": SECRET}]})))
    refuse_secrets(repr(Settings(token=SECRET)))
    refuse_secrets(repr(Endpoint(f"https://{KEY}:{SECRET}@host/v1")))
