"""The tools for a language model, asked with the package's own client."""

import json
import os
import sys

import anyio
import pytest

from askew.ui.web.mcp import SIGN

pytest.importorskip("mcp", reason="the tools for a language model need the extra web")

from mcp import Client, StdioServerParameters

from askew.ui.explorer.opening import Sources
from askew.ui.web.mcp import make_server
from conftest import DEMO

MCP = "from askew.ui.cli.main import main; main()"


def asked(server, tool, **arguments):
    async def go():
        async with Client(server) as client:
            return await client.call_tool(tool, arguments)

    return anyio.run(go)


TOOLS = ["search", "reformulate", "compare", "measure", "measure_text"]
QUERY = "how to become a nurse"


def listed():
    async def go():
        async with Client(make_server(DEMO)) as client:
            return (await client.list_tools()).tools, client.instructions

    return anyio.run(go)


def test_every_tool_only_reads_and_says_how_the_sign_is_read():
    tools, instructions = listed()
    assert [one.name for one in tools] == TOOLS
    for one in tools:
        assert one.annotations.read_only_hint and not one.annotations.destructive_hint
        assert one.description.endswith(SIGN) and "`sign`" in SIGN
    assert "never as instructions" in instructions


def test_a_query_is_bounded_for_every_tool_that_takes_one():
    tools, _ = listed()
    for one in tools:
        assert one.input_schema["properties"]["query"]["maxLength"] == 500


def test_the_tools_say_what_the_rest_service_says(store, client):
    server = make_server(DEMO)
    searched = client.get("/api/search", params={"q": QUERY, "k": 3}).json()
    found = asked(server, "search", query=QUERY, k=3).structured_content
    assert found["values"] == {one["measure"]: pytest.approx(one["value"], abs=1e-4) for one in searched["values"]}
    assert [one["mentions"] for one in found["results"]] == [one["mentions"] for one in searched["results"]]
    assert found["lean"] == searched["lean"]["meaning"] and found["sign"] == searched["setting"]["sign"]
    other = client.get("/api/reformulate", params={"q": QUERY}).json()
    best = asked(server, "reformulate", query=QUERY, count=20).structured_content
    assert {one["text"]: one["outcome"] for one in best["best"]} == {
        one["text"]: one["outcome"] for one in other["candidates"]
    }


def test_a_model_tests_its_own_reformulation(store, client):
    given = {"q": QUERY, "to": "nurse training"}
    found = asked(make_server(DEMO), "compare", query=QUERY, reformulation="nurse training").structured_content
    told = client.get("/api/compare", params=given).json()
    assert (found["outcome"], found["lean"]) == (told["outcome"], told["lean_verdict"])
    for name, (old, new, gain) in found["measures"].items():
        assert gain == pytest.approx(told["gains"][name], abs=1e-4)
        assert {one["measure"]: one["value"] for one in told["old"]["values"]}[name] == pytest.approx(old, abs=1e-4)
        assert new is not None
    unjudged = asked(make_server(DEMO), "compare", query="women nursing school", reformulation="nursing school")
    assert unjudged.structured_content["outcome"] is None and unjudged.structured_content["lean"]


def test_a_text_is_measured_by_itself(store, client):
    given = {"text": "She is a nurse and he is a doctor. Her work is hard.", "query": "nurse"}
    found = asked(make_server(DEMO), "measure_text", **given).structured_content
    assert found["mentions"] == {"female": 2, "male": 1} and [one.split(":")[0] for one in found["words"]] == [
        "She", "he", "Her"
    ]  # fmt: skip
    told = client.post("/api/text", json=given).json()
    assert told["mentions"] == found["mentions"] and set(told["values"]) == set(found["values"])
    assert told["values"]["ARaB(tc)@10"] == -1
    assert all(mark["why"] is None for mark in client.post("/api/text", json={"text": given["text"]}).json()["marks"])


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("search", {"query": QUERY}), ("reformulate", {"query": QUERY}), ("measure", {"query": QUERY}),
        ("compare", {"query": QUERY, "reformulation": "nurse training"}),
        ("measure_text", {"text": "she and he " * 200}),
    ],
)  # fmt: skip
def test_a_reply_is_short(store, tool, given):
    found = asked(make_server(DEMO), tool, **given)
    assert len(json.dumps(found.structured_content)) < 3000
    assert sum(len(one.text) for one in found.content) < 3900


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
    found = asked(parameters, "measure", query=QUERY)
    assert found.structured_content["judged"] and "RR@10" in found.structured_content["values"]
