"""``askew serve`` and ``askew mcp``: the explorer in a browser, and as tools for a language model."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from askew.core import defaults
from askew.core.errors import ConfigError, MissingExtra
from askew.core.groups import Groups
from askew.core.measure import split_measures
from askew.ui.cli import options as o
from askew.ui.cli.render import note

if TYPE_CHECKING:
    from askew.ui.explorer.opening import Sources


_explorer = partial(
    o.options,
    shared=f"""{o.SHARED}
STORE: The folder of a store that 'askew run' wrote. Default: the embedded demo.
--index: An index, written by 'askew index', with the texts of the documents. Default: the index of the store.
--collection: The collection of queries and judgements: a folder, 'irds:ID', or 'demo'.
--recipe: The recipe whose methods and filters make the reformulations. Default: the recipe of the store, or the shipped
    recipe 'refairmulate'.
--trust-store: Also use services, models and code that the recorded recipe of the store names. Without this option, such
    a store is shown from its tables only. Give it only for a store of somebody that you trust.
**sources: store:path index:path collection recipe groups lexicon measures trust_store:bool
""",
)


@_explorer("""
--logs: A folder that 'askew logs --out' wrote.
--runs: A folder of TREC runs that the explorer can compare.
--audit: A folder that 'askew audit --out' wrote, or a folder of several such folders.
--host: The address to listen on. If other machines can reach the address, a token is needed.
--port: The port to listen on; 0 chooses a free port.
--token-file: A file with the token that clients must send. Without this option, the token is the value of the
    environment variable ASKEW_TOKEN.
--allowed-host: Also answer requests for this host name, such as search.example.org; may be repeated.
--behind-proxy: The address or network of a TLS proxy in front of this service, such as 127.0.0.1; may be repeated. With
    this option, the service trusts the X-Forwarded-For header of the proxy, sends cookies over TLS only, and needs a
    token.
--rate: The number of requests per second that a client may send.
--verbose: Log each request on stderr, without the text of queries.
""")
def serve_command(
    logs: Path | None = None, runs: Path | None = None, audit: Path | None = None, host: str = defaults.HOST,
    port: int = defaults.PORT, token_file: Path | None = None, allowed_host: list[str] | None = None,
    behind_proxy: list[str] | None = None, rate: float = defaults.RATE, verbose: bool = False, **sources: Any,
) -> None:  # fmt: skip
    """Serve the explorer: search, measure the bias (lean) of the results, reformulate. Also a REST service.

    A store is opened with the collection, ranker, groups and measures that it was built with, unless you give others.
    """
    _need("askew serve", "fastapi", "uvicorn", "python_multipart")
    from askew.ui.web.server import serve
    from askew.ui.web.settings import ServerLimits, Settings

    limits = ServerLimits.at_rate(rate)
    shown = replace(_sources(**sources), logs=logs, runs=runs, audit=audit)
    token, hosts, proxies = _token(token_file), tuple(allowed_host or ()), tuple(behind_proxy or ())
    settings = Settings(shown, host, port, token, limits, hosts, proxies)
    serve(settings, lambda address: typer.echo(f"askew: {address}", color=False), verbose)


@_explorer()
def mcp_command(**sources: Any) -> None:
    """Offer search, reformulate, compare, measure and measure_text to a language model, over standard input (MCP)."""
    _need("askew mcp", "mcp")
    from askew.ui.web.mcp import run_stdio

    run_stdio(_sources(**sources))


def _sources(
    groups: str | None = None, lexicon: str | None = None, measures: str | None = None,
    trust_store: bool | None = None, **places: Any,
) -> Sources:  # fmt: skip
    from askew.data.collection import open_collection
    from askew.ui.explorer.opening import Sources

    if places.get("collection") is not None:
        note(open_collection(places["collection"]).notes("queries", "judgements"))
    wanted = None if measures is None else tuple(split_measures(measures))
    counted = Groups.resolve(groups, lexicon)
    return Sources(**places, groups=counted, measures=wanted, trust_store=bool(trust_store))


def _need(what: str, *modules: str) -> None:
    """Raise an error that names the missing extra before anything else is done."""
    if any(find_spec(name) is None for name in modules):
        raise MissingExtra(what, "web")


def _token(file: Path | None) -> str | None:
    """Read the token from a file or the environment. On the command line, other users could read it."""
    if file is None:
        return os.environ.get("ASKEW_TOKEN") or None
    try:
        found = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"--token-file {file}: cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8'})"
        ) from None
    if not found:
        raise ConfigError(f"--token-file {file}: the file is empty")
    return found
