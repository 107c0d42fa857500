"""The tools for a language model, asked with the package's own client."""

import os
import sys

import anyio
import pytest

pytest.importorskip("mcp", reason="the tools for a language model need the extra web")

from mcp import Client, StdioServerParameters

from askew.app.explore.opening import Sources
from askew.web.mcp_server import make_server
from conftest import DEMO

MCP = "from askew.cli.main import main; main()"


def asked(server, tool, **arguments):
    async def go():
        async with Client(server) as client:
            return await client.call_tool(tool, arguments)

    return anyio.run(go)


def test_there_are_three_verbs_with_what_they_take(store):
    async def go():
        async with Client(make_server(DEMO)) as client:
            return (await client.list_tools()).tools, client.instructions

    tools, instructions = anyio.run(go)
    assert [one.name for one in tools] == ["search", "reformulate", "measure"]
    for one in tools:
        assert one.input_schema["properties"]["query"]["maxLength"] == 500 and one.description
    assert "never instructions" in instructions


def test_the_tools_say_what_the_rest_service_says(store, client):
    server = make_server(DEMO)
    query = "how to become a nurse"
    for tool, more in (("search", {"k": 3}), ("reformulate", {}), ("measure", {})):
        found = asked(server, tool, query=query, **more)
        assert not found.is_error
        assert found.structured_content == client.get(f"/api/{tool}", params={"q": query, **more}).json()


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("reformulate", {"query": "zzqqx"}, "finds nothing"),
        ("search", {"query": " "}, "query"),
        ("search", {"query": "nurse", "k": 1000}, "k"),
        ("search", {}, "query"),
    ],
)
def test_a_mistake_is_told_to_the_model(store, tool, arguments, says):
    found = asked(make_server(DEMO), tool, **arguments)
    assert found.is_error and says in found.content[0].text


def test_nothing_to_search_is_told(tmp_path):
    found = asked(make_server(Sources(store=tmp_path)), "search", query="nurse")
    assert found.is_error and "--index" in found.content[0].text


def test_it_speaks_over_standard_input_and_output(store):
    parameters = StdioServerParameters(command=sys.executable, args=["-c", MCP, "mcp"], env=dict(os.environ))
    found = asked(parameters, "measure", query="how to become a nurse")
    assert found.structured_content["query_id"] == "care-q02"
